import FleetWire
package import IdentityCore

/// An epoch of an account: the time for which one key seals its messages.
///
/// The first epoch has the number 1. The upper half of another number counts the rotations, and the lower half tells
/// apart two that devices make at the same time: the smaller the tag of the device, the greater the number. So the number
/// alone orders all messages, for everybody who sees their first eight bytes.
package struct Epoch: Equatable, Sendable {
  /// The number.
  package let number: UInt32
  /// The number of the epoch before, at this device; 0 for the first epoch.
  package let former: UInt32
  /// The number of the last epoch whose key this device made, and so hands to the others; 0 for none. It goes on with
  /// that in later epochs.
  package let made: UInt32
  /// Whether this device has to rotate again: the device that made the key may have handed it to a device that this
  /// one had removed.
  package let isContested: Bool
  /// The devices that get no key from this one, whatever its roster contains: those that were removed shortly before the
  /// epoch. A device may take the key before it hears of the removals.
  package let removed: [UUID]

  /// The greatest number of removed devices that are named with a key.
  static let mostRemoved = 64

  package init(number: UInt32, former: UInt32, made: UInt32 = 0, isContested: Bool = false, removed: [UUID] = []) {
    self.number = number
    self.former = former
    self.made = made
    self.isContested = isContested
    self.removed = removed
  }

  /// The epoch whose key follows from the root.
  package static let first = Epoch(number: 1, former: 0)

  /// The number of rotations before this epoch.
  package var rotations: UInt32 { Self.rotations(number) }

  /// Returns the number of rotations before an epoch.
  static func rotations(_ number: UInt32) -> UInt32 { number >> 16 }

  /// The greatest number of rotations between two epochs of which a device takes the later one after the earlier one. A
  /// member that has gone bad cannot use up the numbers with one message.
  static let longestLeap: UInt32 = 64

  /// Returns whether a device in this epoch takes the key of another one.
  func admits(_ number: UInt32) -> Bool {
    number > self.number && (1...rotations + Self.longestLeap).contains(Self.rotations(number))
  }

  /// Returns the epoch that a device makes after this one; nil after 65,535 rotations.
  func next(by tag: DeviceTag, without removed: [UUID] = []) -> Epoch? {
    guard rotations < 0xffff else { return nil }
    // The tag is a keyed hash, so two devices rarely have the same bits, which identifiers may.
    let rank = 0xffff - UInt32(truncatingIfNeeded: tag.high >> 48)
    let next = (rotations + 1) << 16 | rank
    return Epoch(number: next, former: number, made: next, removed: removed)
  }

  /// The form in which the epoch is stored beside its key.
  package var bytes: [UInt8] {
    let numbers = number.bigEndianBytes + former.bigEndianBytes + made.bigEndianBytes
    return numbers + [isContested ? 1 : 0] + removed.flatMap(\.bytes)
  }

  /// Reads a stored epoch; nil for other bytes.
  package init?(bytes: [UInt8]) {
    guard bytes.count >= 13, (bytes.count - 13).isMultiple(of: 16), bytes[12] <= 1 else { return nil }
    self.init(
      number: UInt32(bigEndian: bytes[0..<4]), former: UInt32(bigEndian: bytes[4..<8]),
      made: UInt32(bigEndian: bytes[8..<12]), isContested: bytes[12] == 1, removed: UUID.list(Array(bytes[13...])))
    guard number > 0, Set(removed).count == removed.count else { return nil }
  }
}

extension UUID {
  /// Reads the identifiers that follow each other in a field.
  static func list(_ field: [UInt8]) -> [UUID] {
    stride(from: 0, to: field.count, by: 16).compactMap { UUID(bytes: field[$0..<min($0 + 16, field.count)]) }
  }
}
