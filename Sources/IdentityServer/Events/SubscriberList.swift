/// The subscribed connections of a principal, visited in rounds: once in each round, even if others come and
/// go meanwhile.
struct SubscriberList {
  private var tokens: [ConnectionToken] = []
  /// The round of the last visit, by the same index as `tokens`.
  private var visited: [UInt64] = []
  private var indices: [ConnectionToken: Int] = [:]
  private var round: UInt64 = 0
  private var position = 0
  /// The number of subscribers to examine until the end of the round.
  private var left = 0

  /// The number of subscribers.
  var count: Int { tokens.count }

  /// Adds a subscriber. The current round does not visit the new subscriber, because the events of the round precede
  /// the subscription.
  mutating func insert(_ token: ConnectionToken) {
    guard indices[token] == nil else { return }
    indices[token] = tokens.count
    tokens.append(token)
    visited.append(round)
    if left > 0 { left += 1 }
  }

  mutating func remove(_ token: ConnectionToken) {
    guard let index = indices.removeValue(forKey: token), let last = tokens.popLast(), let when = visited.popLast()
    else {
      return
    }
    if index < tokens.count {
      tokens[index] = last
      visited[index] = when
      indices[last] = index
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
      let index = position
      position += 1
      guard visited[index] != round else { continue }
      visited[index] = round
      return tokens[index]
    }
    left = 0
    return nil
  }
}
