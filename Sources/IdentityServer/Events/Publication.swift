import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

// The path of events: from a commit to the subscribers.
extension Server {
  /// `subscribe`: answers, and begins or extends the connection's subscription.
  func subscribe(_ topics: Set<Topic>, since number: EventNumber?, snapshot: Bool, _ connection: Connection)
    throws(Refusal)
  {
    // Without the events, the last sequence number is unknown too.
    try registry.requireProof(of: .events)
    let since = number?.sequence
    if let since {
      if let epoch = number?.epoch, epoch != events.epoch { throw .anotherEpoch(events.epoch) }
      guard since <= events.last else {
        throw .badArgument(
          verb: "subscribe",
          .notAllowed(name: "since", value: Text("\(since)"), allowed: "up to \(events.last), the last event"))
      }
      guard since >= events.oldest else { throw .gone(since: since, oldest: events.oldest) }
    }
    if snapshot { try registry.requireProof(forSnapshotOf: topics) }
    if !connection.isSubscribed { try requireRoomToSubscribe(connection) }
    var reply = snapshot ? registry.snapshot(of: topics, for: connection.peer) : Reply()
    reply.ok()
    reply.word(.number(since ?? events.last))
    reply.attribute("epoch", .text(events.epoch))
    reply.append(to: &connection.output)
    if !connection.isSubscribed {
      connection.subscription = Subscription(at: since ?? events.last)
      countSubscriber(connection)
    }
    // Requested past events follow in the connection's turns.
    connection.subscription?.add(topics, after: since ?? events.last, now: events.last)
  }

  private func requireRoomToSubscribe(_ connection: Connection) throws(Refusal) {
    let user = connection.share
    guard !user.principal.isTrusted else { return }
    let limits = user.limits
    let own = user.subscribers.count
    let subscribers = connections.subscribers
    guard subscribers < limits.subscribers else {
      throw .limit("there are \(subscribers) subscribers, which is the limit ([Limits] Subscribers=)")
    }
    guard own > 0 else { return }
    let most = limits.share(
      of: limits.subscribers, atMost: limits.subscribersPerUser, used: subscribers, own: own,
      principals: connections.subscribedPrincipals, usesReserve: connection.held.usesReserve)
    guard own < most else {
      throw .limit(
        "\(user.principal) has \(own) subscribers and may have no more now ([Limits] SubscribersPerUser=)")
    }
  }

  /// Adds a connection to the subscribers of its principal.
  func countSubscriber(_ connection: Connection) { connection.share.subscribers.insert(connection.token) }

  /// `unsubscribe`: removes topics, and ends the subscription if no topic is left.
  func unsubscribe(_ topics: Set<Topic>, _ connection: Connection) {
    connection.subscription?.remove(topics)
    if connection.subscription?.isEmpty == true { endSubscription(of: connection) }
    Reply.done.append(to: &connection.output)
  }

  /// Ends the subscription of a connection, if any.
  func endSubscription(of connection: Connection) {
    guard connection.isSubscribed else { return }
    connection.subscription = nil
    connection.share.subscribers.remove(connection.token)
  }

  /// Starts a round over all subscribers after new events. A few subscribers are visited in each turn of
  /// their principal.
  ///
  /// So a request waits only for those few, however many subscribers there are, and no subscriber is left out.
  func publish() {
    connections.forEachUser { user in if user.subscribers.startRound() { waitForTurn(user) } }
  }

  /// Continues the round over a principal's subscribers.
  func publishSome(to user: PrincipalShare) {
    guard user.subscribers.isInRound else { return }
    let newest = events.newest
    // Subscribers often belong to one process, and the rights of a peer do not change within this call. So the rights
    // are checked once for consecutive connections of a process.
    var seer: HeldPeer?
    var isVisible = false
    var visited = 0
    while visited < Bound.subscribersPerTurn, let token = user.subscribers.next() {
      visited += 1
      guard let connection = connections[token] else { continue }
      guard let newest, connection.awaitsOnly(newest), stop == .running else {
        // `advance` hands out events.
        advance(connection)
        continue
      }
      if connection.held !== seer {
        seer = connection.held
        isVisible = registry.may(connection.peer, see: newest.audience)
      }
      hand(newest, isVisible: isVisible, to: connection)
    }
  }

  /// Sends the newest event to a subscriber that has received all earlier ones and has nothing in progress or pending.
  ///
  /// Sends the line directly from the log, because this is the most frequent case.
  private func hand(_ newest: EventLog.Line, isVisible: Bool, to connection: Connection) {
    hold(connection)
    guard connection.pass(newest), isVisible else { return rest(connection) }
    // An error is ignored here, because it recurs when the rest is sent.
    let sent = (try? connection.descriptor.send(newest.bytes)) ?? 0
    guard sent < newest.bytes.count else { return rest(connection) }
    connection.output += newest.bytes[sent...]
    advance(connection)
  }

  /// Appends the next events to a connection's output, or only counts them if too much output is pending.
  func takeEvents(_ connection: Connection) {
    guard connection.isSubscribed, connection.wantsEvents(events) else { return }
    let peer = connection.peer
    let unsent = connection.output.count - connection.sent
    if unsent < Bound.eventsPerTurn {
      connection.subscription?.fill(&connection.output, from: connection.sent, events) { registry.may(peer, see: $0) }
    } else {
      connection.subscription?.count(unsent, events) { registry.may(peer, see: $0) }
    }
  }
}

/// The subscribed connections of a principal, visited in rounds: once in each round, even if others come and
/// go meanwhile.
struct SubscriberList {
  private var tokens: [ConnectionToken] = []
  /// The round of the last visit, by the same index as `tokens`.
  private var visited: [UInt64] = []
  private var places: [ConnectionToken: Int] = [:]
  private var round: UInt64 = 0
  private var position = 0
  /// The number of indices to examine until the end of the round.
  private var left = 0

  /// The number of subscribers.
  var count: Int { tokens.count }

  /// Adds a subscriber. The current round does not visit the new subscriber, because the events of the round precede
  /// the subscription.
  mutating func insert(_ token: ConnectionToken) {
    guard places[token] == nil else { return }
    places[token] = tokens.count
    tokens.append(token)
    visited.append(round)
    if left > 0 { left += 1 }
  }

  mutating func remove(_ token: ConnectionToken) {
    guard let place = places.removeValue(forKey: token), let last = tokens.popLast(), let when = visited.popLast()
    else {
      return
    }
    if place < tokens.count {
      tokens[place] = last
      visited[place] = when
      places[last] = place
    }
    // The last element may have moved to an index that the round has passed.
    if left > 0 { left = tokens.count }
  }

  /// Whether a round is in progress.
  var isInRound: Bool { left > 0 }

  /// Starts a round at the current position, so that every subscriber is visited once more.
  ///
  /// - Returns: whether there are any subscribers.
  mutating func startRound() -> Bool {
    round += 1
    left = tokens.count
    return left > 0
  }

  /// Returns the next subscriber of the round; nil at the end of the round.
  mutating func next() -> ConnectionToken? {
    while left > 0, !tokens.isEmpty {
      left -= 1
      if position >= tokens.count { position = 0 }
      let place = position
      position += 1
      guard visited[place] != round else { continue }
      visited[place] = round
      return tokens[place]
    }
    left = 0
    return nil
  }
}
