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
  private let encoder: AnswerEncoder
  private let local: LocalRequests
  private let proofs: ProofAnswers
  private let jobs: JobSubmission
  private let lifetimes: CurrentLifetimes
  private let lease: FleetLease
  private let known: KnownAnswers
  private let measurements: Measurements
  private let secretMemory: SecretMemory
  private let table = VerbTable()
  /// Kept, so that a request needs no allocation.
  private var parser = WordParser()

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ encoder: AnswerEncoder,
    local: LocalRequests, proofs: ProofAnswers, jobs: JobSubmission, lifetimes: CurrentLifetimes, lease: FleetLease,
    known: KnownAnswers, measurements: Measurements, secretMemory: SecretMemory
  ) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
    self.encoder = encoder
    self.local = local
    self.proofs = proofs
    self.jobs = jobs
    self.lifetimes = lifetimes
    self.lease = lease
    self.known = known
    self.measurements = measurements
    self.secretMemory = secretMemory
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
      verb = match.index
      let command = try table.command(of: match, parser, in: line, by: connection.peer, secrets: secretMemory)
      let start = connection.output.count
      let before = connection.session.jobs
      switch command {
      case .local(let command):
        // Answers keep the order of the requests.
        guard !connection.session.isAtWriter else { return false }
        if command.isListing, !scheduler.mayList(connection) { return false }
        try local.answer(command, verb, connection)
      case .registry(let command):
        guard try carryOut(command, verb, connection) else { return false }
      case .store(.backup(let key)): try jobs.submit(.long(.backup(key: key)), verb, of: connection)
      case .store(.restore(let dryRun, let adoptsDevice)):
        // The upload is taken only after the connection's earlier requests are answered.
        guard !connection.session.isAtWriter else { return false }
        let upload = try local.takeUpload(of: connection)
        try jobs.submit(.long(.restore(upload, dryRun: dryRun, adoptsDevice: adoptsDevice)), verb, of: connection)
      case .store(let command): try jobs.submit(.store(command), verb, of: connection)
      }
      if command.hasStandingAnswer, !connection.session.isAtWriter {
        known.keep(line, verb: verb, of: connection.held.number, connection.output, from: start)
      }
      // A request at the writer is counted when its answer arrives, and a search or a list when it ends.
      if connection.session.jobs == before, !connection.isCountedLater { measurements.countAnswer(to: verb, nil) }
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
      // So would a list that waits at the writer for the items of a large store.
      let isReady = !state.isStarted || state.mayAnswer(command)
      if connection.session.isAtWriter || !scheduler.mayList(connection, isReady: isReady) { return false }
    case .lease:
      // Its conflict is answered here, so it keeps the order of the answers.
      if connection.session.isAtWriter { return false }
      try state.registry.requireRight(of: command, for: connection.peer)
      try lease.take(for: connection)
    case .proof:
      // Answers keep the order of the requests.
      if connection.session.isAtWriter { return false }
      try proofs.begin(command, verb, connection)
      return true
    case .plain, .standing, .secret, .steps: break
    }
    if !connection.session.isAtWriter, state.mayAnswer(command) {
      if kind == .search, let search = try state.registry.search(command, for: connection.peer) {
        try goOn(search, verb, connection)
        return true
      }
      if try answer(command, verb, connection) { return true }
    }
    try jobs.submit(.registry(command), verb, of: connection)
    return true
  }

  /// Answers a request to the registry, if it needs no change.
  ///
  /// - Returns: whether the answer is in the output, or begun.
  private func answer(_ command: RegistryCommand, _ verb: Int, _ connection: Connection) throws(Refusal) -> Bool {
    guard let reply = try state.registry.answer(command, for: connection.subject, in: lifetimes.surroundings),
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
        if try !answer(found, verb, connection) { try jobs.submit(.registry(found), verb, of: connection) }
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
  func refuse(_ refusal: Refusal, _ connection: Connection) {
    refusal.append(to: &connection.output)
    measurements.countAnswer(to: Measurements.noVerb, refusal.code)
  }

  /// Answers a service manager, or sends its request to the writer.
  func answer(_ command: Command, _ verb: Int, _ connection: Connection) throws(Refusal) {
    switch command {
    case .local(let command): try local.answer(command, verb, connection)
    case .registry(let command): _ = try carryOut(command, verb, connection)
    case .store(let command): try jobs.submit(.store(command), verb, of: connection)
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
  /// Whether a search or a list is in progress, which is counted when it ends.
  fileprivate var isCountedLater: Bool {
    if session.awaitsSignature { return true }
    return switch outgoing {
    case .search, .secrets, .reply: true
    case .uuids, .backup, .zeros, nil: false
    }
  }
}
