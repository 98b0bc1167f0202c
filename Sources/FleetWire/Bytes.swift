package import IdentityCore

extension FixedWidthInteger where Self: UnsignedInteger {
  /// Creates a number from bytes, most significant first.
  package init(bigEndian bytes: some Collection<UInt8>) { self = bytes.reduce(0) { $0 << 8 | Self($1) } }

  /// The bytes, most significant first.
  package var bigEndianBytes: [UInt8] {
    stride(from: Self.bitWidth - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> Self($0)) }
  }
}

/// A public key of 32 bytes: Ed25519 for signatures, X25519 for boxes.
package struct PublicKey: Hashable, Sendable {
  /// The number of bytes.
  package static let length = 32

  /// The bytes.
  package let bytes: [UInt8]

  /// Creates a key; nil for another number of bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.length else { return nil }
    self.bytes = Array(bytes)
  }
}

extension Timestamp {
  /// Reads a time of a message: milliseconds since 1970. A later time than this type has is the latest one.
  package init(unsignedMilliseconds: UInt64) { self.init(milliseconds: Int64(clamping: unsignedMilliseconds)) }

  /// The time as messages have it. A time before 1970, as of a clock without a battery, is 1970.
  package var unsignedMilliseconds: UInt64 { UInt64(clamping: milliseconds) }
}
