import CSystemd
import Glibc

/// The process's event loop (sd-event(3)). Everything on it runs in the thread that calls ``run()``.
@safe package final class EventLoop {
  private let event: OpaquePointer

  /// Makes a loop with no sources.
  package init() throws(SystemdError) {
    var event: OpaquePointer?
    try checked("sd_event_new", unsafe sd_event_new(&event))
    guard let event = unsafe event else { throw SystemdError(call: "sd_event_new", code: 12) }
    unsafe self.event = event
  }

  deinit { unsafe sd_event_unref(event) }

  /// Runs until ``exit(status:)``.
  ///
  /// - Returns: the status handed to it.
  package func run() throws(SystemdError) -> Int32 { try checked("sd_event_loop", unsafe sd_event_loop(event)) }

  /// Ends ``run()`` once the handlers of this turn have returned.
  package func exit(status: Int32) {
    // Fails only for a loop that has ended.
    _ = unsafe sd_event_exit(event, status)
  }

  /// Calls `handler` whenever the descriptor can be read. The descriptor has to outlive the source.
  package func watch(reading descriptor: Int32, _ handler: @escaping () -> Void) throws(SystemdError) -> EventSource {
    try unsafe add("sd_event_add_io", .plain(handler)) { slot, argument in
      unsafe sd_event_add_io(
        event, slot, descriptor, 0x001, { _, _, _, argument in unsafe EventSource.fire(argument) }, argument)
    }
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

  /// Calls `handler` once in each turn while the source is enabled. It starts disabled.
  ///
  /// - Parameter idly: whether it is called only in turns that have nothing else to do.
  package func deferred(idly: Bool = false, _ handler: @escaping () -> Void) throws(SystemdError) -> EventSource {
    let source = try unsafe add("sd_event_add_defer", .plain(handler)) { slot, argument in
      unsafe sd_event_add_defer(event, slot, { _, argument in unsafe EventSource.fire(argument) }, argument)
    }
    source.disable()
    if idly { try source.becomeIdle() }
    return source
  }

  private func add(
    _ call: String, _ handler: EventSource.Handler,
    _ register: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutableRawPointer) -> Int32
  ) throws(SystemdError) -> EventSource {
    let source = EventSource(handler)
    var slot: OpaquePointer?
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
  private var source: OpaquePointer?

  fileprivate init(_ handler: Handler) { self.handler = handler }

  deinit { unsafe sd_event_source_disable_unref(source) }

  fileprivate func adopt(_ source: OpaquePointer?) { unsafe self.source = source }

  /// Comes behind every other source (SD_EVENT_PRIORITY_IDLE, sd_event_source_set_priority(3)).
  fileprivate func becomeIdle() throws(SystemdError) {
    try checked("sd_event_source_set_priority", unsafe sd_event_source_set_priority(source, 100))
  }

  /// Calls the handler each time it is due.
  package func enable() { _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_ON)) }

  /// Calls the handler no more until it is enabled again.
  package func disable() { _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_OFF)) }

  /// Sets a timer to fire once more, that many microseconds from now.
  package func arm(after microseconds: UInt64) {
    _ = unsafe sd_event_source_set_time_relative(source, microseconds)
    _ = unsafe sd_event_source_set_enabled(source, Int32(SD_EVENT_ONESHOT))
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
