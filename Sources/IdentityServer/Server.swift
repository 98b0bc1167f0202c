package import IdentityCore
package import IdentityStore
import IdentityWire
package import LinuxSystem
package import Systemd

/// The settings of the administrator that the loop uses.
package struct ServerSettings: Equatable, Sendable {
  /// The bounds of `[Limits]`.
  package var limits = Limits()
  /// The time for which the loop polls for events before it sleeps, in microseconds (`PollMicroseconds=`).
  package var pollMicroseconds: UInt64 = 0
  /// The group ID of `AdminGroup=`; nil if there is none.
  package var adminGroup: UInt32?
  /// The group ID of `MonitorGroup=`; nil if there is none.
  package var monitorGroup: UInt32?
  /// The policy for containers that no manifest admits.
  package var containers = ContainerPolicy.own
  /// The ranges of user IDs of regular users and of services.
  package var userRanges = UserRanges()
  /// The manifest folders, most important first.
  package var appDirectories: [String] = []
  /// The number of days without use after which an app without a manifest is uninstalled; nil for never.
  package var forgetUnusedDays: Int?
  /// The policy for the identifiers after a change of the machine-id, applied only when the daemon starts.
  package var onMachineChange = MachinePolicy.renew
  /// The policy for the identifiers after a change of the hardware under the same machine-id, applied only when the
  /// daemon starts.
  package var onHardwareChange = MachinePolicy.keep

  /// Creates the settings as shipped.
  package init() {}
}

/// The loop thread's part of the daemon: the connections and the committed registry.
///
/// sd-event handles signals, timers and watched folders. Connections are watched by an epoll set of their own, which
/// also contains sd-event's descriptor. A source of sd-event for each connection, or an epoll set nested in sd-event's,
/// would cost more than an answer does.
package final class Server {
  let loop: EventLoop
  let log: Log
  let logBacklog: () -> LogBacklog
  var settings: ServerSettings
  let socketPath: String
  /// The path of the state directory.
  let stateDirectory: String
  let started = Timestamp(milliseconds: Clock.realtimeMilliseconds)
  let startedMonotonic = Clock.monotonicMicroseconds

  // The state that answers come from.
  var registry: Registry
  var condition: StoreCondition
  /// The source from which the start read the store: the disk or the page cache.
  let storeSource: DiskReading.Source
  /// Whether startup has finished, so that the loop answers from its own registry. Before that, the writer answers.
  var isSettled = false
  var events: EventLog
  var attestation: AttestationRules { didSet { latestPeer = nil } }
  var manifestFaults: [String] = []
  let lifetimes: Lifetimes
  let surroundings: Surroundings
  let connections = ConnectionTable()
  var processes = PeerProcessTable()
  /// A pidfd of the process whose connection ended last. While any pidfd of a process is open, the kernel creates
  /// another one cheaply, and a process that connected once often connects again.
  var lastProcess: Descriptor?
  /// The peer that connected last.
  var latestPeer: AttestedPeer?
  /// Users whose ranges of subordinate users the writer was asked to look up.
  var rangeOwners: Set<UInt32> = []
  var freshUUIDs = FreshUUIDs()

  // Secrets are decrypted only in this thread's guarded memory.
  let secretMemory: SecretMemory
  /// The reader of secrets; nil if the writer has to be asked for each secret, as before its first report.
  var itemReader: ItemReader?
  var keySource: KeySource?
  /// The editions of items whose secrets have a fault that was logged already.
  var knownDamaged: Set<UUID> = []
  var upload = UploadSlot()

  // Parts of request processing, kept so that a request needs no allocation.
  var parser = WordParser()
  let table = VerbTable()
  /// The buffer for received bytes.
  let received = ByteBuffer(count: Bound.lineLength)
  var spareOutput: [UInt8] = []
  let known = KnownAnswers()
  let measurements = Measurements()
  /// The principals that wait for a turn.
  var waitingPrincipals: [PrincipalShare] = [] { didSet { waiting = waitingPrincipals.count } }
  /// The number of ``waitingPrincipals``.
  private(set) var waiting = 0
  /// Processes that have ended while they still had connections.
  var endedProcesses: [PeerProcessTable.Key] = [] { didSet { hasEndedProcesses = !endedProcesses.isEmpty } }
  private(set) var hasEndedProcesses = false

  let listener: Descriptor
  /// The descriptors that the loop waits for; see ``LoopToken``.
  let readiness: ReadinessSet
  let inbox: Mailbox<WriterMessage>
  /// Whether a turn is in progress. Requests to the writer are collected until the turn ends.
  var isInTurn = false
  /// Whether the inbox has requests that the writer was not woken for.
  var owesBell = false
  let outbox: Mailbox<WriterReport>
  let activity = WriterActivity()
  private var writerThread: Thread?

  // Sources of the loop. A source ends with the last reference to it.
  var sources: [EventSource] = []
  var acceptAgain: EventSource?
  var appFolders: AppFolders?
  var stopTimer: EventSource?
  /// Connections whose remaining input is discarded after their last answer.
  private(set) lazy var draining = DrainQueue(loop) { [unowned self] token in
    if let connection = connections[token] { close(connection) }
  }
  var watchdog: Watchdog?
  var useTimer: EventSource?
  var usedApps = UsedApps()

  // The state that the next run of the daemon takes over.
  var memory: HandoverMemory?
  /// New connections whose processes are not watched yet and that the service manager does not have yet.
  var fresh = TokenQueue()
  var freshTimer: EventSource?
  var handoverTimer: EventSource?
  /// The number of connections that are ready for the handover to the next run.
  var parked = 0

  /// The stage of the stop. Once it is not `running`, the daemon accepts no connection and reads no request.
  var stop = StopStage.running
  /// The time of the last logged refusal of a connection, in microseconds of the monotonic clock.
  var lastLoggedRefusal: UInt64?
  /// The status that the service manager shows; nil if it has to be sent again.
  var publishedStatus: PublishedStatus?

  /// Takes the store's content over and starts the writer.
  ///
  /// - Parameters:
  ///   - store: the open store, which the writer takes over.
  ///   - listener: the listening socket.
  ///   - socketPath: the path of the socket, for messages.
  ///   - kept: the descriptors that the service manager has kept from the last run, each with its name; nil if the
  ///     service manager keeps none.
  ///   - sources: the writer's sources of facts about the system.
  ///   - logBacklog: returns the numbers of log entries that wait and that were lost.
  ///   - reload: reads the configuration again. If the configuration is refused, logs the reason and returns nil.
  package init(
    store: consuming Store, listener: consuming Descriptor, socketPath: String,
    kept: [(number: Int32, name: String)]?, sources: WriterSources, loop: EventLoop, settings: ServerSettings,
    log: @escaping Log, logBacklog: @escaping () -> LogBacklog, reload: @escaping () -> ServerSettings?
  ) throws {
    self.loop = loop
    self.log = log
    self.logBacklog = logBacklog
    self.settings = settings
    self.reload = reload
    self.socketPath = socketPath
    stateDirectory = store.folderPath
    let content = store.takeContent()
    registry = content.registry
    condition = content.condition
    storeSource = content.source
    events = EventLog(content.events, last: content.registry.lastEvent, epoch: content.epoch)
    lifetimes = Lifetimes(store.derivation)
    surroundings = lifetimes.surroundings
    secretMemory = try store.makeSecretMemory()
    keySource = store.keySource
    readiness = try ReadinessSet()
    inbox = try Mailbox(blocking: true)
    outbox = try Mailbox(blocking: false)
    self.listener = listener
    attestation = try AttestationRules(settings)
    let start = StartFacts(
      fingerprint: content.fingerprint, isSealedHere: content.isSealedHere,
      onMachineChange: settings.onMachineChange, onHardwareChange: settings.onHardwareChange, limits: settings.limits)
    let writer = Writer(
      store: store, content: content, start: start, lifetimes: lifetimes, sources: sources, inbox: inbox,
      outbox: outbox, activity: activity)
    for notice in content.notices { log(LogEvent.store(notice).entry) }
    if let fault = registry.itemFault { log(LogEvent.itemsLocked(fault).entry) }
    freshUUIDs.resume(notBefore: content.events.last?.time ?? Timestamp(milliseconds: 0))
    // Watches before the first survey, so that a manifest added during the survey is not missed.
    appFolders = try AppFolders(
      settings.appDirectories, files: sources.files, loop: loop, clock: { Clock.monotonicMicroseconds },
      survey: { [unowned self] in inbox.send(.survey($0)) },
      warn: { [unowned self] in say(.manifestFault($0)) })
    take(writer.begin(settings.appDirectories))
    try addSources()
    if let kept { try takeOver(kept) }
    writerThread = try Thread(named: "writer") { writer.run() }
    resume()
  }

  let reload: () -> ServerSettings?

  /// Serves until a signal ends it.
  ///
  /// - Returns: the exit status of the process.
  package func run() throws -> Int32 {
    say(.started(socket: socketPath))
    announceReady()
    let status = try loop.run { waits in turn(waits: waits) }
    if let thread = writerThread.take() { thread.join() }
    say(.stopped)
    return status
  }

  func say(_ event: LogEvent) { log(event.entry) }
}
