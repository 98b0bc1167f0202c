import FleetWire

/// The comparison of the rosters of connected devices. Nothing of it is stored.
///
/// A broker may drop a message, and a node of a cluster may have lost its quorum, without a word. Devices tell each other a
/// summary of what they know: soon after a change, and now and then. As with Trickle (RFC 6206), a device is silent if
/// another one has told the same since its last turn, so an account has about one such message in each interval. A device
/// that hears another summary reads the roster. If that does not bring the two together, the device tells its own summary,
/// and the other one reads. Each publishes again what it knows, too: a node of a cluster may show its devices what was
/// retained earlier, and still deliver new messages.
struct Comparison: Sendable {
  /// Whether this device is connected, and takes part.
  private let isOn: Bool
  /// The number of turns since the last change.
  private var turns = Pace.quickDigests
  /// Whether another device has told the same since this device's last turn.
  private var isShared = false
  /// The summary of another device because of which the roster was read last, without the two coming together; nil if this
  /// device knows something else since, or has had a turn, for the broker may know more by now.
  private var examined: RosterDigest?
  /// Whether the reading in progress is because of a summary.
  private var isExamining = false
  /// How many messages of others had their turn to be published again, so that the next ones follow.
  var repeated = 0
  /// The number of summaries that this run has told.
  var told: UInt64

  /// Starts to take part, or stops.
  init(isOn: Bool, told: UInt64 = 0) { (self.isOn, self.told) = (isOn, told) }

  /// Notes that this device knows something else.
  ///
  /// - Parameter isNews: whether a person would see the difference. Otherwise it is the sign of life of a device.
  mutating func changed(isNews: Bool, _ actions: inout [Action]) {
    examined = nil
    guard isNews, isOn else { return }
    turns = 0
    isShared = false
    actions.append(.wake(.digest, after: Pace.digest(0)))
  }

  /// Takes this device's turn. Returns whether it has something to tell.
  mutating func takeTurn(_ actions: inout [Action]) -> Bool {
    defer { (isShared, examined) = (false, nil) }
    turns = min(turns + 1, Pace.quickDigests)
    actions.append(.wake(.digest, after: Pace.digest(turns)))
    return !isShared
  }

  /// Notes the summary of another device. Returns whether it is worth a reading.
  mutating func heard(_ other: RosterDigest, own: RosterDigest) -> Bool {
    if other == own { isShared = true }
    return other != own && other != examined
  }

  /// Notes that a reading begins because of a summary.
  mutating func examine(_ other: RosterDigest) {
    examined = other
    isExamining = true
  }

  /// Notes the end of a reading.
  ///
  /// - Returns: the buckets in which the two still differ; nil if the reading was not because of a summary.
  mutating func read(own: RosterDigest, _ actions: inout [Action]) -> [UInt8]? {
    guard isExamining else { return nil }
    isExamining = false
    guard let examined, examined != own else { return [] }
    isShared = false
    actions.append(.wake(.digest, after: Pace.answeredDigest))
    return own.differences(from: examined)
  }
}

extension Member {
  private var topic: MessageTopic { .digest(membership.account) }

  /// Starts to compare on a new connection, with a turn soon: the broker may have shown what was retained earlier.
  mutating func beginComparison(_ actions: inout [Action]) {
    comparison = Comparison(isOn: true, told: comparison.told)
    actions += [.subscribe(.only(topic)), .wake(.digest, after: Pace.digest(0))]
  }

  /// Stops to compare, because the connection ended.
  mutating func endComparison(_ actions: inout [Action]) {
    comparison = Comparison(isOn: false, told: comparison.told)
    actions.append(.cancel(.digest))
  }

  /// Tells the others what this device knows, if it is this device's turn.
  mutating func tellDigest(isLive: Bool, _ actions: inout [Action]) {
    // The others believe no unknown device.
    guard isLive, comparison.takeTurn(&actions), roster.devices > 1, speaker.state == .current else { return }
    comparison.told += 1
    actions.append(.announce(topic, draft(.digest, comparison.told, digest: roster.digest)))
  }

  /// Publishes the messages in some buckets again, which another device knows differently: the own record soon, and others
  /// later, unless their authors have done so.
  ///
  /// Not those of earlier epochs: a device in a later one may not believe what another one has believed before, and the two
  /// would overwrite each other's message without end. Not those that a device of an earlier release does not read, either.
  mutating func repeatMessages(in buckets: [UInt8], _ actions: inout [Action]) {
    let tags = roster.tags.filter { tag in
      buckets.contains(tag.bucket) && postings.isSettled(tag) && !roster.isOld(tag, since: Pace.tombstone)
        && roster[tag].map { $0.epoch >= epoch.number && $0.version <= roster.version } ?? false
    }
    if tags.contains(membership.tag), allowances.use([.repetition], &actions) {
      postings.schedule(membership.tag, attempt: 0, after: Pace.ownRepeated, &actions)
    }
    // The latest ones first, and the others in their turn.
    let others = roster.latestFirst(tags.filter { $0 != membership.tag })
    guard !others.isEmpty else { return }
    let start = comparison.repeated % others.count
    let turn = (others[start...] + others[..<start]).prefix(Pace.mostRepeated)
    comparison.repeated += others.count > turn.count ? turn.count : 0
    for tag in turn.sorted() where allowances.use([.repetition], &actions) {
      postings.schedule(tag, attempt: 0, after: Pace.othersRepeated, &actions)
    }
  }

  /// Takes the summary of another device.
  mutating func heardDigest(_ message: SignedMessage, _ actions: inout [Action]) {
    guard message.body.author != membership.device else { return }
    guard case .member? = author(of: message, &actions) else { return }
    guard let other = message.body.fields[.digest].flatMap({ RosterDigest($0) }) else {
      return actions.append(.dropped(.fields))
    }
    // A device in another epoch finds its key, or hands this device one.
    guard message.epoch == epoch.number, readings.present == nil else { return }
    guard comparison.heard(other, own: roster.digest), allowances.use([.comparison], &actions) else { return }
    comparison.examine(other)
    read(only: roster.digest.differences(from: other), &actions)
  }
}
