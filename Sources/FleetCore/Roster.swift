package import FleetWire
import IdentityCore

/// The greatest valid message about each device, records and tombstones.
///
/// Whether a message is believed depends on as little as possible, so that all devices come to the same roster whatever
/// they have seen, and in whatever order: a tombstone is believed if its signature is valid, and a record if its device
/// has signed it with the key of its generation.
package struct Roster: Sendable {
  /// The comparison of a message with the known one.
  package enum Verdict: Equatable, Sendable {
    /// The message is new, or outranks the known one.
    case higher
    /// The message is the known one.
    case same
    /// The known message outranks this one.
    case lower
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

  /// Creates a roster from the messages that the device has stored.
  package init(_ messages: [DeviceTag: SignedMessage] = [:]) {
    self.messages = messages
    removals = messages.values.count { $0.kind == .tombstone }
  }

  /// The message about a device; nil if the device is unknown.
  package subscript(tag: DeviceTag) -> SignedMessage? { messages[tag] }

  /// Returns the record of a device; nil if the device is unknown or removed.
  func record(of device: UUID) -> SignedMessage? {
    messages.values.first { $0.kind == .record && $0.body.subject == device }
  }

  /// The tags of all known devices, also of removed ones.
  package var tags: some Collection<DeviceTag> { messages.keys }

  /// The number of devices that are not removed.
  package var devices: Int { messages.count - removals }

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
    guard let known else {
      let hasRoom = (message.kind == .record ? devices : removals) < Self.most && messages.count < 2 * Self.most
      return hasRoom ? .higher : .beyondBound
    }
    if message == known { return .same }
    return Precedence(message) > Precedence(known) ? .higher : .lower
  }

  /// Replaces the message about a device.
  mutating func adopt(_ message: SignedMessage, at tag: DeviceTag) {
    if messages[tag]?.kind == .tombstone { removals -= 1 }
    if message.kind == .tombstone { removals += 1 }
    messages[tag] = message
  }
}
