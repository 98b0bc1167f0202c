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
    /// A sixteenth of the roster. Counted from the own bucket, so that devices begin at different places.
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
  private var step: Step
  private var isAcknowledged = false
  /// The topics of known devices on which the broker has shown a retained message.
  private(set) var seen: Set<DeviceTag> = []

  /// Starts a reading.
  ///
  /// - Parameters:
  ///   - devices: the number of known messages.
  ///   - isFirst: whether this is the first reading of a connection.
  init(
    account: AccountID, ownTag: DeviceTag, devices: Int, isFirst: Bool, _ actions: inout [Action]
  ) {
    self.account = account
    self.ownTag = ownTag
    isParted = devices > Self.mostInOnePart
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
    case .part(let number): .bucket(account, (ownTag.bucket + UInt8(number)) & 15)
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

  private var isLast: Bool { step == .whole || step == .part(15) }

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
    switch step {
    case .whole, .part(15...): return .complete
    case .keys: step = .own
    case .own: step = isParted ? .part(0) : .whole
    case .part(let number): step = .part(number + 1)
    }
    subscribe(&actions)
    return .unfinished
  }
}
