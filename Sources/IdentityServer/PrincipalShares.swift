import IdentityCore
import LinuxSystem

/// The share of one principal: its connections, and the memory and the work that is held for them.
///
/// Principals take turns, each with a list of its own of connections that have something to do: so one with a thousand of them
/// is one of those who wait, as is one with a single connection.
final class PrincipalShare {
  let principal: Principal
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

  init(_ principal: Principal, _ limits: Limits) {
    self.principal = principal
    self.limits = limits
  }

  /// Whether anything is held for it: a connection, or a change of one that has closed.
  fileprivate var isPresent: Bool { connections > 0 || changes > 0 }

  /// Whether there is something to do for it.
  var isDue: Bool { !writing.isEmpty || !waiting.isEmpty || subscribers.isInRound }

  /// Whether its connections may have more under way than one request each. Root is trusted, and very different services
  /// are root.
  var hasRoom: Bool { principal.isTrusted || (changes < limits.changesPerUser && output < limits.outputPerUser) }
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

/// All connections by their token, and the principals behind them.
final class ConnectionTable {
  private let slots = Slots<Connection?>(repeating: nil, count: 64)
  private let generations = Slots<UInt32>(repeating: 0, count: 64)
  /// Places that were taken and are free again: the first ``freeCount``.
  private let free = Slots(repeating: 0, count: 64)
  private var freeCount = 0
  /// How many places were ever taken.
  private var used = 0

  /// All that are known, by number.
  private var shares: [Principal: PrincipalShare] = [:]
  /// The one that connected last. It is known even when nothing is held for it: who connects once often does so again.
  private var latest: PrincipalShare?
  /// How many of them have something here.
  private var present = 0 {
    didSet {
      isShared = present > 1
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
  var subscribers: Int { shares.values.reduce(0) { $0 + $1.subscribers.count } }

  /// Tells of each user; what that does makes no other come or go.
  func forEachUser(_ body: (PrincipalShare) -> Void) { for user in shares.values where user.isPresent { body(user) } }

  /// How many principals subscribed.
  var subscribedPrincipals: Int { shares.values.count { $0.subscribers.count > 0 } }

  /// All that are present.
  var allUsers: [PrincipalShare] { shares.values.filter(\.isPresent) }

  /// Puts other bounds in force.
  func use(_ limits: Limits) { for user in shares.values { user.limits = limits } }

  /// Why this peer gets no more connections; nil when there is room.
  ///
  /// The reserve is for system users, and for principals without a connection.
  func refusal(of peer: HeldPeer, _ limits: Limits) -> Refusal? {
    let principal = peer.principal
    let open = principal.isTrusted ? limits.connections : limits.connections - limits.reservedConnections
    guard count < open else { return .busy("there are \(count) connections, which is all there may be") }
    guard !principal.isTrusted, let own = share(of: principal)?.connections, own > 0 else { return nil }
    let most = limits.share(
      of: open, atMost: limits.connectionsPerUser, used: count, own: own, principals: present,
      usesReserve: peer.usesReserve)
    guard own >= most else { return nil }
    return .busy("\(principal) has \(own) connections, which is all it may have now")
  }

  /// Makes place for a connection.
  func insert(_ descriptor: consuming Descriptor, peer held: HeldPeer, _ limits: Limits) -> Connection {
    let user = share(of: held.principal) ?? PrincipalShare(held.principal, limits)
    become(latest: user)
    let slot = takePlace()
    let connection = Connection(
      descriptor, token: ConnectionToken(slot: slot, generation: generations[slot]), peer: held, share: user)
    slots[slot] = connection
    change(user) { $0.connections += 1 }
    count += 1
    return connection
  }

  /// Forgets a connection; its descriptor closes with the last reference.
  func remove(_ connection: Connection) {
    guard self[connection.token] === connection else { return }
    let slot = connection.token.slot
    slots[slot] = nil
    generations[slot] &+= 1
    free[freeCount] = slot
    freeCount += 1
    count -= 1
    change(connection.share) { $0.connections -= 1 }
  }

  /// The writer is done with a change that this user asked for.
  func finishChange(of principal: Principal) {
    if let user = share(of: principal) { change(user) { $0.changes -= 1 } }
  }

  private func takePlace() -> Int {
    if freeCount > 0 {
      freeCount -= 1
      return free[freeCount]
    }
    if used == slots.count {
      slots.grow(repeating: nil)
      generations.grow(repeating: 0)
      free.grow(repeating: 0)
    }
    used += 1
    return used - 1
  }

  private func share(of principal: Principal) -> PrincipalShare? {
    if let latest, latest.principal == principal { return latest }
    return shares[principal]
  }

  private func become(latest user: PrincipalShare) {
    guard user !== latest else { return }
    if let latest, !latest.isPresent { shares[latest.principal] = nil }
    shares[user.principal] = user
    latest = user
  }

  /// Changes what is held for a user. It is known until its last change is done: that counts, whoever has closed what.
  private func change(_ user: PrincipalShare, _ body: (PrincipalShare) -> Void) {
    let wasPresent = user.isPresent
    body(user)
    guard user.isPresent != wasPresent else { return }
    present += wasPresent ? -1 : 1
    // What it took too much of, it took from those who were there.
    user.overdraft = 0
    if wasPresent, user !== latest { shares[user.principal] = nil }
  }
}
