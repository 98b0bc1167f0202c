import Attestation
import IdentityCore
import LinuxSystem
import Testing

@testable import IdentityServer

/// Turns that record the connections that they serve, by the names that the test gave them.
private final class RecordedTurns: TurnService {
  let table = ConnectionTable()
  let scheduler: TurnScheduler
  private var names: [UInt64: String] = [:]
  private(set) var served: [String] = []
  /// The further work of a connection in its turn.
  var work: (Connection) -> Void = { _ in }

  init() throws { scheduler = TurnScheduler(table, try WriterChannel()) }

  /// Opens a connection of a user.
  func open(_ name: String, user: UInt32) throws -> Connection {
    let peer = Peer(userID: user, groupID: 1, processID: 2, isAdmin: false)
    let connection = table.insert(
      try Folder(path: "/").open("proc", flags: 0), peer: HeldPeer(peer, .user(user)), Limits(), process: nil)
    names[connection.token.rawValue] = name
    return connection
  }

  /// Opens connections that are in the middle of a list.
  func openLists(_ count: Int, user: UInt32) throws -> [Connection] {
    try (1...count).map { number in
      let connection = try open("list \(number)", user: user)
      connection.begin(.uuids(left: 1, of: 1, .random))
      scheduler.enqueue(connection)
      return connection
    }
  }

  func serve(_ connection: Connection) {
    served.append(names[connection.token.rawValue] ?? "unknown")
    work(connection)
  }

  func publish(to share: PrincipalShare) {}

  func establish(of share: PrincipalShare, atMost most: Int, _ isOver: () -> Bool) {
    for _ in 0..<min(most, share.new.count) {
      if let token = share.new.popFirst() { served.append("new " + (names[token.rawValue] ?? "unknown")) }
    }
  }

  /// Gives a turn to each waiting principal, and returns the connections served.
  func round(behind early: Int = 0) -> [String] {
    served = []
    scheduler.giveTurns(behind: early, self)
    return served
  }
}

struct TurnSchedulerTests {
  @Test func `row 29: a user with many waiting connections gets one turn, like a user with one`() throws {
    let turns = try RecordedTurns()
    for number in 1...20 { turns.scheduler.enqueue(try turns.open("busy \(number)", user: 1)) }
    turns.scheduler.enqueue(try turns.open("other", user: 2))
    let first = turns.round()
    #expect(first.last == "other" && first.count <= TurnBound.shared.connections + 1)
    #expect(turns.scheduler.waiting == 1)
    var later: [String] = []
    for _ in 0..<100 where turns.scheduler.waiting > 0 { later += turns.round() }
    #expect(first.dropLast() + later == (1...20).map { "busy \($0)" })
  }

  @Test func `users that became ready since the last round go first`() throws {
    let turns = try RecordedTurns()
    turns.scheduler.enqueue(try turns.open("early", user: 1))
    let early = turns.scheduler.waiting
    turns.scheduler.enqueue(try turns.open("late", user: 2))
    #expect(turns.round(behind: early) == ["late", "early"])
  }

  @Test func `a connection that is queued in its own turn is served in the next round`() throws {
    let turns = try RecordedTurns()
    let connection = try turns.open("again", user: 1)
    turns.work = { turns.scheduler.enqueue($0) }
    turns.scheduler.enqueue(connection)
    #expect(turns.round() == ["again"])
    #expect(turns.round() == ["again"])
    turns.work = { _ in }
    #expect(turns.round() == ["again"] && turns.round().isEmpty)
  }

  @Test func `a closed connection is passed over`() throws {
    let turns = try RecordedTurns()
    let connection = try turns.open("closed", user: 1)
    turns.scheduler.enqueue(connection)
    turns.table.remove(connection)
    #expect(turns.round().isEmpty && turns.scheduler.waiting == 0)
  }

  @Test func `while as many lists as allowed are written, the user's other connections are still served`() throws {
    let turns = try RecordedTurns()
    let lists = try turns.openLists(Bound.longAnswersAtOnce, user: 1)
    turns.work = { connection in if lists.contains(where: { $0 === connection }) { turns.scheduler.enqueue(connection) }
    }
    let another = try turns.open("another", user: 1)
    turns.scheduler.enqueue(another)
    #expect(turns.round().contains("another"))
  }

  @Test func `another list waits until one of the lists in progress has ended`() throws {
    let turns = try RecordedTurns()
    let lists = try turns.openLists(Bound.longAnswersAtOnce, user: 1)
    var last = lists[0]
    turns.work = { connection in
      if lists.contains(where: { $0 === connection }), connection !== last { turns.scheduler.enqueue(connection) }
    }
    let another = try turns.open("another", user: 1)
    #expect(!turns.scheduler.mayList(another))
    turns.scheduler.enqueue(another)
    // The first list ends in this round, and the other list gets its place.
    #expect(turns.round().last == "another")
    #expect(turns.scheduler.mayList(another))
    last = lists[1]
    #expect(turns.round() == (2...Bound.longAnswersAtOnce).map { "list \($0)" })
  }

  @Test func `a connection that waits for its turn begins no list before`() throws {
    let turns = try RecordedTurns()
    let connection = try turns.open("waiting", user: 1)
    #expect(turns.scheduler.mayList(connection))
    turns.scheduler.enqueue(connection)
    #expect(!turns.scheduler.mayList(connection))
    _ = turns.round()
    #expect(turns.scheduler.mayList(connection))
  }

  @Test func `another user's lists take no place`() throws {
    let turns = try RecordedTurns()
    _ = try turns.openLists(Bound.longAnswersAtOnce, user: 1)
    #expect(turns.scheduler.mayList(try turns.open("other", user: 2)))
  }

  @Test func `row 31: new connections are established a few at a time, in turns of their user`() throws {
    let turns = try RecordedTurns()
    for number in 1...20 { turns.scheduler.enqueueNew(try turns.open("\(number)", user: 1)) }
    let other = try turns.open("other", user: 2)
    turns.work = { turns.scheduler.enqueue($0) }
    turns.scheduler.enqueue(other)
    var rounds: [[String]] = []
    for _ in 1...4 { rounds.append(turns.round()) }
    #expect(rounds.flatMap(\.self).filter { $0 != "other" } == (1...20).map { "new \($0)" })
    #expect(rounds.allSatisfy { $0.contains("other") && $0.count <= TurnBound.shared.connections + 1 })
  }

  @Test func `row 31: the time of arrivals is deducted from the turns of their user, even after it has left`() throws {
    let turns = try RecordedTurns()
    let other = try turns.open("other", user: 2)
    let first = try turns.open("first", user: 1)
    turns.table.charge(3 * TurnBound.shared.microseconds, to: .user(1))
    turns.table.remove(first)
    let second = try turns.open("second", user: 1)
    #expect(turns.table.isOverdrawn(second.share) && !turns.table.isOverdrawn(other.share))
    turns.scheduler.enqueue(second)
    turns.scheduler.enqueue(other)
    #expect(turns.round() == ["other"])
    #expect(turns.round() == [] && turns.round() == [])
    #expect(turns.round() == ["second"])
    // However many arrive, the user waits for a bounded number of turns.
    for _ in 0..<10 { turns.table.charge(Bound.arrivalOverdraft, to: .user(1)) }
    #expect(second.share.overdraft == Bound.arrivalOverdraft)
  }

  @Test func `the time of arrivals is not charged while no other user is present`() throws {
    let turns = try RecordedTurns()
    let alone = try turns.open("alone", user: 1)
    turns.table.charge(1_000, to: .user(1))
    #expect(alone.share.overdraft == 0)
    turns.table.charge(1_000, to: .user(3))
  }

  @Test func `the last turns of a run serve lists that wait for a place`() throws {
    let turns = try RecordedTurns()
    _ = try turns.openLists(Bound.longAnswersAtOnce, user: 1)
    let another = try turns.open("another", user: 1)
    #expect(!turns.scheduler.mayList(another))
    turns.scheduler.enqueue(another)
    turns.scheduler.giveLastTurns(turns)
    #expect(turns.served == ["another"] && turns.scheduler.mayList(another))
  }
}
