import Attestation
import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions

/// Serves connections: receives bytes, splits them into lines, sends answers and events, and ends connections.
///
/// ``Session`` decides the steps and how a turn of a connection ends, and this type carries the decisions out.
final class ConnectionService: TurnService {
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let dispatcher: RequestDispatcher
  private let publisher: Publisher
  private let handover: Handover
  private let processes: PeerProcesses
  private let closer: ConnectionCloser
  private let credentials: CredentialAnswers
  private let jobs: JobSubmission
  private let known: KnownAnswers
  private let readiness: ReadinessSet
  /// The buffer for received bytes.
  private let received = ByteBuffer(count: Bound.lineLength)
  /// A buffer for output that moves from connection to connection, so that an idle connection holds none.
  private var spareOutput: [UInt8] = []

  init(
    _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ dispatcher: RequestDispatcher,
    _ publisher: Publisher, _ handover: Handover, _ processes: PeerProcesses, closer: ConnectionCloser,
    credentials: CredentialAnswers, jobs: JobSubmission, known: KnownAnswers, readiness: ReadinessSet
  ) {
    self.connections = connections
    self.scheduler = scheduler
    self.dispatcher = dispatcher
    self.publisher = publisher
    self.handover = handover
    self.processes = processes
    self.closer = closer
    self.credentials = credentials
    self.jobs = jobs
    self.known = known
    self.readiness = readiness
  }

  // MARK: Beginning

  /// Serves a new connection's first turn before the kernel watches it.
  ///
  /// A client with a single request has often gone by the time it is answered, and then there is nothing to watch.
  func begin(_ connection: Connection) {
    serve(connection)
    guard connections[connection.token] === connection else { return }
    if connection.wantsInput {
      connection.readiness.noteInput()
      serve(connection)
      guard connections[connection.token] === connection else { return }
    }
    beginToWatch(connection)
  }

  /// Continues a connection that the last run left. ``resume()`` serves it once startup is done.
  func adopt(_ connection: Connection, _ record: HandoverRecord) {
    connection.establishment.kept = .otherwise
    connection.input = record.input
    connection.output = record.output
    connection.session = Session(
      hasEnded: record.hasEnded, isClosing: record.isClosing, hasOutput: !record.output.isEmpty)
    if let subscription = record.subscription { publisher.adopt(subscription, of: connection) }
    do {
      connection.establishment.process = try PeerCredentials.processDescriptor(
        of: connection.descriptor, number: connection.peer.processID)
    } catch {
      // The process has ended meanwhile, or cannot be watched. Its end must not go unnoticed.
      closer.markOrphan(connection)
    }
    handover.markAtRest(connection)
    beginToWatch(connection)
  }

  /// Watches a connection from now on. What its client has sent already is reported at once.
  func beginToWatch(_ connection: Connection) {
    do {
      try readiness.add(connection.descriptor.number, connection.wantedInterest, token: connection.token.rawValue)
      connection.readiness.watched = connection.wantedInterest
    } catch {
      closer.drop(connection, error)
    }
  }

  /// Watches the process behind a connection from now on. Drops the connection if that is impossible, because the end of
  /// the process would go unnoticed.
  private func watchProcess(of connection: Connection) {
    do {
      try processes.watch(connection) { closer.orphan($0) }
    } catch {
      closer.drop(connection, error)
    }
  }

  /// Establishes new connections of a principal: watches their processes, and gives the connections to the service
  /// manager. At least one is established, and others until the turn is over.
  func establish(of share: PrincipalShare, atMost most: Int, _ isOver: () -> Bool) {
    var established: [Connection] = []
    while established.count < most, established.isEmpty || !isOver(), let token = share.new.popFirst() {
      guard let connection = connections[token] else { continue }
      watchProcess(of: connection)
      if connections[token] === connection { established.append(connection) }
    }
    handover.store(established)
  }

  /// Serves the connections that were taken over, once all of startup is done.
  func resume() {
    for connection in connections.all {
      watchProcess(of: connection)
      guard connections[connection.token] === connection else { continue }
      credentials.answerLeft(by: connection)
      advance(connection)
    }
  }

  // MARK: Input

  /// Takes in what the kernel reports of a connection, and serves the connection in its turn.
  ///
  /// - Parameter isTurn: whether it is the connection's turn now.
  @inline(__always)
  func takeIn(_ interest: ReadinessSet.Interest, of connection: Connection, isTurn: Bool) {
    guard !connection.session.isParked else { return }
    if interest.hasAny(of: .input) { connection.readiness.noteInput() }
    if interest.hasAny(of: .exceptional) {
      connection.readiness.noteException()
      if interest.hasAny(of: .failed), closer.hangUp(connection) { return }
    }
    if isTurn, !connection.place.isQueued { serve(connection) } else { scheduler.enqueue(connection) }
  }

  /// Serves a connection in its turn: reads its input if allowed, and carries out its requests.
  @inline(__always)
  func serve(_ connection: Connection) {
    if connection.session.isDraining { return closer.drain(connection, through: received) }
    let isAtRest = connection.isAtRest
    if connection.readiness.hasInput, isAtRest || connection.wantsInput, closer.stage == .running {
      receive(connection, isAtRest: isAtRest)
    } else {
      advance(connection)
    }
  }

  /// Reads once and carries out the requests received. Further input is read in the next turn.
  ///
  /// - Parameter isAtRest: the value of ``Connection/isAtRest``.
  private func receive(_ connection: Connection, isAtRest: Bool) {
    handover.markBusy(connection)
    do {
      // After a hang-up nothing more can arrive, so the absence of input is the end of the stream.
      let arrived =
        try connection.receive(into: received, atMost: connections.turn.readLength)
        ?? (connection.session.reading == .final ? 0 : nil)
      guard let arrived else { return advance(connection) }
      if isAtRest, arrived == 0 {
        _ = connection.session.receive(0)
        return connection.session.requests == 0 && credentials.answer(connection)
          ? advance(connection) : closer.end(connection)
      }
      var answered = 0
      if isAtRest, !connection.readiness.hasInput {
        answered = received.withBytes(first: arrived) { bytes in answerKnown(bytes, connection) }
        // Requests with cached answers contain no secret, so the buffer need not be wiped.
        if answered == arrived, !connection.hasOutput { return handover.markAtRest(connection) }
      }
      let count = connection.session.receive(arrived)
      if count > 0, !connection.hasInput {
        received.withBytes(first: count) { bytes in
          let used = carryOut(bytes, from: answered, connection)
          keep(bytes, from: used, connection)
        }
      } else if count > 0 {
        received.withBytes(first: count) { bytes in connection.input.appendWiping(bytes) }
      }
      // The requests may have contained a secret.
      received.wipe(first: arrived)
    } catch {
      return closer.drop(connection, error)
    }
    if connection.isAtRest, !connection.readiness.hasInput, closer.stage == .running {
      handover.markAtRest(connection)
    } else {
      advance(connection)
    }
  }

  /// Answers requests from the cache, up to the first request without a cached answer. The connection must be at rest.
  ///
  /// - Returns: the number of bytes that the answered requests took.
  private func answerKnown(_ bytes: borrowing Span<UInt8>, _ connection: Connection) -> Int {
    if connection.held.number == 0 { connection.held.number = known.number(of: connection.peer) }
    let (used, length, count) = known.answer(bytes, of: connection.held.number, atMost: connections.turn.requests)
    connection.session.countRequests(count)
    // An error is ignored here, because it recurs when the rest is sent.
    let sent = used == bytes.count ? (try? connection.descriptor.send(known.output, first: length)) ?? 0 : 0
    if sent < length {
      known.output.withBytes(first: length) { connection.output.appendWiping($0.extracting(sent...)) }
    }
    return used
  }

  /// Keeps the input from an index on, which was not carried out yet, unless nothing more is carried out.
  private func keep(_ bytes: borrowing Span<UInt8>, from used: Int, _ connection: Connection) {
    connection.session.drop(used)
    guard used < bytes.count else { return }
    connection.input = []
    if !connection.session.isClosing { connection.input.appendWiping(bytes.extracting(used...)) }
  }

  /// Carries out the requests from a byte index on.
  ///
  /// - Returns: the index of the first byte that was not carried out.
  private func carryOut(_ bytes: borrowing Span<UInt8>, from first: Int, _ connection: Connection) -> Int {
    if !connection.hasOutput { swap(&connection.output, &spareOutput) }
    var start = first
    var budget = connections.turn.requests
    // Set with the second request, so that a single one reads no clock.
    var turnEnd: UInt64?
    let limit = connection.share.limits.lineLength
    while true {
      switch connection.next(in: bytes, from: start, limit: limit) {
      case .carryOut(let line, let next):
        guard budget > 0, !isTurnOver(start > first, &turnEnd) else {
          scheduler.enqueue(connection)
          return start
        }
        guard dispatcher.dispatch(bytes.extracting(line), of: connection) else { return start }
        start = next
        budget -= 1
        if connection.session.hasSecret { sendSecret(connection) }
      case .refuse(let refusal):
        dispatcher.refuse(refusal, connection)
        return start
      case .wait: return start
      }
    }
  }

  /// Returns whether a connection has used up the time of a turn. Its first request is always carried out.
  ///
  /// - Parameter end: the end of the turn; nil before the second request.
  private func isTurnOver(_ hasBegun: Bool, _ end: inout UInt64?) -> Bool {
    guard hasBegun else { return false }
    let now = Clock.monotonicMicroseconds
    guard let known = end else {
      end = now + connections.turn.microseconds
      return false
    }
    return now >= known
  }

  // MARK: Turns

  /// Advances a connection as far as possible: its pending requests, its output, its end.
  func advance(_ connection: Connection) {
    guard !connection.session.isParked else { return }
    handover.markBusy(connection)
    if connection.hasInput {
      var bytes: [UInt8] = []
      swap(&bytes, &connection.input)
      let used = carryOut(bytes.span, from: 0, connection)
      if used > 0 || connection.session.isClosing {
        keep(bytes.span, from: used, connection)
        bytes.wipe()
      } else {
        swap(&bytes, &connection.input)
      }
    }
    finishTurn(connection)
  }

  private func finishTurn(_ connection: Connection) {
    defer { connections.countOutput(of: connection) }
    do {
      publisher.fill(connection)
      try flush(connection)
      if connection.wantsPiece {
        dispatcher.goOn(connection)
        try flush(connection)
        // The rest of the answer follows in later turns, so that other connections are served in between.
        if connection.wantsPiece { scheduler.enqueue(connection) }
      }
      if connection.session.awaitsReader {
        let waits = !connection.session.reading.isOfEndedProcess && closer.stage != .closingConnections
        try jobs.recordBackup(of: connection, waits: waits)
      }
      if !connection.hasOutput, publisher.hasEvents(for: connection) { scheduler.enqueue(connection) }
      // Requests that were held back by unread output may go on now, and reported input may be read now.
      if connection.canGoOn || (connection.readiness.hasInput && connection.wantsInput && closer.stage == .running) {
        scheduler.enqueue(connection)
      }
      try conclude(connection)
    } catch {
      closer.drop(connection, error)
    }
  }

  private func conclude(_ connection: Connection) throws(SystemError) {
    if connection.session.hasEnded { credentials.closeIfAnswered(connection) }
    switch connection.session.conclusion(
      hasUnsentOutput: connection.hasUnsentOutput, hasMoreWork: connection.place.isQueued, stop: closer.stage)
    {
    case .refuseOrphan:
      // The reason is sent in case another process still has the connection.
      connection.session.close()
      Refusal.orphaned.append(to: &connection.output)
      try flush(connection)
      try conclude(connection)
    case .end: closer.end(connection)
    case .close: closer.close(connection)
    case .park:
      credentials.markFailing(connection)
      closer.park(connection)
      // Events from here on are for the next run.
      try? updateInterest(of: connection)
    case .rest:
      try updateInterest(of: connection)
      handover.markAtRest(connection)
    }
  }

  // MARK: Output

  /// Sends a decrypted secret at once instead of at the end of the turn. Until the socket has taken the whole secret,
  /// no further request is carried out.
  private func sendSecret(_ connection: Connection) {
    do {
      try flush(connection)
      if !connection.hasOutput { swap(&connection.output, &spareOutput) }
    } catch {
      // The connection has failed. Its next turn notices the failure.
      connection.session.close()
    }
  }

  /// Sends output as far as the socket takes it now.
  ///
  /// - Throws: the error of the socket, unless the client reads no more, which discards the output.
  private func flush(_ connection: Connection) throws(SystemError) {
    guard !connection.session.holdsOutput else { return }
    while connection.hasUnsentOutput {
      do {
        guard let count = try connection.descriptor.send(connection.output, from: connection.sent) else { return }
        connection.sent += count
      } catch  where error.code == EPIPE || error.code == ECONNRESET {
        // The client reads no more, and has left output unread if the connection is reset. Requests that it sent
        // completely are still carried out.
        connection.sent = connection.output.count
        if connection.session.answer != .pieces(.search) { connection.goOn(with: nil) }
        publisher.endSubscription(of: connection)
      }
    }
    var bytes: [UInt8] = []
    swap(&bytes, &connection.output)
    connection.sent = 0
    if connection.session.hasSecret {
      bytes.wipe()
      connection.session.finishAnswer()
    }
    if bytes.capacity > spareOutput.capacity, bytes.capacity <= connection.share.limits.outputPerConnection {
      bytes.removeAll(keepingCapacity: true)
      spareOutput = bytes
    }
  }

  /// Tells the kernel which events to report. Room in the socket is reported only while output is pending: otherwise each
  /// read by the client would cause an event.
  private func updateInterest(of connection: Connection) throws(SystemError) {
    let interest = connection.wantedInterest
    guard let watched = connection.readiness.watched, interest != watched else { return }
    try readiness.modify(connection.descriptor.number, interest, token: connection.token.rawValue)
    connection.readiness.watched = interest
  }

  /// Whether no stop of the daemon has begun.
  var isRunning: Bool { closer.stage == .running }

  /// Sends new events to some of a principal's subscribers.
  func publish(to share: PrincipalShare) { publisher.continueRound(of: share, through: self) }

  /// Sends the newest event to a subscriber that has received all earlier ones and has nothing in progress or pending.
  ///
  /// Sends the line directly from the log, because this is the most frequent case.
  func send(_ newest: EventLine, isVisible: Bool, to connection: Connection) {
    handover.markBusy(connection)
    guard connection.pass(newest), isVisible else { return handover.markAtRest(connection) }
    // An error is ignored here, because it recurs when the rest is sent.
    let sent = (try? connection.descriptor.send(newest.bytes)) ?? 0
    guard sent < newest.bytes.count else { return handover.markAtRest(connection) }
    connection.output += newest.bytes[sent...]
    advance(connection)
  }
}
