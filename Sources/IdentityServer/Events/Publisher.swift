import Attestation
import IdentityCore
import IdentityWire

/// The subscriptions of all connections, and the rounds in which new events reach them.
final class Publisher {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler

  init(_ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
  }

  // MARK: Subscriptions

  /// `subscribe`: begins or extends the connection's subscription.
  ///
  /// - Returns: the answer. Events follow once all of it is in the output.
  func subscribe(_ connection: Connection, to topics: Set<Topic>, since number: EventNumber?, snapshot: Bool)
    throws(Refusal) -> Reply
  {
    let registry = state.registry
    let last = state.events.last
    // Without the events, the last sequence number is unknown too.
    try registry.requireProof(of: .events)
    let since = number?.sequence
    if let since {
      let epoch = state.events.epoch
      if let expected = number?.epoch, expected != epoch { throw .anotherEpoch(epoch) }
      guard since <= last else {
        throw .badArgument(
          verb: "subscribe",
          .notAllowed(name: "since", value: Text("\(since)"), allowed: "up to \(last), the last event"))
      }
      guard since >= state.events.oldest else { throw .gone(since: since, oldest: state.events.oldest) }
    }
    if snapshot { try registry.requireProof(forSnapshotOf: topics) }
    if !connection.isSubscribed { try requireRoom(for: connection) }
    var reply = snapshot ? registry.snapshot(of: topics, for: connection.peer) : Reply()
    reply.ok()
    reply.word(.number(since ?? last))
    reply.attribute("epoch", .text(state.events.epoch))
    if !connection.isSubscribed { adopt(Subscription(at: since ?? last), of: connection) }
    // Requested past events follow in the connection's turns.
    connection.subscription?.add(topics, after: since ?? last, now: last)
    return reply
  }

  private func requireRoom(for connection: Connection) throws(Refusal) {
    let share = connection.share
    guard !share.principal.isTrusted else { return }
    let limits = share.limits
    let own = share.subscribers.count
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
        "\(share.principal) has \(own) subscribers and may have no more now ([Limits] SubscribersPerUser=)")
    }
  }

  /// Gives a connection a subscription, and adds it to the subscribers of its principal.
  func adopt(_ subscription: Subscription, of connection: Connection) {
    connection.subscription = subscription
    connection.share.subscribers.insert(connection.token)
  }

  /// `unsubscribe`: removes topics, and ends the subscription if no topic is left.
  func unsubscribe(_ connection: Connection, from topics: Set<Topic>) {
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

  // MARK: Rounds

  /// Starts a round over all subscribers after new events. A few subscribers are visited in each turn of
  /// their principal.
  ///
  /// So a request waits only for those few, however many subscribers there are, and no subscriber is left out.
  func startRound() {
    connections.forEachShare { share in if share.subscribers.startRound() { scheduler.enqueue(share) } }
  }

  /// Continues the round over a principal's subscribers.
  func continueRound(of share: PrincipalShare, through service: ConnectionService) {
    guard share.subscribers.isInRound else { return }
    let newest = state.events.newest
    // Subscribers often belong to one process, and the rights of a peer do not change within this call. So the rights
    // are checked once for consecutive connections of a process.
    var seer: HeldPeer?
    var isVisible = false
    var visited = 0
    while visited < Bound.subscribersPerTurn, let token = share.subscribers.next() {
      visited += 1
      guard let connection = connections[token] else { continue }
      guard let newest, connection.awaitsOnly(newest), service.isRunning else {
        // `advance` hands out events.
        service.advance(connection)
        continue
      }
      if connection.held !== seer {
        seer = connection.held
        isVisible = state.registry.may(connection.peer, see: newest.audience, of: newest.topic)
      }
      service.send(newest, isVisible: isVisible, to: connection)
    }
  }

  /// Returns whether a subscription has events that may be sent now.
  func hasEvents(for connection: Connection) -> Bool {
    connection.isSubscribed && connection.wantsEvents(state.events)
  }

  /// Appends the next events to a connection's output, or only counts them if too much output is pending.
  func fill(_ connection: Connection) {
    guard hasEvents(for: connection) else { return }
    let peer = connection.peer
    let unsent = connection.output.count - connection.sent
    if unsent < Bound.eventBytesPerTurn {
      connection.subscription?.fill(&connection.output, from: connection.sent, state.events) {
        state.registry.may(peer, see: $0.audience, of: $0.topic)
      }
    } else {
      connection.subscription?.count(unsent, state.events) {
        state.registry.may(peer, see: $0.audience, of: $0.topic)
      }
    }
  }
}
