import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

// The way of events: from a commit to whoever subscribed.
extension Server {
  /// `subscribe`: the answer, and from then on events.
  func subscribe(_ topics: Set<Topic>, since number: EventNumber?, snapshot: Bool, _ connection: Connection)
    throws(Refusal)
  {
    // Without them the last number is not known either.
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
    // What it asked for of before follows with its turn.
    connection.subscription?.add(topics, after: since ?? events.last, now: events.last)
  }

  private func requireRoomToSubscribe(_ connection: Connection) throws(Refusal) {
    let user = connection.share
    guard !user.principal.isTrusted else { return }
    let limits = user.limits
    let own = user.subscribers.count
    let subscribers = connections.subscribers
    guard subscribers < limits.subscribers else {
      throw .limit("there are \(subscribers) subscribers, which is all there may be ([Limits] Subscribers=)")
    }
    guard own > 0 else { return }
    let most = limits.share(
      of: limits.subscribers, atMost: limits.subscribersPerUser, used: subscribers, own: own,
      principals: connections.subscribedPrincipals, usesReserve: connection.held.usesReserve)
    guard own < most else {
      throw .limit(
        "\(user.principal) has \(own) subscribers, which is all it may have now ([Limits] SubscribersPerUser=)")
    }
  }

  /// A connection is one of its user's subscribers from now on.
  func countSubscriber(_ connection: Connection) { connection.share.subscribers.insert(connection.token) }

  /// `unsubscribe`.
  func unsubscribe(_ topics: Set<Topic>, _ connection: Connection) {
    connection.subscription?.remove(topics)
    if connection.subscription?.isEmpty == true { endSubscription(of: connection) }
    Reply.done.append(to: &connection.output)
  }

  /// It is told of nothing any more.
  func endSubscription(of connection: Connection) {
    guard connection.isSubscribed else { return }
    connection.subscription = nil
    connection.share.subscribers.remove(connection.token)
  }

  /// There are new events: every subscriber is looked at once, a few in each turn of its user. So a request waits for
  /// those few, however many there are, and the subscribers are never left out.
  func publish() {
    connections.forEachUser { user in if user.subscribers.startRound() { waitForTurn(user) } }
  }

  /// Goes on with the round of a user's subscribers: by one at least, so that none waits for ever.
  func publishSome(to user: PrincipalShare, _ isOver: () -> Bool) {
    guard user.subscribers.isInRound else { return }
    let newest = events.newest
    // Subscribers often are of one process, and what it may see does not change within these few.
    var seer: HeldPeer?
    var isVisible = false
    var visited = 0
    // To look at the clock costs a tenth of what an event does.
    while visited < Bound.subscribersPerTurn, visited == 0 || visited % 8 > 0 || !isOver(),
      let token = user.subscribers.next()
    {
      visited += 1
      guard let connection = connections[token] else { continue }
      guard let newest, connection.awaitsOnly(newest), !isStopping else {
        // Handing the events out is part of going on with a connection.
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

  /// Sends the newest event to a subscriber that is at rest and has all before it: as it stands in the log, because that
  /// is what most of them get most of the time.
  private func hand(_ newest: EventLog.Line, isVisible: Bool, to connection: Connection) {
    hold(connection)
    guard connection.pass(newest), isVisible else { return rest(connection) }
    // Where it fails, it does so again when the rest is sent.
    let sent = (try? connection.descriptor.send(newest.bytes)) ?? 0
    guard sent < newest.bytes.count else { return rest(connection) }
    connection.output += newest.bytes[sent...]
    advance(connection)
  }

  /// Puts the next events into a connection's output, or counts them where it has no room.
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

/// The connections of a user that subscribed, visited in rounds: each once, whoever comes and goes meanwhile.
struct SubscriberList {
  private var tokens: [ConnectionToken] = []
  /// The round in which each was visited last.
  private var visited: [UInt64] = []
  private var places: [ConnectionToken: Int] = [:]
  private var round: UInt64 = 0
  private var position = 0
  /// How many places are to be looked at before the round is at its end.
  private var left = 0

  /// How many there are.
  var count: Int { tokens.count }

  /// Takes one in. What happened before it came is not its concern, so the round does not have to visit it.
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
    // The last one may have come to a place that the round has passed.
    if left > 0 { left = tokens.count }
  }

  /// Whether a round is not at its end.
  var isInRound: Bool { left > 0 }

  /// Begins a round where the last one is: everybody is visited once more.
  ///
  /// - Returns: whether there is anybody to visit.
  mutating func startRound() -> Bool {
    round += 1
    left = tokens.count
    return left > 0
  }

  /// The next one of the round; nil at its end.
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
