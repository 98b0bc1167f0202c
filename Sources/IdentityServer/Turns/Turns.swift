import IdentityCore
import LinuxSystem
import Systemd

/// The tokens of the readiness set for descriptors other than connections.
///
/// Their highest bit is set, which is never the case in a ``ConnectionToken``.
enum LoopToken {
  private static let mark: UInt64 = 1 << 63
  /// The listener: connections wait to be accepted.
  static let listener = mark | 1
  /// The outbox: the writer has reported.
  static let reports = mark | 2
  /// sd-event: one of its sources is due.
  static let sources = mark | 3

  /// Returns the token of a watched process.
  ///
  /// A PID never reaches the highest bit and is never 0 (proc(5), pid_max), so the token differs from all others.
  static func process(_ key: PeerProcessTable.Key) -> UInt64 {
    mark | UInt64(UInt32(bitPattern: key.number)) << 32 | UInt64(key.userID)
  }

  /// Returns the process with a token; nil if the token is not that of a process.
  static func process(of token: UInt64) -> PeerProcessTable.Key? {
    let number = Int32(truncatingIfNeeded: (token & ~mark) >> 32)
    return number == 0 ? nil : .init(number: number, userID: UInt32(truncatingIfNeeded: token))
  }
}

// The order of service. Principals take turns. Within a principal's turn, its connections take turns.
extension Server {
  /// Runs one turn of the loop: takes in the kernel's events, then gives a turn to each principal with pending work.
  ///
  /// - Parameter waits: whether to wait if there is nothing to do.
  func turn(waits: Bool) {
    let waiting = waiting
    inTurn { takeNews(waits: waits && waiting == 0) }
    if self.waiting > 0 { servePrincipals(waiting) }
    measurements.endTurn()
    guard hasEndedProcesses else { return }
    // After their connections were served: most connections have ended together with their process.
    for key in endedProcesses { endProcess(key) }
    endedProcesses.removeAll(keepingCapacity: true)
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
        return say(.notServing("\(error)"))
      }
      if looks == 0 { measurements.beginTurn() }
      take(count)
      looks += 1
    } while count == ReadinessSet.room && looks < Bound.looksAtOnce && (isLast || connections.isShared)
  }

  /// Waits for events. Busy-polls for `PollMicroseconds` before it sleeps.
  ///
  /// To be put to sleep and woken can take longer than an answer, above all in a virtual machine.
  private func waitForNews() throws(SystemError) -> Int {
    if settings.pollMicroseconds > 0 {
      let started = Clock.monotonicMicroseconds
      repeat {
        let count = try readiness.wait(false)
        if count > 0 { return count }
      } while Clock.monotonicMicroseconds - started < settings.pollMicroseconds
    }
    return try readiness.wait(true)
  }

  /// Takes in the events of the last wait.
  ///
  /// A ready connection is served at once, without a queue, if nobody waits for a turn and no other principal can
  /// become ready. The latter holds if there is only one event, or if only one principal is connected. After the length
  /// of a turn, the remaining connections are queued.
  private func take(_ count: Int) {
    var isTurn = count == 1 || !connections.isShared
    let started = count == 1 ? 0 : Clock.monotonicMicroseconds
    var untilLook = Bound.servedBetweenLooks
    for place in 0..<count {
      untilLook -= 1
      if untilLook == 0 {
        untilLook = Bound.servedBetweenLooks
        isTurn = isTurn && Clock.monotonicMicroseconds - started < connections.turn.microseconds
      }
      take(readiness[place], isTurn: isTurn && waiting == 0)
    }
  }

  private func take(_ ready: ReadinessSet.Ready, isTurn: Bool) {
    guard let connection = connections[ConnectionToken(rawValue: ready.token)] else {
      switch ready.token {
      case LoopToken.listener: if stop == .running { acceptConnection() }
      case LoopToken.reports: takeReports()
      case LoopToken.sources: loop.wake()
      default: if let key = LoopToken.process(of: ready.token) { endedProcesses.append(key) }
      }
      return
    }
    guard !connection.session.isParked else { return }
    if ready.interest.hasAny(of: .input) { connection.mayHaveInput = true }
    if ready.interest.hasAny(of: .exceptional) {
      connection.readsToTheEnd = true
      if ready.interest.hasAny(of: .failed) { connection.session.hangUp() }
    }
    if isTurn, !connection.isWaitingForTurn { goOn(connection) } else { waitForTurn(connection) }
  }

  /// Gives a turn to each principal with pending work.
  ///
  /// - Parameter waiting: the number of principals that waited before the kernel was asked. They had a turn already, so
  ///   the principals that became ready since go first.
  private func servePrincipals(_ waiting: Int) {
    let count = waitingPrincipals.count
    for index in waiting..<count { inTurn { serve(waitingPrincipals[index]) } }
    for index in 0..<waiting { inTurn { serve(waitingPrincipals[index]) } }
    waitingPrincipals.removeFirst(count)
  }

  /// Serves one principal: first its long answers, then its other waiting connections, then its subscribers.
  private func serve(_ user: PrincipalShare) {
    user.isWaiting = false
    defer { waitForTurn(user) }
    let turn = connections.turn
    let isShared = connections.isShared
    // A principal that overran its time gives up as much time in its next turns.
    if !isShared { user.overdraft = 0 }
    guard user.overdraft < turn.microseconds else {
      user.overdraft -= turn.microseconds
      return
    }
    let time = turn.microseconds - user.overdraft
    let started = Clock.monotonicMicroseconds
    func isOver() -> Bool { Clock.monotonicMicroseconds - started >= time }
    // Serves a piece of each long answer, then at least one waiting connection, however long the pieces took. A waiting
    // connection may begin another long answer, which holds all of its content in memory, so the number of long answers
    // is bounded.
    serve(user.writing.count, isOver) { user.writing.popFirst() }
    if user.writing.count < Bound.longAnswersAtOnce {
      serve(min(user.waiting.count, turn.connections), { isOver() || user.writing.count >= Bound.longAnswersAtOnce }) {
        user.waiting.popFirst()
      }
    }
    publishSome(to: user)
    guard isShared else { return }
    let taken = Clock.monotonicMicroseconds - started
    user.overdraft = taken > time ? taken - time : 0
  }

  /// Serves every connection that is ready now, without a time limit, because no turn follows.
  func takeLastTurns() {
    takeNews(waits: false, isLast: true)
    for user in connections.allUsers {
      serve(user.waiting.count, { false }) { user.waiting.popFirst() }
    }
  }

  /// Serves waiting connections of one principal: at least one, so that each gets its turn eventually.
  private func serve(_ count: Int, _ isOver: () -> Bool, next: () -> ConnectionToken?) {
    for served in 0..<count {
      guard served == 0 || !isOver(), let token = next() else { return }
      guard let connection = connections[token] else { continue }
      connection.isWaitingForTurn = false
      goOn(connection)
    }
  }

  /// Queues a connection for another turn, behind the other connections of its principal.
  func waitForTurn(_ connection: Connection) {
    guard !connection.isWaitingForTurn else { return }
    connection.isWaitingForTurn = true
    // A list is written whether or not the client reads. So a principal has few lists in memory at once
    // (``Bound/longAnswersAtOnce``), and their remainder is plain output, which the next run of the daemon can take over.
    if connection.session.answer == .rows {
      connection.share.writing.append(connection.token)
    } else {
      connection.share.waiting.append(connection.token)
    }
    waitForTurn(connection.share)
  }

  /// Queues a principal for a turn if it has pending work.
  func waitForTurn(_ principal: PrincipalShare) {
    guard principal.isDue, !principal.isWaiting else { return }
    principal.isWaiting = true
    waitingPrincipals.append(principal)
  }

  // MARK: Pending output of a principal

  /// Updates the connection's part of its principal's pending output.
  func countOutput(of connection: Connection) {
    let output = connections[connection.token] === connection ? connection.output.count - connection.sent : 0
    let user = connection.share
    user.output += output - connection.counted
    connection.counted = output
  }
}
