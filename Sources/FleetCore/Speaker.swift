import FleetWire

/// The record of this device: its content, and the writing of it.
struct Speaker: Sendable {
  /// The state of the record.
  enum State: Equatable, Sendable {
    /// A record has to be written as soon as the device is live.
    case due
    /// A record is written when changes have settled.
    case settling
    /// A record is being signed and stored.
    case writing
    /// The same, and its content has changed since.
    case writingOutdated
    /// The stored record is this run's, and has the present content.
    case current
  }

  /// The content.
  private var description: DeviceDescription
  private(set) var state: State = .due
  /// Whether a change came a moment ago, so that others may follow.
  private var isResting = false

  /// Starts with a record that this run has yet to write: each run shows itself to its twin.
  init(_ description: DeviceDescription) { self.description = description }

  /// Replaces the content. A change after a rest is written at once, and those that follow it become one record. None
  /// postpones a record that waits.
  mutating func describe(_ description: DeviceDescription, isLive: Bool, _ actions: inout [Action]) {
    self.description = description
    if state != .settling { request(isLive: isLive, after: isResting ? Pace.change : 0...0, &actions) }
    isResting = true
    actions.append(.wake(.changeRest, after: Pace.change))
  }

  /// Notes that no change has come for a while.
  mutating func endRest() { isResting = false }

  /// Asks for another record.
  mutating func request(isLive: Bool, after delay: Delay, _ actions: inout [Action]) {
    switch state {
    case .writing, .writingOutdated: state = .writingOutdated
    case .due, .settling, .current:
      state = isLive ? .settling : .due
      if isLive { actions.append(.wake(.change, after: delay)) }
    }
  }

  /// Starts to write the record. Returns its fields.
  mutating func begin(twin: DeviceDescription.TwinMark?) -> Fields {
    state = .writing
    description.twin = twin
    return description.fields
  }

  /// Notes that a record is stored.
  ///
  /// - Parameter isOutranked: whether another machine has written a greater one meanwhile.
  mutating func wrote(isOutranked: Bool, isLive: Bool, _ actions: inout [Action]) {
    let isOutdated = isOutranked || state == .writingOutdated
    state = .current
    if isOutdated { request(isLive: isLive, after: Pace.change, &actions) }
  }

  /// Notes that a record could not be stored.
  mutating func notWritten(isLive: Bool, _ actions: inout [Action]) {
    state = .due
    request(isLive: isLive, after: Pace.retriedChange, &actions)
  }

  /// Waits for the next connection.
  mutating func disconnected(_ actions: inout [Action]) {
    guard state == .settling else { return }
    state = .due
    actions.append(.cancel(.change))
  }
}
