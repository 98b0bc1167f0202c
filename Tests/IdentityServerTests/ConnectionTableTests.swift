import Attestation
import IdentityCore
import LinuxSystem
import Sessions
import Testing

@testable import IdentityServer

private func peer(_ user: UInt32) -> Peer { Peer(userID: user, groupID: 1, processID: 2, isAdmin: user == 0) }

/// Returns a descriptor of a real folder, which is closed with its connection.
private func descriptor() throws -> Descriptor { try Folder(path: "/").open("proc", flags: 0) }

extension ConnectionTable {
  /// Returns the share of a user, if the user has one.
  fileprivate func user(_ userID: UInt32) -> PrincipalShare? { allShares.first { $0.principal == .user(userID) } }

  /// Returns the refusal of another connection of a user, or nil.
  fileprivate func refusal(of user: UInt32, usesReserve: Bool = false, _ limits: Limits) -> Refusal? {
    refusal(of: HeldPeer(peer(user), .user(user), usesReserve: usesReserve), limits)?.refusal
  }

  /// Adds a connection, with the default limits for a new user.
  fileprivate func insert(_ descriptor: consuming Descriptor, peer: Peer) throws -> Connection {
    insert(descriptor, peer: HeldPeer(peer, .user(peer.userID)), Limits(), process: nil)
  }
}

struct ConnectionTableTests {
  @Test func `a token does not find the next connection in the same slot`() throws {
    let table = ConnectionTable()
    let first = try table.insert(descriptor(), peer: peer(1))
    table.remove(first)
    let second = try table.insert(descriptor(), peer: peer(1))
    #expect(second.token.slot == first.token.slot)
    #expect(table[first.token] == nil)
    #expect(table[second.token] === second)
  }

  @Test func `among many connections each is found by its own token`() throws {
    let table = ConnectionTable()
    let connections = try (0..<300).map { _ in try table.insert(descriptor(), peer: peer(1)) }
    for connection in connections where connection.token.slot % 3 == 0 { table.remove(connection) }
    for connection in connections {
      #expect((table[connection.token] === connection) == (connection.token.slot % 3 != 0))
    }
    #expect(table.all.count == 200 && table.count == 200)
    #expect(table[ConnectionToken(slot: 4_000_000, generation: 0)] == nil)
  }

  @Test func `the length of a turn depends on whether other users are connected`() throws {
    let table = ConnectionTable()
    let first = try table.insert(descriptor(), peer: peer(1))
    let second = try table.insert(descriptor(), peer: peer(1))
    #expect(!table.isShared && table.turn.requests == TurnBound.alone.requests)
    let other = try table.insert(descriptor(), peer: peer(2))
    #expect(table.isShared && table.turn.requests == TurnBound.shared.requests)
    for connection in [first, second] { table.remove(connection) }
    #expect(!table.isShared && table.turn.requests == TurnBound.alone.requests)
    table.remove(other)
    #expect(!table.isShared)
  }

  @Test func `hasInput and hasOutput are right after every kind of change of the buffers`() throws {
    let connection = try ConnectionTable().insert(descriptor(), peer: peer(1))
    for bytes in [\Connection.input, \Connection.output] {
      #expect(!connection.hasInput && !connection.hasOutput && connection.isAtRest)
      var others: [UInt8] = [1]
      swap(&others, &connection[keyPath: bytes])
      connection[keyPath: bytes].appendWiping(([2] as [UInt8]).span)
      #expect(connection.hasInput == !connection.input.isEmpty && connection.hasOutput == !connection.output.isEmpty)
      #expect(!connection.isAtRest)
      connection[keyPath: bytes].removeAll(keepingCapacity: true)
    }
    #expect(connection.isAtRest)
  }

  @Test func `rarely used properties of a connection can be set and cleared`() throws {
    let table = ConnectionTable()
    let connection = try table.insert(descriptor(), peer: peer(1))
    let shapes = [
      nil, Connection.Shape.plain, .init(isPlain: true, starts: [1], lag: nil),
      .init(isPlain: false, starts: nil, lag: nil),
    ]
    for subscription in [nil, Subscription(at: 7), nil] {
      connection.subscription = subscription
      for answer in [nil, LongAnswer.uuids(left: 1, of: 1, .random), nil] {
        if let answer { connection.begin(answer) } else { connection.goOn(with: nil) }
        for shape in shapes + shapes.reversed() {
          connection.keptShape = shape
          #expect(connection.keptShape == shape)
        }
        #expect((connection.outgoing == nil) == (answer == nil))
        #expect(connection.session.hasLongAnswer == (answer != nil))
      }
      #expect(connection.subscription == subscription)
      connection.subscription?.move(to: 9)
      #expect(connection.subscription?.position == (subscription == nil ? nil : 9))
    }
  }

  @Test func `the connections of a process share one record of the peer while it is the same`() throws {
    let table = ConnectionTable()
    var processes = PeerProcessTable()
    let first = try table.insert(descriptor(), peer: peer(1))
    #expect(processes.held(HeldPeer(peer(1), .user(1))) !== first.held)
    processes.insert(try descriptor(), .init(peer(1)), first)
    #expect(processes.held(HeldPeer(peer(1), .user(1))) === first.held)
    let another = Peer(userID: 1, groupID: 3, processID: 2, isAdmin: false)
    #expect(processes.held(HeldPeer(another, .user(1))).peer == another)
    processes.remove(first.token, of: .init(peer(1)))
    #expect(processes.held(HeldPeer(peer(1), .user(1))) !== first.held)
  }

  @Test func `removing a connection twice counts once`() throws {
    let table = ConnectionTable()
    let connection = try table.insert(descriptor(), peer: peer(1))
    _ = try table.insert(descriptor(), peer: peer(1))
    table.remove(connection)
    table.remove(connection)
    #expect(table.count == 1)
  }

  @Test func `row 27: a user's limit does not affect other users, and root has only the total limit`() throws {
    let table = ConnectionTable()
    var limits = Limits()
    limits.connections.total = 6
    limits.connections.reserved = 2
    limits.connections.perUser = 3
    for _ in 0..<3 { _ = try table.insert(descriptor(), peer: peer(1)) }
    #expect(table.refusal(of: 1, limits) != nil)
    #expect(table.refusal(of: 2, limits) == nil)
    _ = try table.insert(descriptor(), peer: peer(2))
    // Four of six connections are taken. The remaining two are reserved for root.
    #expect(table.refusal(of: 2, limits) != nil)
    #expect(table.refusal(of: 0, limits) == nil)
    for _ in 0..<2 { _ = try table.insert(descriptor(), peer: peer(0)) }
    #expect(table.refusal(of: 0, limits) != nil)
  }

  @Test func `a connected user gets at most its share of the free connections, without the reserve`() throws {
    let table = ConnectionTable()
    var limits = Limits()
    limits.connections.total = 116
    limits.connections.perUser = 100
    limits.reservePercent = 20
    // All users together may have 100 connections, 80 of them without the reserve. A single user may
    // have half of the 80.
    for _ in 0..<40 {
      #expect(table.refusal(of: 1, limits) == nil)
      _ = try table.insert(descriptor(), peer: peer(1))
    }
    #expect(table.refusal(of: 1, limits) == .busy("uid 1 has 40 connections and may have no more now"))
    #expect(table.refusal(of: 1, usesReserve: true, limits) == nil)
    // A third of the remaining 40.
    for _ in 0..<13 {
      #expect(table.refusal(of: 2, limits) == nil)
      _ = try table.insert(descriptor(), peer: peer(2))
    }
    #expect(table.refusal(of: 2, limits) != nil)
    // A third of the 60 that remain with the reserve.
    for _ in 13..<20 {
      #expect(table.refusal(of: 2, usesReserve: true, limits) == nil)
      _ = try table.insert(descriptor(), peer: peer(2))
    }
    #expect(table.refusal(of: 2, usesReserve: true, limits) != nil)
    // A user without a connection gets a first one until all are taken.
    for user in 3..<43 as Range<UInt32> {
      #expect(table.refusal(of: user, limits) == nil)
      _ = try table.insert(descriptor(), peer: peer(user))
    }
    #expect(table.refusal(of: 43, limits) != nil)
    #expect(table.refusal(of: 0, limits) == nil)
  }

  @Test func `a user is known as long as it has a connection or a change under way`() throws {
    let table = ConnectionTable()
    let first = try table.insert(descriptor(), peer: peer(1))
    let second = try table.insert(descriptor(), peer: peer(1))
    #expect(first.share === second.share && !table.isShared)
    _ = try table.insert(descriptor(), peer: peer(2))
    #expect(table.isShared)
    first.share.jobs = 1
    table.remove(first)
    table.remove(second)
    #expect(table.user(1) === first.share)
    table.finishJob(of: .user(1))
    #expect(table.user(1) == nil && !table.isShared)
    // A user who returns gets a new share.
    #expect(try table.insert(descriptor(), peer: peer(1)).share !== first.share)
  }

  @Test func `a user has room until its changes or its output reach the limit, and root always has`() throws {
    var limits = Limits()
    limits.changesPerUser = 2
    limits.outputPerUser = 100
    for (user, isBounded) in [(1, true), (0, false)] as [(UInt32, Bool)] {
      let share = PrincipalShare(.user(user), limits)
      share.jobs = 1
      share.output = 99
      #expect(share.hasRoom)
      share.jobs = 2
      #expect(share.hasRoom != isBounded)
      share.jobs = 0
      share.output = 100
      #expect(share.hasRoom != isBounded)
    }
  }

  @Test func `the principals at each bound are counted, without root`() throws {
    let table = ConnectionTable()
    var limits = Limits()
    limits.connections.perUser = 2
    limits.changesPerUser = 2
    limits.outputPerUser = 100
    let connections = try [0, 0, 1, 1, 2].map { try table.insert(descriptor(), peer: peer($0)) }
    table.use(limits)
    func counts() -> [Int] { PrincipalBound.allCases.map { table.principals(at: $0) } }
    #expect(counts() == [1, 0, 0])
    for number in [0, 1] {
      let share = try #require(table.user(UInt32(number)))
      share.jobs = 2
      share.output = 100
    }
    #expect(counts() == [1, 1, 1])
    table.remove(connections[2])
    #expect(counts() == [0, 1, 1])
  }

  @Test func `a place that is given back can be taken again`() throws {
    let table = ConnectionTable()
    var limits = Limits()
    limits.connections.perUser = 1
    let connection = try table.insert(descriptor(), peer: peer(1))
    #expect(table.refusal(of: 1, limits) != nil)
    table.remove(connection)
    #expect(table.refusal(of: 1, limits) == nil)
    #expect(table.all.isEmpty)
  }
}

struct MailboxTests {
  @Test func `messages of many threads arrive once and in each thread's order`() throws {
    let mailbox = try Mailbox<(sender: Int, number: Int)>(blocking: true)
    let senders = try (0..<4).map { sender in
      Box(try LinuxSystem.Thread(named: "sender") { for number in 0..<10_000 { mailbox.send((sender, number)) } })
    }
    var next = [0, 0, 0, 0]
    while next.reduce(0, +) < 40_000 {
      for (sender, number) in mailbox.takeAll() {
        #expect(number == next[sender])
        next[sender] = number + 1
      }
    }
    for box in senders { box.join() }
  }

  @Test func `an empty non-blocking mailbox returns nothing`() throws {
    let mailbox = try Mailbox<Int>(blocking: false)
    #expect(mailbox.takeAll().isEmpty)
    mailbox.send(1)
    mailbox.send(2)
    #expect(mailbox.takeAll() == [1, 2])
    #expect(mailbox.takeAll().isEmpty)
  }
}

/// Holds a thread, because an array cannot hold noncopyable values.
private final class Box {
  private var thread: LinuxSystem.Thread?
  init(_ thread: consuming LinuxSystem.Thread) { self.thread = .some(consume thread) }
  func join() { if let thread = thread.take() { thread.join() } }
}
