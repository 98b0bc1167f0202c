import Attestation
import IdentityCore
import LinuxSystem

/// The share of one principal: its connections, and the memory and work held for them.
///
/// Principals take turns, and each has queues of its own. So a principal with a thousand waiting connections waits for
/// a turn like a principal with a single connection.
final class PrincipalShare {
  let principal: Principal
  /// Whether the principal may use the reserve; see ``Limits/reservePercent``.
  let usesReserve: Bool
  /// The bounds in force.
  var limits: Limits

  fileprivate(set) var connections = 0
  var subscribers = SubscriberList()
  /// The number of the principal's requests that the writer has not answered.
  var jobs = 0
  /// The size of the principal's pending output, in bytes.
  var output = 0
  /// Connections with a long answer that is being written.
  ///
  /// They are served before all others, so that a principal has at most ``Bound/longAnswersAtOnce`` such answers in
  /// memory, and not one for each connection.
  let writing = ConnectionQueue()
  /// Connections whose next request is a list that has to wait for the end of one of those answers.
  let listing = ConnectionQueue()
  /// Connections with other work, in the order of their turns.
  let waiting = ConnectionQueue()
  /// New connections that are to be established; see ``TurnService/establish(of:atMost:_:)``.
  let new = ConnectionQueue()
  /// Whether the principal is queued for a turn.
  var isWaiting = false
  /// The time by which the principal has overrun its turn and that it still has to give up, in microseconds.
  var overdraft: UInt64 = 0

  init(_ principal: Principal, usesReserve: Bool = false, _ limits: Limits) {
    self.principal = principal
    self.usesReserve = usesReserve
    self.limits = limits
  }

  /// Whether the principal has a connection, or a request at the writer from a connection that has closed.
  fileprivate var isPresent: Bool { connections > 0 || jobs > 0 }

  /// Whether the principal has pending work.
  var isDue: Bool { !writing.isEmpty || !listing.isEmpty || !waiting.isEmpty || !new.isEmpty || subscribers.isInRound }

  /// Whether the principal's connections may have more than one request in progress each.
  ///
  /// Root is trusted, and unrelated services run as root.
  var hasRoom: Bool { principal.isTrusted || !(hasMostChanges || hasMostOutput) }

  /// Whether as many requests as are allowed wait for the writer.
  fileprivate var hasMostChanges: Bool { jobs >= limits.changesPerUser }

  /// Whether as much output as is allowed waits for the clients.
  fileprivate var hasMostOutput: Bool { output >= limits.outputPerUser }
}

/// A bound of each principal's share, except that of a trusted principal. The raw values appear in `stats`.
enum PrincipalBound: String, CaseIterable {
  /// The connections that the principal may have now.
  case connections
  /// ``Limits/changesPerUser``.
  case changes
  /// ``Limits/outputPerUser``.
  case output
}

/// A queue of connections in the order of their turns.
final class ConnectionQueue {
  /// A ring buffer whose size is a power of two.
  private let tokens = Slots(repeating: ConnectionToken(rawValue: 0), count: 4)
  private var start = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Appends a connection.
  func append(_ token: ConnectionToken) {
    if count == tokens.count {
      tokens.grow(repeating: token)
      // The part before the start moves behind the old end.
      for index in 0..<start { tokens[count + index] = tokens[index] }
    }
    tokens[(start + count) & (tokens.count - 1)] = token
    count += 1
  }

  /// Removes and returns the first connection; nil if the queue is empty.
  func popFirst() -> ConnectionToken? {
    guard count > 0 else { return nil }
    let first = tokens[start]
    start = (start + 1) & (tokens.count - 1)
    count -= 1
    return first
  }
}

/// The table of all connections by token, with the shares of their principals.
final class ConnectionTable {
  private let slots = Slots<Connection?>(repeating: nil, count: 64)
  private let generations = Slots<UInt32>(repeating: 0, count: 64)
  /// The part of its principal's pending output that each connection accounts for, in bytes.
  private let outputs = Slots(repeating: 0, count: 64)
  /// The free list: slots that were used and are free again. Only the first ``freeCount`` elements count.
  private let free = Slots(repeating: 0, count: 64)
  private var freeCount = 0
  /// The number of slots that were ever used.
  private var used = 0

  /// The shares by principal.
  private var shares: [Principal: PrincipalShare] = [:]
  /// The share of the principal that connected last. Kept even if nothing is held for the principal, because a
  /// principal that connects once often connects again.
  private var latest: PrincipalShare?
  /// The number of principals for whom something is held.
  private var present = 0 {
    didSet {
      isShared = present > 1
      turn = isShared ? .shared : .alone
    }
  }
  private(set) var count = 0

  /// Whether several principals are present, so that none may take a long turn.
  private(set) var isShared = false
  /// The bounds of a turn now.
  private(set) var turn = TurnBound.alone

  /// The connection with a token; nil if it was removed. Inlined, because every request runs this code.
  @inline(__always)
  subscript(_ token: ConnectionToken) -> Connection? {
    guard token.slot < slots.count, let connection = slots[token.slot], connection.token == token else { return nil }
    return connection
  }

  /// All connections.
  var all: [Connection] { (0..<slots.count).compactMap { slots[$0] } }

  /// The number of subscribers.
  var subscribers: Int { shares.values.reduce(0) { $0 + $1.subscribers.count } }

  /// Calls `body` for each present principal. `body` must not add or remove connections.
  func forEachShare(_ body: (PrincipalShare) -> Void) {
    for share in shares.values where share.isPresent { body(share) }
  }

  /// The number of principals with a subscriber.
  var subscribedPrincipals: Int { shares.values.count { $0.subscribers.count > 0 } }

  /// The shares of all present principals.
  var allShares: [PrincipalShare] { shares.values.filter(\.isPresent) }

  /// Returns the number of principals whose share is at a bound.
  func principals(at bound: PrincipalBound) -> Int {
    allShares.count { share in
      guard !share.principal.isTrusted else { return false }
      return switch bound {
      case .connections: hasMostConnections(share, usesReserve: share.usesReserve, share.limits)
      case .changes: share.hasMostChanges
      case .output: share.hasMostOutput
      }
    }
  }

  /// Applies other bounds.
  func use(_ limits: Limits) { for share in shares.values { share.limits = limits } }

  /// Returns the reason why a peer gets no further connection; nil if there is room.
  ///
  /// The last ``ConnectionLimits/reserved`` are for root. ``Limits/reservePercent`` of the others are for system users
  /// and for principals without a connection.
  func refusal(of peer: HeldPeer, _ limits: Limits) -> ConnectionRefusal? {
    let principal = peer.principal
    guard count < limits.connections.most(for: principal) else {
      return ConnectionRefusal(
        .connections, .busy("there are \(count) connections, which is the limit; try again later"), of: principal)
    }
    guard !principal.isTrusted, let share = existingShare(of: principal),
      hasMostConnections(share, usesReserve: peer.usesReserve, limits)
    else { return nil }
    return ConnectionRefusal(
      .principal, .busy("\(principal) has \(share.connections) connections and may have no more now"), of: principal)
  }

  /// Returns whether a principal that is not trusted has as many connections as it may have now.
  private func hasMostConnections(_ share: PrincipalShare, usesReserve: Bool, _ limits: Limits) -> Bool {
    let own = share.connections
    guard own > 0 else { return false }
    return own
      >= limits.share(
        of: limits.connections.most(for: share.principal), atMost: limits.connections.perUser, used: count, own: own,
        principals: present, usesReserve: usesReserve)
  }

  /// Adds a connection.
  ///
  /// - Parameter process: a pidfd of the process that connected; nil if it is not known yet.
  func insert(
    _ descriptor: consuming Descriptor, peer held: HeldPeer, _ limits: Limits, process: consuming Descriptor?
  ) -> Connection {
    let share =
      existingShare(of: held.principal) ?? PrincipalShare(held.principal, usesReserve: held.usesReserve, limits)
    become(latest: share)
    let slot = takeSlot()
    let connection = Connection(
      descriptor, token: ConnectionToken(slot: slot, generation: generations[slot]), peer: held, share: share,
      process: process)
    slots[slot] = connection
    change(share) { $0.connections += 1 }
    count += 1
    return connection
  }

  /// Removes a connection. Its descriptor closes with the last reference to the connection.
  func remove(_ connection: Connection) {
    guard self[connection.token] === connection else { return }
    let slot = connection.token.slot
    count(output: 0, of: connection)
    slots[slot] = nil
    generations[slot] &+= 1
    free[freeCount] = slot
    freeCount += 1
    count -= 1
    change(connection.share) { $0.connections -= 1 }
  }

  /// Updates a connection's part of its principal's pending output. A removed connection has none.
  func countOutput(of connection: Connection) {
    if self[connection.token] === connection {
      count(output: connection.output.count - connection.sent, of: connection)
    }
  }

  private func count(output: Int, of connection: Connection) {
    let slot = connection.token.slot
    connection.share.output += output - outputs[slot]
    outputs[slot] = output
  }

  /// Charges the time for the arrival of a connection, which passed outside of the principal's turns.
  ///
  /// A principal that arrives again and again so gives up turns, even if each of its connections has closed by then. If
  /// no other principal is present, the time is at nobody's expense.
  func charge(_ microseconds: UInt64, to principal: Principal) {
    guard let share = existingShare(of: principal), present > (share.isPresent ? 1 : 0) else { return }
    share.overdraft = max(share.overdraft, min(share.overdraft + microseconds, Bound.arrivalOverdraft))
  }

  /// Returns whether a principal has used up the time of its next turn, at the expense of others.
  func isOverdrawn(_ share: PrincipalShare) -> Bool { isShared && share.overdraft >= turn.microseconds }

  /// Notes that a request of a connection goes to the writer.
  func beginJob(of connection: Connection) { connection.share.jobs += 1 }

  /// Notes that the writer has answered a request of a principal.
  func finishJob(of principal: Principal) {
    if let share = existingShare(of: principal) { change(share) { $0.jobs -= 1 } }
  }

  private func takeSlot() -> Int {
    if freeCount > 0 {
      freeCount -= 1
      return free[freeCount]
    }
    if used == slots.count {
      slots.grow(repeating: nil)
      generations.grow(repeating: 0)
      outputs.grow(repeating: 0)
      free.grow(repeating: 0)
    }
    used += 1
    return used - 1
  }

  private func existingShare(of principal: Principal) -> PrincipalShare? {
    if let latest, latest.principal == principal { return latest }
    return shares[principal]
  }

  private func become(latest share: PrincipalShare) {
    guard share !== latest else { return }
    if let latest, !latest.isPresent { shares[latest.principal] = nil }
    shares[share.principal] = share
    latest = share
  }

  /// Changes the amounts held for a principal. The share is kept until the last change at the writer is finished, even
  /// if all connections of the principal are closed.
  private func change(_ share: PrincipalShare, _ body: (PrincipalShare) -> Void) {
    let wasPresent = share.isPresent
    body(share)
    guard share.isPresent != wasPresent else { return }
    present += wasPresent ? -1 : 1
    if wasPresent, share !== latest { shares[share.principal] = nil }
  }
}
