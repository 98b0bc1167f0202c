package import IdentityCore
package import IdentityStore
import IdentityWire
package import LinuxSystem
package import Systemd

/// What the administrator decides, as far as the loop has to know it.
package struct ServerSettings: Equatable, Sendable {
  /// The bounds of `[Limits]`.
  package var limits = Limits()
  /// How long the loop looks again and again what there is before it sleeps, in microseconds.
  package var pollMicroseconds: UInt64 = 0
  /// The group of `AdminGroup=`, resolved.
  package var adminGroup: UInt32?
  /// The group of `MonitorGroup=`, resolved; nil for nobody.
  package var monitorGroup: UInt32?
  /// The policy for containers that no manifest admits.
  package var containers = ContainerPolicy.own
  /// Which users are regular ones.
  package var userRanges = UserRanges()
  /// The folders of manifests, most important first.
  package var appDirectories: [String] = []
  /// After how many days without use an app without a manifest is uninstalled; nil for never.
  package var forgetUnusedDays: Int?
  /// What becomes of the identifiers on another machine; looked at when the daemon starts.
  package var onMachineChange = MachinePolicy.renew
  /// The same for other hardware under the same machine-id.
  package var onHardwareChange = MachinePolicy.keep

  /// The settings as shipped.
  package init() {}
}

/// The loop's side of the daemon: connections and the committed registry, all in one thread.
///
/// sd-event owns the process. The connections live in a readiness set of their own, and sd-event's descriptor is one of
/// those in it: a source of sd-event for each connection, or a set within a set, costs more than an answer does.
package final class Server {
  let loop: EventLoop
  let log: Log
  let logBacklog: () -> LogBacklog
  var settings: ServerSettings
  let socketPath: String
  /// The folder with all state.
  let stateDirectory: String
  let started = Timestamp(milliseconds: Clock.realtimeMilliseconds)
  let startedMonotonic = Clock.monotonicMicroseconds

  // What is answered from.
  var registry: Registry
  var condition: StoreCondition
  /// What the start read the store from.
  let storeSource: DiskReading.Source
  /// The start is done, and questions are answered from the registry here. Before, the writer has to see them.
  var isSettled = false
  var events: EventLog
  var attestation: AttestationRules { didSet { latestPeer = nil } }
  var manifestFaults: [String] = []
  let lifetimes: Lifetimes
  let surroundings: Surroundings
  let connections = ConnectionTable()
  var processes = PeerProcessTable()
  /// The process behind the connection that ended last: as long as one descriptor of a process is held, it is cheap for
  /// the kernel to make another, and who connected often connects again.
  var lastProcess: Descriptor?
  /// Who connected last.
  var latestPeer: AttestedPeer?
  /// Users whose ranges of subordinate users the writer was asked to find.
  var rangeOwners: Set<UInt32> = []
  var entropy = Entropy()
  var sequence = UUIDSequence()

  // Secrets: open in this thread's guarded memory alone.
  let secretMemory: SecretMemory
  /// Nil where the writer is asked for each, as before its first report.
  var itemReader: ItemReader?
  var keySource: KeySource?
  /// The editions of items whose secrets are known to be damaged.
  var knownDamaged: Set<UUID> = []
  /// A backup that is being handed in; one at a time, because it takes memory.
  var upload: (token: ConnectionToken, backup: BackupUpload)? { didSet { hasUpload = upload != nil } }
  private(set) var hasUpload = false

  // What a request goes through; kept so that one costs no allocation.
  var parser = WordParser()
  let table = VerbTable()
  /// What was read last.
  let received = ByteBuffer(count: Bound.lineLength)
  var spareOutput: [UInt8] = []
  let known = KnownAnswers()
  let measurements = Measurements()
  /// Users who wait for their turn.
  var waitingUsers: [PrincipalShare] = [] { didSet { waiting = waitingUsers.count } }
  /// How many they are.
  private(set) var waiting = 0
  /// Processes that have ended, whose connections are still there.
  var endedProcesses: [PeerProcessTable.Key] = [] { didSet { hasEndedProcesses = !endedProcesses.isEmpty } }
  private(set) var hasEndedProcesses = false

  let listener: Descriptor
  /// Everything that the loop waits for; see ``LoopToken``.
  let readiness: ReadinessSet
  let inbox: Mailbox<WriterMessage>
  /// Requests to the writer are collected until the turn ends.
  var isInTurn = false
  /// There are some that the writer was not told of.
  var owesBell = false
  let outbox: Mailbox<WriterReport>
  let activity = WriterActivity()
  private var writerThread: Thread?

  // Sources of the loop; each lives as long as it is held here.
  var sources: [EventSource] = []
  var acceptAgain: EventSource?
  var appFolders: AppFolders?
  var stopTimer: EventSource?
  /// Connections that are listened to for a last moment, oldest first.
  var draining: [(token: ConnectionToken, since: UInt64)] = []
  var drainTimer: EventSource?
  var watchdog: Watchdog?
  var useTimer: EventSource?
  /// Apps without a manifest with a new connection since the writer was told last.
  var usedApps: Set<Text> = []
  /// The writer was told: this is a day on which the daemon ran.
  var hasRecordedUses = false

  // What the next run of the daemon goes on with.
  var memory: HandoverMemory?
  /// Connections so new that their processes are not watched and the service manager does not have them.
  var fresh = TokenQueue()
  var freshTimer: EventSource?
  var handoverTimer: EventSource?
  /// Whether a stop leaves the connections to the next run.
  var handsOver: Bool { memory != nil }
  /// A stop waits no longer for clients to take their output.
  var isHandoverDue = false
  /// How many connections are left to the next run already.
  var parked = 0

  /// The daemon is on its way out: no new connection, no new request.
  var isStopping = false
  /// The writer was told to close the store.
  var hasSentStop = false
  /// When a refused connection was last logged, in microseconds of the monotonic clock.
  var lastLoggedRefusal: UInt64?
  /// What the service manager shows.
  var publishedStatus: PublishedStatus?

  /// Loads the state into the loop and starts the writer.
  ///
  /// - Parameters:
  ///   - store: opened; the writer takes it over.
  ///   - listener: where clients connect.
  ///   - socketPath: its path, for messages.
  ///   - kept: what the service manager has kept from the last run, each with its name; nil where it keeps nothing.
  ///   - sources: where the writer gets what the rules must not read by themselves.
  ///   - logBacklog: what became of what was logged.
  ///   - reload: reads the configuration again; it logs what it refuses and returns nil then.
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
    sequence.resume(notBefore: content.events.last?.time ?? Timestamp(milliseconds: 0))
    // Watched first, so that no manifest that comes during the first look is missed.
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
