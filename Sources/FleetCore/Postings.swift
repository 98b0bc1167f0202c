import FleetWire

/// A value that names a topic on which a message is retained.
protocol PostingPlace: Hashable, Comparable, Sendable {
  /// The deadline of the next step for the topic.
  var deadline: Deadline { get }
}

extension DeviceTag: PostingPlace {
  var deadline: Deadline { .posting(self) }
}

/// The progress of getting known messages to the broker, for each topic.
///
/// A broker's acknowledgement proves nothing, so a published message is read back until the broker shows it. All
/// topics follow the same rules: the own record, tombstones, the records of others that a broker has lost, invitations.
struct Postings<Place: PostingPlace>: Sendable {
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

  private var states: [Place: State] = [:]

  /// Whether nothing is to be done for a topic.
  func isSettled(_ place: Place) -> Bool { states[place] == nil }

  /// How often the broker has not shown a message that was published.
  func attempts(_ place: Place) -> Int {
    switch states[place] {
    case .due(let attempt), .published(let attempt), .readingBack(let attempt): attempt
    case nil, .missing, .asking: 0
    }
  }

  /// Notes that the broker showed the known message.
  mutating func sawKnown(_ place: Place, isRetained: Bool, _ actions: inout [Action]) {
    switch states[place] {
    case .published, .readingBack:
      // A live message is the echo of the publication, and does not prove that the broker retained it.
      if isRetained { settle(place, &actions) }
    case nil, .missing, .asking, .due: settle(place, &actions)
    }
  }

  /// Notes that the broker showed a message that the known one outranks, an invalid one, or none.
  mutating func sawInferior(_ place: Place, isRetained: Bool, isOwn: Bool, _ actions: inout [Action]) {
    let delay = isOwn ? Pace.ownPutBack : Pace.othersPutBack
    switch states[place] {
    case nil, .missing, .asking: schedule(place, attempt: 0, after: delay, &actions)
    case .due: break
    case .published(let attempt), .readingBack(let attempt):
      // A live message may have reached the broker before the publication did. The reading back tells.
      if isRetained { schedule(place, attempt: attempt + 1, after: delay, &actions) }
    }
  }

  /// Notes that a message was absent from a reading.
  ///
  /// - Parameter isLost: whether there is another sign that the broker does not have the message.
  mutating func missed(_ place: Place, isOwn: Bool, isLost: Bool = false, _ actions: inout [Action]) {
    guard !isLost else { return sawInferior(place, isRetained: true, isOwn: isOwn, &actions) }
    guard states[place] == nil else { return }
    guard !isOwn else { return schedule(place, attempt: 0, after: Pace.ownPutBack, &actions) }
    states[place] = .missing
    actions.append(.wake(place.deadline, after: Pace.absence))
  }

  /// Notes that the broker acknowledged the question for a topic. A retained message follows soon, or there is none.
  mutating func acknowledged(_ place: Place, _ actions: inout [Action]) {
    switch states[place] {
    case .asking, .readingBack: actions.append(.wake(place.deadline, after: Pace.quiet))
    case nil, .missing, .due, .published: break
    }
  }

  /// Takes the next step for a topic after its deadline.
  mutating func woke(_ place: Place, _ actions: inout [Action]) -> Step {
    switch states[place] {
    case nil: return .wait
    case .missing: states[place] = .asking
    case .published(let attempt): states[place] = .readingBack(attempt: attempt)
    case .asking:
      schedule(place, attempt: 0, after: Pace.absentPutBack, &actions)
      return .wait
    case .readingBack(let attempt):
      states[place] = .due(attempt: attempt + 1)
      return .publish
    case .due: return .publish
    }
    actions.append(.wake(place.deadline, after: Pace.acknowledgement))
    return .ask
  }

  /// Notes that the known message was published.
  mutating func published(_ place: Place, _ actions: inout [Action]) {
    var attempt = 0
    if case .due(let number) = states[place] { attempt = number }
    states[place] = .published(attempt: attempt)
    actions.append(.wake(place.deadline, after: Pace.readBack(attempt)))
  }

  /// Plans to publish a message that was due, but could not be published.
  mutating func postpone(_ place: Place, _ actions: inout [Action]) {
    actions.append(.wake(place.deadline, after: Pace.retriedPutBack))
  }

  /// Plans to publish a message after a pause, for the attempt-th time from 0.
  mutating func schedule(_ place: Place, attempt: Int, after delay: Delay, _ actions: inout [Action]) {
    states[place] = .due(attempt: attempt)
    actions.append(.wake(place.deadline, after: delay))
  }

  /// Forgets the state of a topic: the broker has the known message.
  mutating func settle(_ place: Place, _ actions: inout [Action]) {
    if states.removeValue(forKey: place) != nil { actions.append(.cancel(place.deadline)) }
  }

  /// Forgets all states, because the connection ended.
  mutating func reset(_ actions: inout [Action]) {
    actions += states.keys.sorted().map { .cancel($0.deadline) }
    states = [:]
  }
}
