import IdentityCore
import LinuxSystem

/// What one user has of the daemon: its connections, and how much is held for them.
///
/// Users take turns, each with a list of its own of connections that have something to do: so one with a thousand of them
/// is one of those who wait, as is one with a single connection.
final class UserShare {
  let userID: UInt32
  /// The bounds in force.
  var limits: Limits

  fileprivate(set) var connections = 0
  var subscribers = SubscriberList()
  /// Its changes at the writer.
  var changes = 0
  /// What waits to be sent to it, in bytes.
  var output = 0
  /// Connections with an answer that is being written, which goes before everything else: so one is held of a user, and
  /// not one for each of its connections.
  let writing = TokenQueue()
  /// Connections with something else to do, in the order of their turns.
  let waiting = TokenQueue()
  /// It waits for its turn, with those.
  var isWaiting = false
  /// How much longer than its time the last turn was, in microseconds.
  var overdraft: UInt64 = 0

  init(_ userID: UInt32, _ limits: Limits) {
    self.userID = userID
    self.limits = limits
  }

  /// Whether there is something to do for it.
  var isDue: Bool { !writing.isEmpty || !waiting.isEmpty || subscribers.isInRound }

  /// Whether its connections may have more under way than one request each. Root is trusted, and very different services
  /// are root.
  var hasRoom: Bool { userID == 0 || (changes < limits.changesPerUser && output < limits.outputPerUser) }
}

/// Connections in the order of their turns.
final class TokenQueue {
  /// A ring: as many places as a power of two.
  private let tokens = Slots(repeating: ConnectionToken(rawValue: 0), count: 4)
  private var start = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Puts one at the end.
  func append(_ token: ConnectionToken) {
    if count == tokens.count {
      tokens.grow(repeating: token)
      // Those that stood in front of the first come behind the others.
      for place in 0..<start { tokens[count + place] = tokens[place] }
    }
    tokens[(start + count) & (tokens.count - 1)] = token
    count += 1
  }

  /// Takes the first one out; nil where there is none.
  func popFirst() -> ConnectionToken? {
    guard count > 0 else { return nil }
    let first = tokens[start]
    start = (start + 1) & (tokens.count - 1)
    count -= 1
    return first
  }
}

/// All connections by their token, and the users behind them.
final class ConnectionTable {
  private let slots = Slots<Connection?>(repeating: nil, count: 64)
  private var generations: [UInt32] = []
  private var free: [Int] = []
  private var users: [UInt32: UserShare] = [:] {
    didSet {
      isShared = users.count > 1
      turn = isShared ? .shared : .alone
    }
  }
  private(set) var count = 0

  /// Whether several users are there, so that none may take a long turn.
  private(set) var isShared = false
  /// How much may be done in one turn now.
  private(set) var turn = TurnBound.alone

  /// The connection with this token, if it is still there.
  subscript(_ token: ConnectionToken) -> Connection? {
    guard token.slot < slots.count, let connection = slots[token.slot], connection.token == token else { return nil }
    return connection
  }

  /// All that are there.
  var all: [Connection] { (0..<slots.count).compactMap { slots[$0] } }

  /// How many of them all subscribed.
  var subscribers: Int { users.values.reduce(0) { $0 + $1.subscribers.count } }

  /// All users.
  var allUsers: [UserShare] { Array(users.values) }

  /// Puts other bounds in force.
  func use(_ limits: Limits) { for user in users.values { user.limits = limits } }

  /// Why this user gets no more connections; nil when there is room.
  func refusal(of userID: UInt32, _ limits: Limits) -> Refusal? {
    if userID != 0, users[userID]?.connections ?? 0 >= limits.connectionsPerUser {
      return .busy("uid \(userID) has \(limits.connectionsPerUser) connections, which is all it may have")
    }
    let open = userID == 0 ? limits.connections : limits.connections - limits.reservedConnections
    return count >= open ? .busy("there are \(count) connections, which is all there may be") : nil
  }

  /// Makes place for a connection.
  func insert(_ descriptor: consuming Descriptor, peer held: HeldPeer, _ limits: Limits) -> Connection {
    let userID = held.peer.userID
    let user = users[userID] ?? UserShare(userID, limits)
    users[userID] = user
    let slot = free.popLast() ?? generations.count
    if slot == generations.count { generations.append(0) }
    if slot == slots.count { slots.grow(repeating: nil) }
    let connection = Connection(
      descriptor, token: ConnectionToken(slot: slot, generation: generations[slot]), peer: held, user: user)
    slots[slot] = connection
    user.connections += 1
    count += 1
    return connection
  }

  /// Forgets a connection; its descriptor closes with the last reference.
  func remove(_ connection: Connection) {
    guard self[connection.token] === connection else { return }
    let slot = connection.token.slot
    slots[slot] = nil
    generations[slot] &+= 1
    free.append(slot)
    count -= 1
    connection.user.connections -= 1
    forget(connection.user)
  }

  /// The writer is done with a change that this user asked for.
  func finishChange(of userID: UInt32) {
    guard let user = users[userID] else { return }
    user.changes -= 1
    forget(user)
  }

  /// A user is known until its last change is done: what is held for it counts, whoever has closed what.
  private func forget(_ user: UserShare) {
    if user.connections == 0, user.changes == 0 { users[user.userID] = nil }
  }
}
