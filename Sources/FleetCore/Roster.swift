package import FleetWire
import IdentityCore

/// The greatest valid message about each device, records and tombstones.
///
/// Whether a message is believed depends on as little as possible, so that all devices come to the same roster whatever
/// they have seen, and in whatever order: a tombstone is believed if its signature is valid, and a record if its device
/// has signed it with the key of its generation. From an earlier epoch than this device's, only tombstones are believed
/// that a member of the present epoch vouches for, since a removed device can write everything else.
package struct Roster: Sendable {
  /// The comparison of a message with the known one.
  package enum Verdict: Equatable, Sendable {
    /// The message is new, or outranks the known one.
    case higher
    /// The message is the known one.
    case same
    /// The known message outranks this one.
    case lower
    /// The message is of an earlier epoch than this device's, and the known one, if there is one, does not outrank it.
    case older
    /// The message is not believed.
    case rejected(Rejection)
    /// The message is about another device than the bound admits.
    case beyondBound
  }

  /// The number of devices from which an unknown device has no room. The same number holds for tombstones.
  ///
  /// A member that has gone bad can add devices, and must not use up the memory of the others. A tombstone of a known
  /// device makes room for another device, so the number of all messages has a bound, too: twice this number.
  package static let most = 16_384

  private var messages: [DeviceTag: SignedMessage]
  private var removals: Int
  /// The number of records whose devices read version 2.
  private var readers: Int
  /// The summaries of all records, and of those of version 2.
  private var (whole, committed) = (RosterDigest(), RosterDigest())
  /// The number of this device's epoch.
  private var epoch = Epoch.first.number
  /// The time that the service told last; nil before.
  var now: Timestamp?

  /// Creates a roster from the messages that the device has stored.
  package init(_ messages: [DeviceTag: SignedMessage] = [:]) {
    self.messages = messages
    removals = messages.values.count { $0.kind == .tombstone }
    readers = messages.values.count(where: \.isOfReader)
    for (tag, message) in messages { toggle(message, at: tag) }
  }

  private mutating func toggle(_ message: SignedMessage?, at tag: DeviceTag) {
    whole.toggle(message, at: tag)
    if message?.version == .two { committed.toggle(message, at: tag) }
  }

  /// The message about a device; nil if the device is unknown.
  package subscript(tag: DeviceTag) -> SignedMessage? { messages[tag] }

  /// Returns some devices in the order of the times in their messages, the latest first. Nothing but an order of work
  /// depends on these times, which devices with wrong clocks have written.
  func latestFirst(_ tags: some Sequence<DeviceTag>) -> [DeviceTag] {
    let timed = tags.map { (time: messages[$0]?.body.time.milliseconds ?? .min, tag: $0) }
    return timed.sorted { $0.time == $1.time ? $0.tag < $1.tag : $0.time > $1.time }.map(\.tag)
  }

  /// Notes that this device is in another epoch.
  mutating func enter(_ epoch: UInt32) { self.epoch = epoch }

  /// Returns whether a device is known, also if it is removed.
  func isKnown(_ device: UUID) -> Bool { messages.values.contains { $0.body.subject == device } }

  /// Returns whether a tombstone of an earlier epoch is believed: a removed device cannot have signed it.
  private func isVouched(_ message: SignedMessage) -> Bool {
    guard message.kind == .tombstone, let author = record(of: message.body.author), author.signer == message.signer
    else { return false }
    return author.epoch >= epoch || message.body.author == message.body.subject
  }

  /// Returns the record of a device; nil if the device is unknown or removed.
  func record(of device: UUID) -> SignedMessage? {
    messages.values.first { $0.kind == .record && $0.body.subject == device }
  }

  /// The records of all devices that are not removed.
  package var records: [SignedMessage] { messages.values.filter { $0.kind == .record } }

  /// The tags of all known devices, also of removed ones.
  package var tags: some Collection<DeviceTag> { messages.keys }

  /// The number of devices that are not removed.
  package var devices: Int { messages.count - removals }

  /// The number of devices that do not tell that they read version 2.
  package var earlierReleases: Int { devices - readers }

  /// The version that all devices read.
  package var version: EnvelopeVersion { earlierReleases == 0 ? .two : .one }

  /// The summary of the records that all devices read. A device of an earlier release knows no others, and would seem to
  /// lack them.
  var digest: RosterDigest { version == .two ? whole : whole.without(committed) }

  /// Compares a message on the topic of a device with the known one.
  package func verdict(on message: SignedMessage, at tag: DeviceTag) -> Verdict {
    let known = messages[tag]
    if message.kind == .record {
      guard message.body.author == message.body.subject else { return .rejected(.author) }
      // The first record of a generation pins the key. A device that was away may not have seen the tombstone between
      // two generations, so it has to believe the next generation without one.
      if let known, known.kind == .record, known.body.generation == message.body.generation,
        known.signer != message.signer
      {
        return .rejected(.author)
      }
    }
    if message.epoch < epoch, message != known, !isVouched(message) {
      return known.map { Precedence(message) < Precedence($0) } ?? false ? .lower : .older
    }
    guard let known else {
      let hasRoom = (message.kind == .record ? devices : removals) < Self.most && messages.count < 2 * Self.most
      return hasRoom ? .higher : .beyondBound
    }
    if message == known { return .same }
    return Precedence(message) > Precedence(known) ? .higher : .lower
  }

  /// Returns whether a message says something else than the known one about a device.
  func isNews(_ message: SignedMessage, at tag: DeviceTag) -> Bool {
    guard let known = messages[tag] else { return true }
    return known.kind != message.kind || known.body.fields != message.body.fields
  }

  /// Returns whether a device was removed so long ago that the broker need not have its tombstone. This device keeps it.
  ///
  /// - Parameter age: the time since the removal, in milliseconds.
  func isOld(_ tag: DeviceTag, since age: Int64) -> Bool {
    guard let now, let known = messages[tag], known.kind == .tombstone else { return false }
    let (passed, isTooGreat) = now.milliseconds.subtractingReportingOverflow(known.body.time.milliseconds)
    return isTooGreat ? known.body.time < now : passed > age
  }

  /// Replaces the message about a device.
  mutating func adopt(_ message: SignedMessage, at tag: DeviceTag) {
    if messages[tag]?.kind == .tombstone { removals -= 1 }
    if message.kind == .tombstone { removals += 1 }
    readers += (message.isOfReader ? 1 : 0) - (messages[tag]?.isOfReader == true ? 1 : 0)
    toggle(messages[tag], at: tag)
    toggle(message, at: tag)
    messages[tag] = message
  }
}

extension SignedMessage {
  /// Whether the message is the record of a device that reads version 2.
  fileprivate var isOfReader: Bool {
    kind == .record && body.fields[.readableVersion].map { $0[0] >= EnvelopeVersion.two.rawValue } == true
  }
}
