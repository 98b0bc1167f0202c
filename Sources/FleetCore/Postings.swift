import FleetWire

/// The progress of getting known messages to the broker, for each topic of a device.
///
/// A broker's acknowledgement proves nothing, so a published message is read back until the broker shows it. All
/// topics follow the same rules: the own record, tombstones, and the records of others that a broker has lost.
struct Postings: Sendable {
  /// The state of a topic. A topic without a state is settled: the broker has shown the known message, or the next
  /// reading tells.
  enum State: Equatable, Sendable {
    /// The message was absent from a reading, and is asked for after a pause.
    case missing
    /// The broker is asked for a message that was absent from a reading.
    case asking
    /// The message is published after a pause, for the attempt-th time from 0.
    case due(attempt: Int)
    /// The message was published, and is read back after a pause.
    case published(attempt: Int)
    /// The broker is asked for a message that was published.
    case readingBack(attempt: Int)
  }

  /// A deadline's consequence for a topic.
  enum Step: Equatable, Sendable {
    /// Ask the broker for the topic.
    case ask
    /// Publish the message, if there is an allowance.
    case publish
    /// Nothing yet.
    case wait
  }

  private var states: [DeviceTag: State] = [:]

  /// Whether nothing is to be done for a topic.
  func isSettled(_ tag: DeviceTag) -> Bool { states[tag] == nil }

  /// Notes that the broker showed the known message.
  mutating func sawKnown(_ tag: DeviceTag, isRetained: Bool, _ actions: inout [Action]) {
    switch states[tag] {
    case .published, .readingBack:
      // A live message is the echo of the publication, and does not prove that the broker retained it.
      if isRetained { settle(tag, &actions) }
    case nil, .missing, .asking, .due: settle(tag, &actions)
    }
  }

  /// Notes that the broker showed a message that the known one outranks, an invalid one, or none.
  mutating func sawInferior(_ tag: DeviceTag, isRetained: Bool, isOwn: Bool, _ actions: inout [Action]) {
    let delay = isOwn ? Pace.ownPutBack : Pace.othersPutBack
    switch states[tag] {
    case nil, .missing, .asking: schedule(tag, attempt: 0, after: delay, &actions)
    case .due: break
    case .published(let attempt), .readingBack(let attempt):
      // A live message may have reached the broker before the publication did. The reading back tells.
      if isRetained { schedule(tag, attempt: attempt + 1, after: delay, &actions) }
    }
  }

  /// Notes that a message was absent from a reading of the whole roster.
  mutating func missed(_ tag: DeviceTag, isOwn: Bool, _ actions: inout [Action]) {
    guard states[tag] == nil else { return }
    guard !isOwn else { return schedule(tag, attempt: 0, after: Pace.ownPutBack, &actions) }
    states[tag] = .missing
    actions.append(.wake(.posting(tag), after: Pace.absence))
  }

  /// Notes that the broker acknowledged the question for a topic. A retained message follows soon, or there is none.
  mutating func acknowledged(_ tag: DeviceTag, _ actions: inout [Action]) {
    switch states[tag] {
    case .asking, .readingBack: actions.append(.wake(.posting(tag), after: Pace.quiet))
    case nil, .missing, .due, .published: break
    }
  }

  /// Takes the next step for a topic after its deadline.
  mutating func woke(_ tag: DeviceTag, _ actions: inout [Action]) -> Step {
    switch states[tag] {
    case nil: return .wait
    case .missing: states[tag] = .asking
    case .published(let attempt): states[tag] = .readingBack(attempt: attempt)
    case .asking:
      schedule(tag, attempt: 0, after: Pace.absentPutBack, &actions)
      return .wait
    case .readingBack(let attempt):
      states[tag] = .due(attempt: attempt + 1)
      return .publish
    case .due: return .publish
    }
    actions.append(.wake(.posting(tag), after: Pace.acknowledgement))
    return .ask
  }

  /// Notes that the known message was published.
  mutating func published(_ tag: DeviceTag, _ actions: inout [Action]) {
    var attempt = 0
    if case .due(let number) = states[tag] { attempt = number }
    states[tag] = .published(attempt: attempt)
    actions.append(.wake(.posting(tag), after: Pace.readBack(attempt)))
  }

  /// Plans to publish a message that was due, but could not be published.
  mutating func postpone(_ tag: DeviceTag, _ actions: inout [Action]) {
    actions.append(.wake(.posting(tag), after: Pace.retriedPutBack))
  }

  private mutating func schedule(_ tag: DeviceTag, attempt: Int, after delay: Delay, _ actions: inout [Action]) {
    states[tag] = .due(attempt: attempt)
    actions.append(.wake(.posting(tag), after: delay))
  }

  /// Forgets the state of a topic: the broker has the known message.
  mutating func settle(_ tag: DeviceTag, _ actions: inout [Action]) {
    if states.removeValue(forKey: tag) != nil { actions.append(.cancel(.posting(tag))) }
  }

  /// Forgets all states, because the connection ended.
  mutating func reset(_ actions: inout [Action]) {
    actions += states.keys.sorted().map { .cancel(.posting($0)) }
    states = [:]
  }
}
