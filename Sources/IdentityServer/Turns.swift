import IdentityCore
import LinuxSystem
import Systemd

// Whose turn it is. Users take turns; within its own, a user's connections do.
extension Server {
  /// Lets the users go on beside what else there is to do, where they wait for nothing but their turn: the loop comes to
  /// that last.
  func takeTurnsBeside() { if !waitingUsers.isEmpty { takeTurns() } }

  /// A turn for each user with something to do.
  func takeTurns() {
    turnSource?.disable()
    if let user = connections.onlyUser {
      // Nobody else is kept waiting, so nobody else has to be asked for.
      waitingUsers.removeAll(keepingCapacity: true)
      serve(user)
    } else {
      serveUsers()
    }
  }

  private func serveUsers() {
    do {
      try readiness.ready(into: &readyUsers)
    } catch {
      readyUsers.removeAll()
      say(.notServing("\(error)"))
    }
    // Who waits for a turn had one before: who has just come with something goes first.
    let count = waitingUsers.count
    for index in readyUsers.indices {
      guard let user = connections.user(UInt32(truncatingIfNeeded: readyUsers[index].token)), !user.isWaiting else {
        continue
      }
      serve(user)
    }
    for index in 0..<count { serve(waitingUsers[index]) }
    waitingUsers.removeFirst(count)
  }

  /// Serves one user: what the kernel says is ready, then what waits for a turn.
  private func serve(_ user: UserShare) {
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
    user.writing.removeFirst(serve(user.writing, isOver))
    if user.writing.isEmpty { serveReady(user, atMost: turn.connections) { isOver() || !user.writing.isEmpty } }
    if user.writing.isEmpty { user.waiting.removeFirst(serve(user.waiting) { isOver() || !user.writing.isEmpty }) }
    publishSome(to: user, isOver)
    guard isShared else { return }
    let taken = Clock.monotonicMicroseconds - started
    user.overdraft = taken > time ? taken - time : 0
  }

  /// Serves whoever is ready now, of all users and whatever time that takes: there is no next turn.
  func takeLastTurns() {
    for user in connections.allUsers { serveReady(user, atMost: TurnBound.alone.connections) { false } }
  }

  private func serveReady(_ user: UserShare, atMost count: Int, _ isOver: () -> Bool) {
    do {
      try user.readiness.ready(into: &readyList, atMost: count)
    } catch {
      return say(.notServing("\(error)"))
    }
    for index in readyList.indices {
      let ready = readyList[index]
      guard let connection = connections[ConnectionToken(rawValue: ready.token)] else { continue }
      if !ready.interest.isDisjoint(with: .failed) { hangUp(connection) }
      if ready.interest.contains(.read) { receive(connection) } else { advance(connection) }
      // The kernel tells of the others again.
      if isOver() { break }
    }
    endProcesses(readyList, of: user)
  }

  /// Goes on with connections of one user: one at least, so that none waits for ever.
  ///
  /// - Returns: how many of them had their turn.
  private func serve(_ waiting: [ConnectionToken], _ isOver: () -> Bool) -> Int {
    var served = 0
    while served < waiting.count, served == 0 || !isOver() {
      let token = waiting[served]
      served += 1
      guard let connection = connections[token] else { continue }
      connection.isWaitingForTurn = false
      advance(connection)
    }
    return served
  }

  /// Gives a connection another turn, behind the others of its user.
  func waitForTurn(_ connection: Connection) {
    guard !connection.isWaitingForTurn else { return }
    connection.isWaitingForTurn = true
    if connection.outgoing?.waitsForReader == false {
      connection.user.writing.append(connection.token)
    } else {
      connection.user.waiting.append(connection.token)
    }
    waitForTurn(connection.user)
  }

  /// Gives a user a turn where it has something to do that the kernel does not tell of.
  func waitForTurn(_ user: UserShare) {
    guard user.isDue, !user.isWaiting else { return }
    user.isWaiting = true
    waitingUsers.append(user)
    turnSource?.enable()
  }

  // MARK: What is held for a user

  /// Counts the output of a connection among what waits for its user.
  func countOutput(of connection: Connection) {
    let output = connections[connection.token] === connection ? connection.output.count - connection.sent : 0
    let user = connection.user
    user.output += output - connection.counted
    connection.counted = output
  }
}
