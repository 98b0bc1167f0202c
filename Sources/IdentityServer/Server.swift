import IdentityCore
package import IdentityStore
import IdentityWire
package import LinuxSystem
import Sessions
package import Systemd

/// The loop thread's part of the daemon: connects the parts, and runs the turns of the loop.
///
/// sd-event handles signals, timers and watched folders. Connections are watched by an epoll set of their own, which
/// also contains sd-event's descriptor. A source of sd-event for each connection, or an epoll set nested in sd-event's,
/// would cost more than an answer does.
package final class Server {
  private let loop: EventLoop
  private let log: LogSink
  private let state: CommittedState
  private let uuids: FreshUUIDs
  private let writer: WriterChannel
  private let admission: Admission
  private let handover: Handover
  private let service: ConnectionService
  private let lifeCycle: LifeCycle
  private let uses: AppUses
  private let status: ManagerStatus
  private let commits: Commits
  private let turns: LoopTurns
  private let reloaded: ReloadedSettings
  /// The parts of the start; nil once the daemon has started.
  private var beginning: Beginning?

  /// Everything that ``start()`` needs only once.
  private struct Beginning: ~Copyable {
    let socketPath: String
    let store: Store
    let content: StoreContent
    let facts: StartFacts
    let lifetimes: Lifetimes
    let sources: WriterSources
    let folders: [String]
    /// The descriptors that the service manager has kept from the last run; nil if it keeps none.
    let kept: [(number: Int32, name: String)]?
  }

  /// Creates the parts of the daemon. Nothing is served or changed before ``start()``.
  ///
  /// - Parameters:
  ///   - store: the open store, which the writer takes over.
  ///   - listener: the listening socket.
  ///   - socketPath: the path of the socket, for messages.
  ///   - kept: the descriptors that the service manager has kept from the last run, each with its name; nil if the
  ///     service manager keeps none.
  ///   - sources: the writer's sources of facts about the system.
  ///   - restartStatus: the exit status on which the service manager starts the daemon again; nil if it would not.
  ///   - logBacklog: returns the numbers of log entries that wait, and that are missing.
  ///   - reload: reads the configuration again.
  package init(
    store: consuming Store, listener: consuming Descriptor, socketPath: String,
    kept: [(number: Int32, name: String)]?, sources: WriterSources, loop: EventLoop, settings: ServerSettings,
    restartStatus: Int32?, log: @escaping Log, logBacklog: @escaping () -> LogBacklog,
    reload: @escaping () throws(ConfigurationRefusal) -> ServerSettings
  ) throws {
    self.loop = loop
    self.log = LogSink(log)
    let log = self.log
    let content = store.takeContent()
    let lifetimes = CurrentLifetimes(Lifetimes(content.derivation, content.resumption, settings.proofs))
    let secretMemory = try store.makeSecretMemory()
    let (connections, known, measurements, lease) = (
      ConnectionTable(), KnownAnswers(), Measurements(), FleetLease()
    )
    let readiness = try ReadinessSet()
    let processes = PeerProcesses(readiness)
    state = CommittedState(
      content, keySource: store.keySource, proofKeyCipher: store.makeProofKeyCipher(), log: log)
    uuids = FreshUUIDs()
    writer = try WriterChannel()
    uses = AppUses(state, connections, writer, settings)
    admission = try Admission(
      readiness, connections, processes, uses, writer, measurements, listener: listener, loop: loop, log: log,
      settings: settings)
    handover = Handover(connections, uuids, log)
    let scheduler = TurnScheduler(connections, writer)
    let publisher = Publisher(state, connections, scheduler)
    let failures = CredentialFailures(connections, scheduler, loop, log, settings)
    let encoder = AnswerEncoder(
      state, connections, uuids, handover, measurements, failures, secretMemory: secretMemory)
    let answersToStatus = StatusAnswers(
      state, connections, lease, boot: lifetimes.value.boot, socketPath: socketPath, stateDirectory: store.folderPath,
      settings)
    let statistics = StatisticsAnswers(
      state, connections, writer, known, measurements, answersToStatus, logBacklog: logBacklog)
    let jobs = JobSubmission(connections, writer, publisher)
    let orders = ProofOrders(
      state, connections, scheduler, encoder, measurements, jobs, readiness: readiness, loop: loop)
    let proofs = ProofAnswers(
      state, connections, scheduler, encoder, measurements, jobs, lifetimes: lifetimes, loop: loop, orders: orders)
    let local = LocalRequests(
      state, publisher, encoder, status: answersToStatus, statistics: statistics, lifetimes: lifetimes, lease: lease,
      failures: failures)
    let dispatcher = RequestDispatcher(
      state, connections, scheduler, encoder, local: local, proofs: proofs, jobs: jobs, lifetimes: lifetimes,
      lease: lease, known: known, measurements: measurements, secretMemory: secretMemory)
    proofs.beginAgain = { [unowned dispatcher] (command, verb, connection) throws(Refusal) in
      try dispatcher.answer(.registry(command), verb, connection)
    }
    let closer = ConnectionCloser(
      connections, scheduler, local, publisher, handover, processes, measurements: measurements, readiness: readiness,
      loop: loop, log: log)
    failures.close = { [unowned closer] in closer.close($0) }
    let credentials = CredentialAnswers(
      connections, scheduler, dispatcher, encoder, measurements, loop: loop, lifetimes: lifetimes
    ) { [admission] in admission.mainProcess(of: $0, userID: $1) }
    service = ConnectionService(
      connections, scheduler, dispatcher, publisher, handover, processes, closer: closer, credentials: credentials,
      jobs: jobs, known: known, readiness: readiness)
    let arrivals = Arrivals(admission, connections, service, scheduler)
    let shutdown = Shutdown(
      connections, service, closer, handover, arrivals, uses, writer: writer, loop: loop, log: log,
      restartStatus: restartStatus)
    status = ManagerStatus(state, closer, log)
    lifeCycle = LifeCycle(state, shutdown, status, writer, uses, loop: loop, log: log, reload: reload)
    commits = Commits(
      state, known, uuids, lifetimes, admission, measurements, lifeCycle: lifeCycle, publisher: publisher)
    let answers = WriterAnswers(
      writer, commits, connections, scheduler, service, encoder, proofs: proofs, lease: lease,
      measurements: measurements, shutdown: shutdown)
    turns = LoopTurns(
      readiness, connections, scheduler, arrivals, processes, service, closer: closer, answers: answers,
      proofs: proofs, lifeCycle: lifeCycle, writer: writer, measurements: measurements, loop: loop, log: log,
      pollMicroseconds: settings.pollMicroseconds)
    reloaded = ReloadedSettings(
      admission, connections, writer, lifetimes, answersToStatus, uses, failures: failures, turns: turns)
    let facts = StartFacts(
      fingerprint: content.fingerprint, isSealedHere: content.isSealedHere,
      onMachineChange: settings.onMachineChange, onHardwareChange: settings.onHardwareChange, limits: settings.limits)
    beginning = Beginning(
      socketPath: socketPath, store: store, content: content, facts: facts, lifetimes: lifetimes.value,
      sources: sources, folders: settings.appDirectories, kept: kept)
  }

  // MARK: Start and run

  /// Commits what the start of the daemon changes, takes over the connections of the last run, and starts the writer.
  package func start() throws {
    guard let beginning = beginning.take() else { return }
    let content = beginning.content
    for notice in content.notices { log(.store(notice)) }
    if let fault = state.registry.itemFault { log(.itemsLocked(fault)) }
    uuids.resume(notBefore: content.events.last?.time ?? Timestamp(milliseconds: 0))
    let (folders, kept, socketPath) = (beginning.folders, beginning.kept, beginning.socketPath)
    try lifeCycle.watchFolders(folders, files: beginning.sources.files)
    try lifeCycle.watchState(beginning.store.folderPath)
    let writer = Writer(
      store: beginning.store, content: content, start: beginning.facts, lifetimes: beginning.lifetimes,
      sources: beginning.sources, outbox: self.writer.outbox, activity: self.writer.activity)
    commits.apply(writer.begin(folders))
    try turns.start()
    try uses.start(loop)
    try lifeCycle.start(
      apply: { [unowned self] in reloaded.apply($0) }, serveLast: { [unowned self] in turns.serveLast() })
    if let kept {
      try handover.begin(kept, lastEvent: state.events.last) { [service, admission] legacy in
        service.adopt(admission.readmit(legacy.socket, legacy.record.peer), legacy.record)
      }
    }
    try self.writer.start(writer)
    service.resume()
    log(.started(socket: socketPath))
  }

  /// Serves until a signal ends the daemon.
  ///
  /// - Returns: the exit status of the process.
  package func run() throws -> Int32 {
    status.announceReady()
    let exitStatus = try loop.run { waits in turns.run(waits: waits) }
    writer.join()
    ProcessMemory.keepUntilExit(state.registry)
    log(.stopped)
    return exitStatus
  }
}
