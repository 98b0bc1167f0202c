import CSystemd
import Glibc

/// The event loop of the process (sd-event(3)). All of its handlers run in the thread that runs the loop.
@safe package final class EventLoop {
  private let event: OpaquePointer
  /// Whether a source has become due, or the next wait has changed, since the last ``dispatch()``.
  private var isDue = true

  /// The descriptor that becomes readable when a source is due; see ``run(beside:)``.
  package var descriptor: Int32 { unsafe sd_event_get_fd(event) }

  package init() throws(SystemdError) {
    var event: OpaquePointer?
    try checked("sd_event_new", unsafe sd_event_new(&event))
    guard let event = unsafe event else { throw SystemdError(call: "sd_event_new", code: 12) }
    unsafe self.event = event
  }

  deinit { unsafe sd_event_unref(event) }

  /// Runs with nothing but its own sources until ``exit(status:)``.
  ///
  /// - Returns: the status passed to ``exit(status:)``.
  package func run() throws(SystemdError) -> Int32 {
    while unsafe sd_event_get_state(event) != Int32(SD_EVENT_FINISHED) {
      try checked("sd_event_run", unsafe sd_event_run(event, UInt64.max))
    }
    return try status()
  }

  /// Runs until ``exit(status:)``.
  ///
  /// - Parameter other: does the work outside the loop. If its argument is true, `other` waits in place of the loop,
  ///   for ``descriptor`` among others, and calls ``wake()`` when ``descriptor`` is readable (sd_event_prepare(3)).
  /// - Returns: the status passed to ``exit(status:)``.
  package func run(beside other: (_ waits: Bool) -> Void) throws(SystemdError) -> Int32 {
    while true {
      if isDue {
        try dispatch()
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

  /// Notes that a source is due, so that its handler runs before the next wait.
  package func wake() { isDue = true }

  /// Runs at most two due handlers, and prepares the next wait if no more are due.
  private func dispatch() throws(SystemdError) {
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
      // After a dispatch, the loop is not prepared for the next wait.
      isDue = true
    }
  }

  /// Ends the loop after the handlers of this turn have returned.
  package func exit(status: Int32) {
    // sd_event_exit() fails only for a loop that has ended.
    _ = unsafe sd_event_exit(event, status)
    wake()
  }

  /// Has the loop carry the traffic of a bus (sd_bus_attach_event(3)).
  func attach(bus: OpaquePointer) throws(SystemdError) {
    try checked("sd_bus_attach_event", unsafe sd_bus_attach_event(bus, event, 0))
    wake()
  }

  /// Calls `handler` for each change in a folder (sd_event_add_inotify(3)). Symbolic links to the folder are followed.
  ///
  /// The watch stays with the folder that the path leads to now. Reading the folder, or a file in
  /// the folder, is no change.
  ///
  /// - Throws: ENOENT if the path does not exist, ENOTDIR if the path does not lead to a folder.
  package func watch(folder path: String, _ handler: @escaping (FolderChange) -> Void) throws(SystemdError)
    -> EventSource
  {
    try unsafe add("sd_event_add_inotify \(path)", .folder(handler)) { slot, argument in
      unsafe sd_event_add_inotify(
        event, slot, path, FolderChange.mask,
        { _, record, argument in unsafe EventSource.fire(argument, FolderChange(record)) }, argument)
    }
  }

  /// Calls `handler` whenever a descriptor is readable, also at its end. The descriptor has to outlive the source.
  package func watch(readable number: Int32, _ handler: @escaping () -> Void) throws(SystemdError) -> EventSource {
    try unsafe add("sd_event_add_io", .plain(handler)) { slot, argument in
      unsafe sd_event_add_io(
        event, slot, number, UInt32(POLLIN), { _, _, _, argument in unsafe EventSource.fire(argument) }, argument)
    }
  }

  /// Calls `handler` each time the signal arrives. Every thread has to block the signal.
  package func watch(signal: Int32, _ handler: @escaping () -> Void) throws(SystemdError) -> EventSource {
    try unsafe add("sd_event_add_signal", .plain(handler)) { slot, argument in
      unsafe sd_event_add_signal(event, slot, signal, { _, _, argument in unsafe EventSource.fire(argument) }, argument)
    }
  }

  /// Calls `handler` once, after the given number of microseconds. ``EventSource/arm(after:)`` sets the timer again.
  ///
  /// - Parameter accuracy: how much later the handler may run, in microseconds, so that several timers wake the
  ///   machine once; 0 for 250 ms.
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

/// A source of an ``EventLoop``. The source ends with the last reference to it, which its own handler may release.
@safe package final class EventSource {
  fileprivate enum Handler {
    case plain(() -> Void)
    case folder((FolderChange) -> Void)
  }

  private let handler: Handler
  /// Unowned, because the loop holds none of its sources, and the owner of a source holds the loop as well.
  private unowned let loop: EventLoop
  private var source: OpaquePointer?

  fileprivate init(_ handler: Handler, of loop: EventLoop) {
    self.handler = handler
    self.loop = loop
  }

  deinit { unsafe sd_event_source_disable_unref(source) }

  fileprivate func adopt(_ source: OpaquePointer?) { unsafe self.source = source }

  /// Stops calls of the handler until the source is armed again.
  package func disable() { _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)) }

  /// Sets a timer to fire once more, after the given number of microseconds.
  package func arm(after microseconds: UInt64) {
    _ = unsafe sd_event_source_set_time_relative(source, microseconds)
    _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_ONESHOT))
    loop.wake()
  }

  /// Runs the handler of a source.
  ///
  /// libsystemd holds the source unretained, which is safe because the source is unregistered before the object is
  /// freed. The handler may release the last reference. libsystemd keeps its own part until the handler has returned,
  /// so this function keeps the object alive as long.
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
