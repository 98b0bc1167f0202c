import FleetWire

/// A reading of the whole roster from the broker's retained messages.
///
/// Absence from a reading proves nothing. A large roster is read in sixteen parts, because some brokers leave out
/// messages of large subscriptions.
struct Reading: Sendable {
  /// The part of the reading in progress.
  enum Step: Equatable, Sendable {
    /// The topic for keys that the device gets, before anything else: it may need one to read the others.
    case keys
    /// The own topic, before the others: a removed device has to learn of its removal first.
    case own
    /// The roster by one subscription.
    case whole
    /// One bucket of the roster, a sixteenth: the place in the list of those that are read.
    case part(Int)
  }

  /// The outcome of a step.
  enum Progress: Equatable, Sendable {
    /// The reading goes on.
    case unfinished
    /// All retained messages have been shown.
    case complete
  }

  /// The greatest number of known devices for which one subscription reads the roster.
  static let mostInOnePart = 512

  private let account: AccountID
  private let ownTag: DeviceTag
  private let isParted: Bool
  /// The buckets that are read. A whole reading begins at the own one, so that devices begin at different places.
  private let buckets: [UInt8]
  private var step: Step
  private var isAcknowledged = false
  /// The topics of known devices on which the broker has shown a retained message.
  private var seen: Set<DeviceTag> = []

  /// Starts a reading.
  ///
  /// - Parameters:
  ///   - devices: the number of known messages.
  ///   - isFirst: whether this is the first reading of a connection.
  ///   - only: the buckets to read, of which there is at least one; nil for all. A small roster is read whole.
  init(
    account: AccountID, ownTag: DeviceTag, devices: Int, isFirst: Bool, only: [UInt8]? = nil, _ actions: inout [Action]
  ) {
    self.account = account
    self.ownTag = ownTag
    isParted = devices > Self.mostInOnePart
    buckets = isParted ? only ?? (0...15).map { (ownTag.bucket + $0) & 15 } : Array(0...15)
    step = isFirst ? .keys : isParted ? .part(0) : .whole
    // The other readings do not wait for keys.
    if !isFirst { actions.append(.subscribe(.only(.grant(account, ownTag)))) }
    subscribe(&actions)
  }

  private var filter: TopicFilter {
    switch step {
    case .keys: .only(.grant(account, ownTag))
    case .own: .only(.device(account, ownTag))
    case .whole: .roster(account)
    case .part(let number): .bucket(account, buckets[number])
    }
  }

  private mutating func subscribe(_ actions: inout [Action]) {
    isAcknowledged = false
    actions += [.subscribe(filter), .wake(.acknowledgement, after: Pace.acknowledgement)]
  }

  private func awaitQuiet(_ actions: inout [Action]) {
    actions.append(.wake(.quiet, after: isLast ? Pace.quiet : Pace.partQuiet))
  }

  /// Whether the reading waits for keys.
  var isAtKeys: Bool { step == .keys }

  private var isLast: Bool { step == .whole || step == .part(buckets.count - 1) }

  /// Returns whether the reading has not shown the message of a known device that it should have shown.
  func isAbsent(_ tag: DeviceTag) -> Bool { !seen.contains(tag) && buckets.contains(tag.bucket) }

  /// Notes that the broker showed a retained message on the topic of a known device.
  mutating func saw(_ tag: DeviceTag, _ actions: inout [Action]) {
    seen.insert(tag)
    if isAcknowledged { awaitQuiet(&actions) }
  }

  /// Notes that the known message about a device is newer than the reading.
  mutating func forget(_ tag: DeviceTag) { seen.remove(tag) }

  /// Notes an acknowledged subscription.
  mutating func acknowledged(_ filter: TopicFilter, _ actions: inout [Action]) {
    guard filter == self.filter, !isAcknowledged else { return }
    isAcknowledged = true
    actions.append(.cancel(.acknowledgement))
    awaitQuiet(&actions)
    actions.append(.wake(.longestReading, after: Pace.longestReading))
  }

  /// Goes on after the silence that follows the retained messages of a step, or after the longest wait for it.
  mutating func fellQuiet(_ actions: inout [Action]) -> Progress {
    actions += [.cancel(.quiet), .cancel(.longestReading)]
    guard !isLast else { return .complete }
    switch step {
    case .whole: return .complete
    case .keys: step = .own
    case .own: step = isParted ? .part(0) : .whole
    case .part(let number): step = .part(number + 1)
    }
    subscribe(&actions)
    return .unfinished
  }
}

/// The readings of a connection, which follow each other at growing distances.
struct Readings: Sendable {
  /// The reading in progress; nil for none.
  var present: Reading?
  /// The number of complete readings, without those that a summary of another device caused.
  private var complete = 0

  /// Whether the first reading is not complete yet.
  var areFresh: Bool { complete == 0 }

  /// Whether the readings that follow each other after a connection are complete.
  var areSettled: Bool { complete > Pace.rereadings.count }

  /// Counts anew, because of another connection, or because this device can read more now.
  mutating func beginAnew() { complete = 0 }

  /// Notes a complete reading. Returns the pause before the next one.
  ///
  /// - Parameters:
  ///   - counts: whether no summary caused the reading.
  ///   - resync: the pause in a lasting connection, in milliseconds.
  mutating func completed(counts: Bool, _ resync: Int) -> Delay {
    defer { if counts { complete += 1 } }
    return complete < Pace.rereadings.count ? Pace.rereadings[complete] : Pace.about(resync, percent: 20)
  }
}
