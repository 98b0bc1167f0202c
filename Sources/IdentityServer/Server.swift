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
  private let socketPath: String
  private let state: CommittedState
  private let writer: WriterChannel
  private let connections = ConnectionTable()
  private let known = KnownAnswers()
  private let measurements = Measurements()
  private let uuids = FreshUUIDs()
  /// The descriptors that the loop waits for; see ``LoopToken``.
  private let readiness: ReadinessSet
  private let processes: PeerProcesses
  private let new: NewConnections
  private let uses: AppUses
  private let admission: Admission
  private let handover: Handover
  private let scheduler: TurnScheduler
  private let publisher: Publisher
  private let failures: CredentialFailures
  private let encoder: AnswerEncoder
  private let status: StatusAnswers
  private let lease = FleetLease()
  private let closer: ConnectionCloser
  private let proofs: ProofAnswers
  private let dispatcher: RequestDispatcher
  private let service: ConnectionService
  private let lifeCycle: LifeCycle
  /// Whether a connection waits to be accepted.
  private var hasArrival = false
  /// The time for which the loop polls for events before it sleeps, in microseconds (`PollMicroseconds=`).
  private var pollMicroseconds: UInt64
  /// The parts of the start; nil once the daemon has started.
  private var beginning: Beginning?

  /// Everything that ``start()`` needs only once.
  private struct Beginning: ~Copyable {
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
    self.socketPath = socketPath
    pollMicroseconds = settings.pollMicroseconds
    let log = self.log
    let content = store.takeContent()
    let lifetimes = Lifetimes(store.derivation, store.resumption, settings.proofs)
    let secretMemory = try store.makeSecretMemory()
    state = CommittedState(
      content, keySource: store.keySource, proofKeyCipher: store.makeProofKeyCipher(), log: log)
    writer = try WriterChannel()
    readiness = try ReadinessSet()
    processes = PeerProcesses(readiness)
    new = NewConnections(connections)
    uses = AppUses(state, connections, writer, settings)
    admission = try Admission(
      listener, readiness, connections, processes, uses, writer, measurements, loop, log, settings)
    handover = Handover(connections, uuids, log)
    scheduler = TurnScheduler(connections, writer)
    publisher = Publisher(state, connections, scheduler)
    failures = CredentialFailures(connections, scheduler, loop, log, settings)
    encoder = AnswerEncoder(state, connections, secretMemory, uuids, handover, measurements, failures)
    status = StatusAnswers(
      state, connections, lease, boot: lifetimes.boot, socketPath: socketPath, stateDirectory: store.folderPath,
      settings)
    let statistics = StatisticsAnswers(
      state, connections, writer, known, measurements, status, logBacklog: logBacklog)
    proofs = ProofAnswers(state, connections, scheduler, encoder, measurements, readiness, loop)
    dispatcher = RequestDispatcher(
      state, connections, scheduler, writer, publisher, encoder, status, statistics, known, measurements, lifetimes,
      lease, secretMemory, failures, proofs)
    proofs.submit = { [unowned dispatcher] (command, verb, connection) throws(Refusal) in
      try dispatcher.submit(.registry(command), verb, of: connection)
    }
    proofs.beginAgain = { [unowned dispatcher] (command, verb, connection) throws(Refusal) in
      try dispatcher.answer(.registry(command), verb, connection)
    }
    closer = ConnectionCloser(
      connections, scheduler, dispatcher, publisher, handover, processes, measurements, readiness, loop, log)
    failures.close = { [unowned closer] in closer.close($0) }
    let credentials = CredentialAnswers(
      connections, scheduler, dispatcher, encoder, measurements, loop
    ) { [admission] in admission.mainProcess(of: $0, userID: $1) }
    service = ConnectionService(
      connections, scheduler, dispatcher, encoder, publisher, handover, processes, closer, credentials, known, readiness
    )
    lifeCycle = LifeCycle(
      state, connections, service, closer, handover, writer, uses, loop, log, restartStatus: restartStatus,
      reload: reload)
    let facts = StartFacts(
      fingerprint: content.fingerprint, isSealedHere: content.isSealedHere,
      onMachineChange: settings.onMachineChange, onHardwareChange: settings.onHardwareChange, limits: settings.limits)
    beginning = Beginning(
      store: store, content: content, facts: facts, lifetimes: lifetimes, sources: sources,
      folders: settings.appDirectories, kept: kept)
  }

  // MARK: Start and run

  /// Commits what the start of the daemon changes, takes over the connections of the last run, and starts the writer.
  package func start() throws {
    guard let beginning = beginning.take() else { return }
    let content = beginning.content
    for notice in content.notices { log(.store(notice)) }
    if let fault = state.registry.itemFault { log(.itemsLocked(fault)) }
    uuids.resume(notBefore: content.events.last?.time ?? Timestamp(milliseconds: 0))
    let (folders, kept) = (beginning.folders, beginning.kept)
    try lifeCycle.watchFolders(folders, files: beginning.sources.files)
    try lifeCycle.watchState(beginning.store.folderPath)
    let writer = Writer(
      store: beginning.store, content: content, start: beginning.facts, lifetimes: beginning.lifetimes,
      sources: beginning.sources, inbox: self.writer.inbox, outbox: self.writer.outbox,
      activity: self.writer.activity)
    apply(writer.begin(folders))
    try addSources()
    if let kept {
      try handover.begin(kept, lastEvent: state.events.last) { [service, admission] legacy in
        service.adopt(admission.readmit(legacy.socket, legacy.record.peer), legacy.record)
      }
    }
    try self.writer.start(writer)
    service.resume()
  }

  private func addSources() throws {
    try admission.open()
    // Edge-triggered: each ring is reported once, so the bell need not be reset, which would take another system call.
    try readiness.add(writer.reportDescriptor, [.read, .once], token: LoopToken.reports)
    try readiness.add(loop.descriptor, .read, token: LoopToken.sources)
    try lifeCycle.watchMounts(in: readiness)
    try new.start(loop) { [unowned self] in scheduler.enqueueNew($0) }
    try uses.start(loop)
    try lifeCycle.start(apply: { [unowned self] in apply($0) }, serveLast: { [unowned self] in serveLast() })
  }

  /// Serves until a signal ends the daemon.
  ///
  /// - Returns: the exit status of the process.
  package func run() throws -> Int32 {
    log(.started(socket: socketPath))
    lifeCycle.announceReady()
    let exitStatus = try loop.run { waits in turn(waits: waits) }
    writer.join()
    ProcessMemory.keepUntilExit(state.registry)
    log(.stopped)
    return exitStatus
  }

  /// Applies the settings of a reloaded configuration. After a refusal, only `status` changes.
  private func apply(_ reloaded: Result<ServerSettings, ConfigurationRefusal>) {
    let settings: ServerSettings
    switch reloaded {
    case .success(let new): settings = new
    case .failure(let refusal): return status.note(refusal)
    }
    pollMicroseconds = settings.pollMicroseconds
    admission.use(settings)
    connections.use(settings.limits)
    writer.send(.limits(settings.limits))
    dispatcher.lifetimes.proofs = settings.proofs
    writer.send(.proofs(settings.proofs))
    status.use(settings)
    uses.use(settings)
    failures.use(settings)
  }

  // MARK: Turns

  /// Runs one turn of the loop: takes in the kernel's events, then gives a turn to each principal with pending work, then
  /// accepts a connection.
  ///
  /// Requests that are here already so never wait for one that only connects, nor for more than one.
  ///
  /// - Parameter waits: whether to wait if there is nothing to do.
  private func turn(waits: Bool) {
    let waiting = scheduler.waiting
    writer.inTurn { takeNews(waits: waits && waiting == 0) }
    if scheduler.waiting > 0 { scheduler.giveTurns(behind: waiting, service) }
    if hasArrival {
      hasArrival = false
      writer.inTurn { acceptOne() }
    }
    measurements.endTurn()
    // After their connections were served: most connections have ended together with their process.
    if processes.hasOrphans { for token in processes.takeOrphans() { closer.orphan(token) } }
    if closer.stage != .running { lifeCycle.closeStoreIfDone() }
  }

  /// Takes in events from the kernel.
  ///
  /// If several principals are connected, takes in all events, so that no request waits behind a list of events of
  /// other principals. If only one is connected, takes in one batch, so that the events of that principal do not keep
  /// the loop from other work.
  ///
  /// - Parameter isLast: whether to take in all events in any case.
  private func takeNews(waits: Bool, isLast: Bool = false) {
    var count = 0
    var looks = 0
    repeat {
      do {
        count = try waits && count == 0 ? waitForNews() : readiness.wait(false)
      } catch {
        return log(.notServing("\(error)"))
      }
      if looks == 0 { measurements.beginTurn() }
      takeIn(count)
      looks += 1
    } while count == ReadinessSet.room && looks < Bound.looksAtOnce && (isLast || connections.isShared)
  }

  /// Waits for events. Busy-polls for `PollMicroseconds` before it sleeps.
  ///
  /// Going to sleep and waking up can take longer than an answer, above all in a virtual machine.
  private func waitForNews() throws(SystemError) -> Int {
    if pollMicroseconds > 0 {
      let started = Clock.monotonicMicroseconds
      repeat {
        let count = try readiness.wait(false)
        if count > 0 { return count }
      } while Clock.monotonicMicroseconds - started < pollMicroseconds
    }
    return try readiness.wait(true)
  }

  /// Takes in the events of the last wait.
  ///
  /// A ready connection is served at once, without a queue, if nobody waits for a turn and no other principal can
  /// become ready. The latter holds if there is only one event, or if only one principal is connected. After the length
  /// of a turn, the remaining connections are queued.
  private func takeIn(_ count: Int) {
    var isTurn = count == 1 || !connections.isShared
    let started = count == 1 ? 0 : Clock.monotonicMicroseconds
    var untilLook = Bound.servedBetweenLooks
    for place in 0..<count {
      untilLook -= 1
      if untilLook == 0 {
        untilLook = Bound.servedBetweenLooks
        isTurn = isTurn && Clock.monotonicMicroseconds - started < connections.turn.microseconds
      }
      takeIn(readiness[place], isTurn: isTurn && scheduler.waiting == 0)
    }
  }

  private func takeIn(_ ready: ReadinessSet.Ready, isTurn: Bool) {
    if let connection = connections[ConnectionToken(rawValue: ready.token)] {
      return service.takeIn(ready.interest, of: connection, isTurn: isTurn)
    }
    switch ready.token {
    case LoopToken.listener: hasArrival = true
    case LoopToken.reports: takeReports()
    case LoopToken.sources: loop.wake()
    case LoopToken.mounts: lifeCycle.noteMount()
    case LoopToken.proofs: writer.inTurn { proofs.takeAnswers() }
    default: if let key = LoopToken.process(of: ready.token) { processes.noteEnd(of: key) }
    }
  }

  /// Accepts a pending connection, if there is one, and serves its first turn. If its principal has no time left, the
  /// connection is only watched, and served in a turn of the principal.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  private func acceptOne() -> Bool {
    admission.acceptOne { connection in
      new.append(connection)
      if connections.isOverdrawn(connection.share) {
        service.beginToWatch(connection)
      } else {
        service.begin(connection)
      }
    }
  }

  /// Accepts the connections and serves the requests that are pending when the daemon stops, and accepts no others.
  private func serveLast() {
    // Connections and requests made before the signal are in the sockets by now, so they are taken in once more.
    var accepted = 0
    while accepted < Bound.lastAccepts, acceptOne() { accepted += 1 }
    admission.close()
    takeNews(waits: false, isLast: true)
    scheduler.giveLastTurns(service)
  }

  // MARK: Reports of the writer

  /// Takes in the writer's reports: first the changes of the state, then the answers.
  private func takeReports() {
    var touched: [Connection] = []
    let reports = writer.takeReports()
    let now = Clock.monotonicMicroseconds
    for report in reports {
      apply(report)
      for outcome in report.outcomes {
        connections.finishJob(of: outcome.principal)
        measurements.record(outcome, at: now)
        // The client may have gone. Its changes are made all the same.
        guard let connection = connections[outcome.connection] else { continue }
        connection.session.finishJob()
        switch outcome.result {
        case .success(let answer):
          lease.settle(connection, isOpen: true)
          answerOrSign(answer, outcome.verb, connection)
        case .failure(let refusal):
          lease.settle(connection, isOpen: false)
          encoder.refuse(refusal, to: connection)
        }
        if touched.last !== connection { touched.append(connection) }
      }
      if report.hasStopped {
        for connection in new.takeAll() { scheduler.enqueueNew(connection) }
        for share in connections.allShares { service.establish(of: share, atMost: .max) { false } }
        handover.finish()
        return loop.exit(status: lifeCycle.exitStatus)
      }
    }
    // A connection may be in the list more than once, which is harmless.
    for connection in touched where connections[connection.token] === connection {
      // If several principals are connected, sending the answers is part of the principal's turn.
      if connections.isShared { scheduler.enqueue(connection) } else { service.advance(connection) }
    }
  }

  /// Appends the writer's answer, or has the proof signed that is the answer.
  private func answerOrSign(_ answer: WriterReport.Answer, _ verb: Int, _ connection: Connection) {
    guard let statement = answer.reply.proof else { return encoder.append(answer, to: connection) }
    do throws(Refusal) {
      try proofs.sign(statement, verb, connection, dispatcher.lifetimes, isCounted: true)
    } catch {
      encoder.refuse(error, to: connection)
    }
  }

  /// Applies a report, whose changes are durable, to every part of the loop.
  private func apply(_ report: WriterReport) {
    known.forgetAll()
    state.apply(report)
    if let resumption = report.resumption {
      uuids.forgetReserve()
      dispatcher.lifetimes.resumption = resumption
    }
    if let survey = report.survey { admission.use(survey.claims) }
    if let subordinates = report.subordinates { admission.use(subordinates) }
    measurements.record(report)
    lifeCycle.note(report)
    if !report.events.isEmpty { publisher.startRound() }
  }
}
