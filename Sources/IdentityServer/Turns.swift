import IdentityCore
import LinuxSystem
import Systemd

/// What the loop's readiness set knows those by that are no connection: the highest bit is set, which no
/// ``ConnectionToken`` has.
enum LoopToken {
  private static let mark: UInt64 = 1 << 63
  /// Connections wait to be accepted.
  static let listener = mark | 1
  /// The writer has reported.
  static let reports = mark | 2
  /// A source of sd-event has something to do.
  static let sources = mark | 3

  /// A process behind connections. No number of a process is as large as to reach the mark, nor is it 0 (proc(5),
  /// pid_max).
  static func process(_ key: PeerProcessTable.Key) -> UInt64 {
    mark | UInt64(UInt32(bitPattern: key.number)) << 32 | UInt64(key.userID)
  }

  /// The process with this token; nil where it is none.
  static func process(of token: UInt64) -> PeerProcessTable.Key? {
    let number = Int32(truncatingIfNeeded: (token & ~mark) >> 32)
    return number == 0 ? nil : .init(number: number, userID: UInt32(truncatingIfNeeded: token))
  }
}

// Whose turn it is. Users take turns; within its own, a user's connections do.
extension Server {
  /// One turn of the loop: takes in what the kernel tells, then gives each user with something to do a turn.
  ///
  /// - Parameter waits: whether to wait where there is nothing to do.
  func turn(waits: Bool) {
    let waiting = waiting
    inTurn { takeNews(waits: waits && waiting == 0) }
    if self.waiting > 0 { serveUsers(waiting) }
    measurements.endTurn()
    guard hasEndedProcesses else { return }
    // Behind what their connections have to say for themselves: most have ended together with their process.
    for key in endedProcesses { endProcess(key) }
    endedProcesses.removeAll(keepingCapacity: true)
  }

  /// Takes in what the kernel tells. Where several users are there it is all that there is, so that nobody's request waits
  /// behind a list of others. What the only user sends meanwhile must not keep the loop from all else.
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

  /// Waits until there is something to do. Where it is set so, it is looked for that for a while: to be put to sleep and
  /// woken can take longer than an answer, in a virtual machine above all.
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

  /// Takes in what the last wait found. Where nobody waits for a turn, and nobody else's can come, who has something to do
  /// has its turn at once, as long as a turn is.
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
      case LoopToken.listener: if !isStopping { acceptConnection() }
      case LoopToken.reports: takeReports()
      case LoopToken.sources: loop.wake()
      default: if let key = LoopToken.process(of: ready.token) { endedProcesses.append(key) }
      }
      return
    }
    guard !connection.isParked else { return }
    if ready.interest.hasAny(of: .input) { connection.mayHaveInput = true }
    if ready.interest.hasAny(of: .exceptional) {
      connection.readsToTheEnd = true
      if ready.interest.hasAny(of: .failed) { connection.isHungUp = true }
    }
    if isTurn, !connection.isWaitingForTurn { goOn(connection) } else { waitForTurn(connection) }
  }

  /// A turn for each user with something to do.
  ///
  /// - Parameter waiting: how many of them waited before the kernel was asked. They had a turn before: who has just come
  ///   with something goes first.
  private func serveUsers(_ waiting: Int) {
    let count = waitingUsers.count
    for index in waiting..<count { inTurn { serve(waitingUsers[index]) } }
    for index in 0..<waiting { inTurn { serve(waitingUsers[index]) } }
    waitingUsers.removeFirst(count)
  }

  /// Serves one user: what is being written, then what else waits for a turn.
  private func serve(_ user: PrincipalShare) {
    user.isWaiting = false
    defer { waitForTurn(user) }
    let turn = connections.turn
    let isShared = connections.isShared
    // Who took more than its time lets the others go first for as long.
    if !isShared { user.overdraft = 0 }
    guard user.overdraft < turn.microseconds else {
      user.overdraft -= turn.microseconds
      return
    }
    let time = turn.microseconds - user.overdraft
    let started = Clock.monotonicMicroseconds
    func isOver() -> Bool { Clock.monotonicMicroseconds - started >= time }
    // A piece of each long answer, then those that wait: one at least, whatever the pieces took. Any of these may begin
    // another long answer, which holds all that it will say.
    serve(user.writing.count, isOver) { user.writing.popFirst() }
    if user.writing.count < Bound.longAnswersAtOnce {
      serve(min(user.waiting.count, turn.connections), { isOver() || user.writing.count >= Bound.longAnswersAtOnce }) {
        user.waiting.popFirst()
      }
    }
    publishSome(to: user, isOver)
    guard isShared else { return }
    let taken = Clock.monotonicMicroseconds - started
    user.overdraft = taken > time ? taken - time : 0
  }

  /// Serves whoever is ready now, of all users and whatever time that takes: there is no next turn.
  func takeLastTurns() {
    takeNews(waits: false, isLast: true)
    for user in connections.allUsers {
      serve(user.waiting.count, { false }) { user.waiting.popFirst() }
    }
  }

  /// Goes on with connections of one user that wait now: one at least, so that none waits for ever.
  private func serve(_ count: Int, _ isOver: () -> Bool, next: () -> ConnectionToken?) {
    for served in 0..<count {
      guard served == 0 || !isOver(), let token = next() else { return }
      guard let connection = connections[token] else { continue }
      connection.isWaitingForTurn = false
      goOn(connection)
    }
  }

  /// Gives a connection another turn, behind the others of its user.
  func waitForTurn(_ connection: Connection) {
    guard !connection.isWaitingForTurn else { return }
    connection.isWaitingForTurn = true
    if connection.isWriting {
      connection.share.writing.append(connection.token)
    } else {
      connection.share.waiting.append(connection.token)
    }
    waitForTurn(connection.share)
  }

  /// Gives a user a turn where there is something to do for it.
  func waitForTurn(_ user: PrincipalShare) {
    guard user.isDue, !user.isWaiting else { return }
    user.isWaiting = true
    waitingUsers.append(user)
  }

  // MARK: What is held for a user

  /// Counts the output of a connection among what waits for its user.
  func countOutput(of connection: Connection) {
    let output = connections[connection.token] === connection ? connection.output.count - connection.sent : 0
    let user = connection.share
    user.output += output - connection.counted
    connection.counted = output
  }
}
