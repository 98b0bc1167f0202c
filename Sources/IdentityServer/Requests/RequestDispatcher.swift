import Attestation
import Glibc
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions

/// Answers requests, or sends them to the writer.
final class RequestDispatcher {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let writer: WriterChannel
  private let publisher: Publisher
  private let encoder: AnswerEncoder
  private let status: StatusAnswers
  private let statistics: StatisticsAnswers
  private let known: KnownAnswers
  private let measurements: Measurements
  /// Replaced after a resumption from a snapshot.
  var lifetimes: Lifetimes { didSet { surroundings = lifetimes.surroundings } }
  private let lease: FleetLease
  private var surroundings: Surroundings
  private let secretMemory: SecretMemory
  private let failures: CredentialFailures
  private let proofs: ProofAnswers
  private let table = VerbTable()
  /// Kept, so that a request needs no allocation.
  private var parser = WordParser()
  private var upload = UploadSlot()

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ writer: WriterChannel,
    _ publisher: Publisher, _ encoder: AnswerEncoder, _ status: StatusAnswers, _ statistics: StatisticsAnswers,
    _ known: KnownAnswers, _ measurements: Measurements, _ lifetimes: Lifetimes, _ lease: FleetLease,
    _ secretMemory: SecretMemory, _ failures: CredentialFailures, _ proofs: ProofAnswers
  ) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
    self.writer = writer
    self.publisher = publisher
    self.encoder = encoder
    self.status = status
    self.statistics = statistics
    self.known = known
    self.measurements = measurements
    self.lifetimes = lifetimes
    self.lease = lease
    surroundings = lifetimes.surroundings
    self.secretMemory = secretMemory
    self.failures = failures
    self.proofs = proofs
  }

  /// Answers one request line, or sends the request to the writer.
  ///
  /// - Returns: false if the request must wait: for earlier changes of the connection, or for the end of another list.
  ///   The caller then passes the line again later.
  func dispatch(_ line: borrowing Span<UInt8>, of connection: Connection) -> Bool {
    guard line.count > 0 else { return true }
    var verb = Measurements.noVerb
    do {
      try parse(line)
      let match = try table.match(parser, in: line)
      verb = match.place
      let command = try table.command(of: match, parser, in: line, by: connection.peer, secrets: secretMemory)
      let start = connection.output.count
      let jobs = connection.session.jobs
      switch command {
      case .local(let command):
        // Answers keep the order of the requests.
        guard !connection.session.isAtWriter else { return false }
        if command.isListing, !scheduler.mayList(connection) { return false }
        try answer(command, verb, connection)
      case .registry(let command):
        guard try carryOut(command, verb, connection) else { return false }
      case .store(.backup(let key)): try submit(.long(.backup(key: key)), verb, of: connection)
      case .store(.restore(let dryRun, let adoptsDevice)):
        // The upload is taken only after the connection's earlier requests are answered.
        guard !connection.session.isAtWriter else { return false }
        let upload = try upload.take(by: connection.token)
        try submit(.long(.restore(upload, dryRun: dryRun, adoptsDevice: adoptsDevice)), verb, of: connection)
      case .store(let command): try submit(.store(command), verb, of: connection)
      }
      if command.hasStandingAnswer, !connection.session.isAtWriter {
        known.keep(line, verb: verb, of: connection.held.number, connection.output, from: start)
      }
      // A request at the writer is counted when its answer arrives, and a search or a list when it ends.
      if connection.session.jobs == jobs, !connection.isCountedLater { measurements.countAnswer(to: verb, nil) }
    } catch {
      // A refusal keeps the order too: the line is dispatched again after the earlier answers.
      guard !connection.session.isAtWriter else { return false }
      lease.settle(connection, isOpen: false)
      let foreign = foreignProtocol(of: line, connection)
      let refusal = foreign.map(Refusal.syntax) ?? error
      refusal.append(to: &connection.output)
      measurements.countAnswer(to: verb, refusal.code)
      if foreign != nil { connection.session.close() }
    }
    connection.session.countRequests()
    return true
  }

  /// Carries out a request to the registry: answers it, begins a search, or sends it to the writer.
  ///
  /// - Returns: false if the request must wait; see ``dispatch(_:of:)``.
  private func carryOut(_ command: RegistryCommand, _ verb: Int, _ connection: Connection) throws(Refusal) -> Bool {
    let kind = command.rule.answerKind
    switch kind {
    case .list, .search:
      // A list that waits behind a change would be held in memory as a whole, and a search would not see the change.
      if connection.session.isAtWriter || !scheduler.mayList(connection) { return false }
    case .lease:
      // Its conflict is answered here, so it keeps the order of the answers.
      if connection.session.isAtWriter { return false }
      try state.registry.requireRight(of: command, for: connection.peer)
      try lease.take(for: connection)
    case .proof:
      // Answers keep the order of the requests.
      if connection.session.isAtWriter { return false }
      try proofs.begin(command, verb, connection, lifetimes)
      return true
    case .plain, .standing, .secret, .steps: break
    }
    if !connection.session.isAtWriter, state.isStarted {
      if kind == .search, let search = try state.registry.search(command, for: connection.peer) {
        try goOn(search, verb, connection)
        return true
      }
      if try answer(command, verb, connection) { return true }
    }
    try submit(.registry(command), verb, of: connection)
    return true
  }

  /// Answers a request to the registry, if it needs no change.
  ///
  /// - Returns: whether the answer is in the output, or begun.
  private func answer(_ command: RegistryCommand, _ verb: Int, _ connection: Connection) throws(Refusal) -> Bool {
    guard let reply = try state.registry.answer(command, for: connection.subject, in: surroundings),
      try encoder.append(reply, verb, to: connection)
    else { return false }
    if command.rule.answerKind == .lease { lease.settle(connection, isOpen: true) }
    return true
  }

  // MARK: Searches

  /// Continues the long answer or the search of a connection by a piece.
  func goOn(_ connection: Connection) {
    guard case .search(let search, let verb)? = connection.outgoing else {
      return encoder.appendPiece(to: connection)
    }
    do throws(Refusal) {
      try goOn(search, verb, connection)
      // The answer was counted neither at the writer nor with the end of a list.
      if connection.outgoing == nil, !connection.session.isAtWriter { measurements.countAnswer(to: verb, nil) }
    } catch {
      error.append(to: &connection.output)
      measurements.countAnswer(to: verb, error.code)
    }
  }

  /// Continues a search until the time of a turn is over. At its end, carries out the request with the objects found.
  private func goOn(_ search: ObjectSearch, _ verb: Int, _ connection: Connection) throws(Refusal) {
    var search = search
    let end = Clock.monotonicMicroseconds + connections.turn.microseconds
    repeat {
      var effort = Bound.elementsBetweenLooks
      if let found = search.command(&effort) {
        connection.goOn(with: nil)
        if try !answer(found, verb, connection) { try submit(.registry(found), verb, of: connection) }
        return
      }
    } while Clock.monotonicMicroseconds < end
    connection.begin(.search(search, verb: verb))
  }

  private func parse(_ line: borrowing Span<UInt8>) throws(Refusal) {
    do {
      try parser.parse(line)
    } catch {
      throw .syntax(error)
    }
  }

  /// Returns the fault of a refused line if it is of another protocol, in which the client cannot go on.
  private func foreignProtocol(of line: borrowing Span<UInt8>, _ connection: Connection) -> SyntaxFault? {
    if HTTPRequest.hasLine(line) { return .http }
    return connection.session.requests == 0 && line[0] == UInt8(ascii: "{") ? .json : nil
  }

  /// Answers input of which no request can be made.
  func refuse(_ fault: Session.InputFault, _ connection: Connection) {
    let refusal: Refusal =
      switch fault {
      case .tooLong: .tooLong(limit: connection.share.limits.lineLength)
      case .json: .syntax(.json)
      }
    refusal.append(to: &connection.output)
    measurements.countAnswer(to: Measurements.noVerb, refusal.code)
  }

  /// Drops the upload of a connection that has closed, its lease, and its place among the failing answers.
  func forget(_ connection: Connection) {
    if upload.isTaken { upload.drop(of: connection.token) }
    lease.end(of: connection)
    failures.end(for: connection)
  }

  /// Answers a service manager, or sends its request to the writer.
  func answer(_ command: Command, _ verb: Int, _ connection: Connection) throws(Refusal) {
    switch command {
    case .local(let command): try answer(command, verb, connection)
    case .registry(let command): _ = try carryOut(command, verb, connection)
    case .store(let command): try submit(.store(command), verb, of: connection)
    }
  }

  /// Has the writer record the time of a backup, once the client has read all of it. The connection then goes on.
  ///
  /// The connection also goes on, without a record, if the client has closed it before, or if nobody waits any more:
  /// requests that it sent completely are still carried out.
  ///
  /// - Parameter waits: whether a later call may find that the client has read more.
  /// - Throws: the error of the socket.
  func recordBackup(of connection: Connection, waits: Bool) throws(SystemError) {
    guard !connection.hasUnsentOutput else { return }
    do {
      if try connection.descriptor.isAllReadByPeer() {
        if let made = connection.endReading() { writer.send(.backupTaken(made)) }
      } else if !waits {
        _ = connection.endReading()
      }
    } catch  where error.code == ECONNRESET {
      _ = connection.endReading()
      publisher.endSubscription(of: connection)
    }
  }

  // MARK: The writer

  /// Sends a request to the writer.
  ///
  /// - Throws: `limit` if too many backups are in progress.
  func submit(_ work: Job.Work, _ verb: Int, of connection: Connection) throws(Refusal) {
    if case .long(.backup) = work {
      // Each backup is held in memory as a whole.
      guard connections.all.count(where: \.hasBackup) < Bound.backups else {
        throw .limit("\(Bound.backups) backups are under way, which is the limit; try again later")
      }
    }
    connection.session.sendJob(last: work.exclusiveAnswer)
    connections.beginJob(of: connection)
    writer.submit(
      Job(
        connection: connection.token, work: work, verb: verb, started: Clock.monotonicMicroseconds,
        peer: connection.subject, principal: connection.held.principal, isShared: connections.isShared))
  }

  // MARK: Local requests

  private func answer(_ command: LocalCommand, _ verb: Int, _ connection: Connection) throws(Refusal) {
    switch command {
    case .ping: Reply.done.append(to: &connection.output)
    case .hello: Reply.hello.append(to: &connection.output)
    case .help(let words): try VerbTable.help(words).append(to: &connection.output)
    case .whoami:
      let registry = state.registry
      let app = connection.peer.app
      try registry.requireRecord(of: app)
      Reply.whoami(
        connection.peer, vendor: registry.vendor(of: app), groups: registry.accessGroups(of: app),
        rights: registry.rights(of: app)
      ).append(to: &connection.output)
    case .said(let fleetState, let words):
      try state.registry.require(.fleet, of: connection.peer)
      try lease.say(fleetState, words, by: connection)
      Reply.done.append(to: &connection.output)
    case .check(let text): Reply.check(text).append(to: &connection.output)
    case .status: status.answer(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: false): statistics.answer(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: true): statistics.answerOfApps(for: connection).append(to: &connection.output)
    case .derived(let identifier):
      let reply = try lifetimes.answer(identifier, for: connection.subject, state.registry)
      _ = try encoder.append(reply, verb, to: connection)
    case .subscribe(let topics, let since, let snapshot):
      let reply = try publisher.subscribe(connection, to: topics, since: since, snapshot: snapshot)
      _ = try encoder.append(reply, verb, to: connection)
    case .unsubscribe(let topics): publisher.unsubscribe(connection, from: topics)
    case .compare(let left, let right, let order): Reply.compare(left, right, order).append(to: &connection.output)
    case .uuids(nil, let version): Reply.done(.uuid(try encoder.nextUUID(version))).append(to: &connection.output)
    case .uuids(let count?, let version):
      connection.begin(.uuids(left: count, of: count, version))
      encoder.appendPiece(to: connection)
    case .beginRestore(let key):
      try upload.begin(key, by: connection.token)
      Reply.done.append(to: &connection.output)
    case .addToRestore(let text):
      Reply.done(.number(Int64(try upload.add(text, by: connection.token)))).append(to: &connection.output)
    case .quit:
      Reply.done.append(to: &connection.output)
      connection.session.close()
    }
  }
}

extension Job.Work {
  /// The exclusive answer that this work leads to; nil if its answer is not exclusive.
  fileprivate var exclusiveAnswer: Session.ExclusiveAnswer? {
    switch self {
    case .registry(let command):
      switch command.rule.answerKind {
      case .secret: .secret
      // The signature follows.
      case .proof: .steps
      case .steps, .search: .steps
      case .plain, .list, .standing, .lease: nil
      }
    case .store: nil
    case .long(.backup): .backup
    case .long(.restore): .steps
    }
  }
}

extension LocalCommand {
  /// Whether the answer is written in pieces.
  fileprivate var isListing: Bool {
    switch self {
    case .uuids(count: .some, _), .subscribe(_, _, snapshot: true): true
    default: false
    }
  }
}

extension Connection {
  /// Whether the daemon holds a backup for the client, or makes one.
  fileprivate var hasBackup: Bool {
    switch session.answer {
    case .pieces(.backup), .writer(_, last: .backup): true
    default: false
    }
  }

  /// Whether a search or a list is in progress, which is counted when it ends.
  fileprivate var isCountedLater: Bool {
    if session.awaitsSignature { return true }
    return switch outgoing {
    case .search, .secrets, .reply: true
    case .uuids, .backup, .zeros, nil: false
    }
  }
}
