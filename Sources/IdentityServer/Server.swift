package import IdentityCore
package import IdentityStore
import IdentityWire
package import LinuxSystem
package import Systemd

/// What the administrator decides, as far as the loop has to know it.
package struct ServerSettings: Equatable, Sendable {
  /// The bounds of `[Limits]`.
  package var limits = Limits()
  /// The group of `AdminGroup=`, resolved.
  package var adminGroup: UInt32?

  /// The settings as shipped.
  package init() {}
}

/// The loop's side of the daemon: connections and the committed registry, all in one thread.
///
/// sd-event owns the process; the connections live in a readiness set of their own, which is one of its sources, because
/// a source of sd-event for each costs four times as much at fifty connections.
package final class Server {
  let loop: EventLoop
  let log: Log
  var settings: ServerSettings
  let socketPath: String
  let started = Timestamp(milliseconds: Clock.realtimeMilliseconds)
  let startedMonotonic = Clock.monotonicMicroseconds

  // What is answered from.
  var registry: Registry
  var condition: StoreCondition
  var connections = ConnectionTable()
  var entropy = Entropy()
  var sequence = UUIDSequence()

  // What a request goes through; kept so that one costs no allocation.
  var parser = WordParser()
  let table = VerbTable()
  var received = [UInt8](repeating: 0, count: Bound.lineLength)
  var spareOutput: [UInt8] = []
  var readyList: [ReadinessSet.Ready] = []

  let listener: Descriptor
  let readiness: ReadinessSet
  let inbox: Mailbox<WriterMessage>
  let outbox: Mailbox<WriterReport>
  let activity = WriterActivity()
  private var writerThread: Thread?

  // Sources of the loop; each lives as long as it is held here.
  var sources: [EventSource] = []
  var acceptSource: EventSource?
  var acceptAgain: EventSource?
  var turnSource: EventSource?
  var waitingForTurn: [ConnectionToken] = []
  var stopTimer: EventSource?
  /// Connections that are listened to for a last moment, oldest first.
  var draining: [(token: ConnectionToken, since: UInt64)] = []
  var drainTimer: EventSource?
  var watchdog: Watchdog?

  /// The daemon is on its way out: no new connection, no new request.
  var isStopping = false
  /// The writer was told to close the store.
  var hasSentStop = false
  /// When a refused connection was last logged, in microseconds of the monotonic clock.
  var lastLoggedRefusal: UInt64?
  /// What the service manager shows.
  var publishedStatus = ""

  /// Loads the state into the loop and starts the writer.
  ///
  /// - Parameters:
  ///   - store: opened; the writer takes it over.
  ///   - listener: where clients connect.
  ///   - socketPath: its path, for messages.
  ///   - sources: where the writer gets what the rules must not read by themselves.
  ///   - reload: reads the configuration again; it logs what it refuses and returns nil then.
  package init(
    store: consuming Store, listener: consuming Descriptor, socketPath: String, sources: WriterSources, loop: EventLoop,
    settings: ServerSettings, log: @escaping Log, reload: @escaping () -> ServerSettings?
  ) throws {
    self.loop = loop
    self.log = log
    self.settings = settings
    self.reload = reload
    self.socketPath = socketPath
    let content = store.takeContent()
    registry = content.registry
    condition = content.condition
    readiness = try ReadinessSet()
    inbox = try Mailbox(blocking: true)
    outbox = try Mailbox(blocking: false)
    self.listener = listener
    let writer = Writer(
      store: store, registry: registry, sources: sources, inbox: inbox, outbox: outbox, activity: activity)
    writerThread = try Thread(named: "writer") { writer.run() }
    for notice in content.notices { log(LogEvent.store(notice).entry) }
    try addSources()
  }

  let reload: () -> ServerSettings?

  /// Serves until a signal ends it.
  ///
  /// - Returns: the exit status of the process.
  package func run() throws -> Int32 {
    say(.started(socket: socketPath))
    announceReady()
    let status = try loop.run()
    if let thread = writerThread.take() { thread.join() }
    say(.stopped)
    return status
  }

  func say(_ event: LogEvent) { log(event.entry) }
}
