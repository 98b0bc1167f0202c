import CSystemd
import Glibc

/// The process's event loop (sd-event(3)). Everything on it runs in the thread that calls ``run(beside:)``.
@safe package final class EventLoop {
  private let event: OpaquePointer
  /// Something is to be done, or the wait for it was changed, since ``settle()``.
  private var isDue = true

  /// Readable when something is to be done; see ``run(beside:)``.
  package var descriptor: Int32 { unsafe sd_event_get_fd(event) }

  /// Makes a loop with no sources.
  package init() throws(SystemdError) {
    var event: OpaquePointer?
    try checked("sd_event_new", unsafe sd_event_new(&event))
    guard let event = unsafe event else { throw SystemdError(call: "sd_event_new", code: 12) }
    unsafe self.event = event
  }

  deinit { unsafe sd_event_unref(event) }

  /// Waits for its own sources alone until ``exit(status:)``.
  ///
  /// - Returns: the status handed to that.
  package func run() throws(SystemdError) -> Int32 {
    while unsafe sd_event_get_state(event) != Int32(SD_EVENT_FINISHED) {
      try checked("sd_event_run", unsafe sd_event_run(event, UInt64.max))
    }
    return try status()
  }

  /// Runs until ``exit(status:)``.
  ///
  /// - Parameter other: does what else there is to do. It waits in the loop's place where it is told so, for ``descriptor``
  ///   among others, and says by ``wake()`` that this can be read (sd_event_prepare(3)).
  /// - Returns: the status handed to ``exit(status:)``.
  package func run(beside other: (_ waits: Bool) -> Void) throws(SystemdError) -> Int32 {
    while true {
      if isDue {
        try settle()
        if unsafe sd_event_get_state(event) == Int32(SD_EVENT_FINISHED) { return try status() }
      }
      other(!isDue)
    }
  }

  private func status() throws(SystemdError) -> Int32 {
    var status: Int32 = 0
    try checked("sd_event_get_exit_code", unsafe sd_event_get_exit_code(event, &status))
    return status
  }

  /// Something is to be done: its handlers are called before anybody waits again.
  package func wake() { isDue = true }

  /// Calls a handler or two that are due, and gets ready for the next wait where no more are.
  private func settle() throws(SystemdError) {
    isDue = false
    if unsafe sd_event_get_state(event) == Int32(SD_EVENT_ARMED),
      try checked("sd_event_wait", unsafe sd_event_wait(event, 0)) > 0
    {
      try checked("sd_event_dispatch", unsafe sd_event_dispatch(event))
    }
    if unsafe sd_event_get_state(event) == Int32(SD_EVENT_INITIAL),
      try checked("sd_event_prepare", unsafe sd_event_prepare(event)) > 0
    {
      try checked("sd_event_dispatch", unsafe sd_event_dispatch(event))
      // It is not prepared now.
      isDue = true
    }
  }

  /// Ends ``run(beside:)`` once the handlers of this turn have returned.
  package func exit(status: Int32) {
    // Fails only for a loop that has ended.
    _ = unsafe sd_event_exit(event, status)
    wake()
  }

  /// Calls `handler` for each change in a folder (sd_event_add_inotify(3)); symbolic links to the folder are followed.
  ///
  /// It watches what the path stands for now. Reading the folder, or a file in it, is no change.
  /// - Throws: ENOENT where nothing is there, ENOTDIR where it is no folder.
  package func watch(folder path: String, _ handler: @escaping (FolderChange) -> Void) throws(SystemdError)
    -> EventSource
  {
    try unsafe add("sd_event_add_inotify \(path)", .folder(handler)) { slot, argument in
      unsafe sd_event_add_inotify(
        event, slot, path, FolderChange.mask,
        { _, record, argument in unsafe EventSource.fire(argument, FolderChange(record)) }, argument)
    }
  }

  /// Calls `handler` for each of the signal, which has to be blocked in every thread.
  package func watch(signal: Int32, _ handler: @escaping () -> Void) throws(SystemdError) -> EventSource {
    try unsafe add("sd_event_add_signal", .plain(handler)) { slot, argument in
      unsafe sd_event_add_signal(event, slot, signal, { _, _, argument in unsafe EventSource.fire(argument) }, argument)
    }
  }

  /// Calls `handler` once, that many microseconds from now; ``EventSource/arm(after:)`` sets it again.
  ///
  /// - Parameter accuracy: how much later it may be called, in microseconds, so that several timers wake the machine once;
  ///   0 for 250 ms.
  package func timer(
    after microseconds: UInt64, accuracy: UInt64 = 0, _ handler: @escaping () -> Void
  ) throws(SystemdError) -> EventSource {
    try unsafe add("sd_event_add_time_relative", .plain(handler)) { slot, argument in
      unsafe sd_event_add_time_relative(
        event, slot, CLOCK_MONOTONIC, microseconds, accuracy, { _, _, argument in unsafe EventSource.fire(argument) },
        argument
      )
    }
  }

  private func add(
    _ call: String, _ handler: EventSource.Handler,
    _ register: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutableRawPointer) -> Int32
  ) throws(SystemdError) -> EventSource {
    let source = EventSource(handler, of: self)
    var slot: OpaquePointer?
    wake()
    try checked(call, unsafe register(&slot, Unmanaged.passUnretained(source).toOpaque()))
    unsafe source.adopt(slot)
    return source
  }
}

/// One source of an ``EventLoop``; it ends when the last reference to it goes, which its own handler may let go of.
@safe package final class EventSource {
  fileprivate enum Handler {
    case plain(() -> Void)
    case folder((FolderChange) -> Void)
  }

  private let handler: Handler
  /// It holds none of its sources: whoever has one has the loop as well.
  private unowned let loop: EventLoop
  private var source: OpaquePointer?

  fileprivate init(_ handler: Handler, of loop: EventLoop) {
    self.handler = handler
    self.loop = loop
  }

  deinit { unsafe sd_event_source_disable_unref(source) }

  fileprivate func adopt(_ source: OpaquePointer?) { unsafe self.source = source }

  /// Calls the handler no more until it is armed again.
  package func disable() { _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)) }

  /// Sets a timer to fire once more, that many microseconds from now.
  package func arm(after microseconds: UInt64) {
    _ = unsafe sd_event_source_set_time_relative(source, microseconds)
    _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_ONESHOT))
    loop.wake()
  }

  /// libsystemd holds the source unretained: it is unregistered before the object goes. The handler may let go of the last
  /// reference, and libsystemd keeps its own part until the handler has returned, so this keeps the object as long.
  fileprivate static func fire(_ argument: UnsafeMutableRawPointer?, _ change: FolderChange? = nil) -> Int32 {
    guard let argument = unsafe argument else { return 0 }
    withExtendedLifetime(unsafe Unmanaged<EventSource>.fromOpaque(argument).takeUnretainedValue()) { source in
      switch source.handler {
      case .plain(let handler): handler()
      case .folder(let handler): if let change { handler(change) }
      }
    }
    return 0
  }
}
