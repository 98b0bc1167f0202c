import IdentityCore

/// An epoch of an account: the time for which one key seals its messages.
///
/// The first epoch has the number 1. The upper half of another number counts the rotations, and the lower half tells
/// apart two that devices make at the same time: the smaller the identifier of the device, the greater the number. So
/// the number alone orders all messages, for everybody who sees their first eight bytes.
package struct Epoch: Equatable, Sendable {
  /// The number.
  package let number: UInt32
  /// The number of the epoch before, at this device; 0 for the first epoch.
  package let former: UInt32
  /// Whether this device made the key, and so hands it to the others.
  package let isOwn: Bool
  /// Whether this device has to rotate again: the device that made the key may have handed it to a device that this
  /// one had removed.
  package let isContested: Bool

  /// Creates an epoch.
  package init(number: UInt32, former: UInt32, isOwn: Bool, isContested: Bool = false) {
    self.number = number
    self.former = former
    self.isOwn = isOwn
    self.isContested = isContested
  }

  /// The epoch whose key follows from the root.
  package static let first = Epoch(number: 1, former: 0, isOwn: false)

  /// The number of rotations before this epoch.
  package var rotations: UInt32 { Self.rotations(number) }

  /// Returns the number of rotations before an epoch.
  static func rotations(_ number: UInt32) -> UInt32 { number >> 16 }

  /// Returns the epoch that a device makes after this one; nil after 65,535 rotations.
  func next(by device: UUID) -> Epoch? {
    guard rotations < 0xffff else { return nil }
    let place = 0xffff - UInt32(truncatingIfNeeded: device.high >> 48)
    return Epoch(number: (rotations + 1) << 16 | place, former: number, isOwn: true)
  }
}
