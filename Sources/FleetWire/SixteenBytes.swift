package import IdentityCore

/// A value of sixteen bytes, written as 32 hexadecimal digits in lower case.
package protocol SixteenBytes: Hashable, Sendable, CustomStringConvertible {
  /// The first eight bytes, most significant first.
  var high: UInt64 { get }
  /// The last eight bytes, most significant first.
  var low: UInt64 { get }

  init(high: UInt64, low: UInt64)
}

extension SixteenBytes {
  /// Creates a value from its bytes; nil unless there are sixteen.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    self.init(high: UInt64(bigEndian: bytes.prefix(8)), low: UInt64(bigEndian: bytes.dropFirst(8)))
  }

  /// Parses 32 hexadecimal digits in lower case; nil for any other text.
  package init?(hexadecimal text: some StringProtocol) {
    guard text.utf8.count == 32, !text.utf8.contains(where: { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) })
    else { return nil }
    var halves: (high: UInt64, low: UInt64) = (0, 0)
    for byte in text.utf8 {
      guard let digit = hexadecimalDigit(byte) else { return nil }
      halves.high = halves.high << 4 | halves.low >> 60
      halves.low = halves.low << 4 | UInt64(digit)
    }
    self.init(high: halves.high, low: halves.low)
  }

  /// The sixteen bytes.
  package var bytes: [UInt8] { UUID(high: high, low: low).bytes }

  /// The 32 hexadecimal digits.
  package var description: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}

extension SixteenBytes where Self: Comparable {
  /// Orders by bytes.
  package static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }
}

extension UUID: SixteenBytes {}

/// The name of an account at a broker, derived from the root key, which reveals nothing about the account.
package struct AccountID: SixteenBytes {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// The name of a device at a broker: a keyed hash of its UUID, so that the broker does not learn the UUID.
package struct DeviceTag: SixteenBytes, Comparable {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The first hexadecimal digit, which divides a large roster into sixteen parts of about the same size.
  package var bucket: UInt8 { UInt8(truncatingIfNeeded: high >> 60) }
}

/// Random bytes that a process draws when it starts. They tell a restarted device from a copied one.
package struct Run: SixteenBytes, Comparable {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// A fingerprint of the machine that a device runs on, from which a copied device notices that it has moved.
package struct Home: SixteenBytes {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// The name of the two topics on which an inviter and a newcomer meet, derived from the join code.
package struct Rendezvous: SixteenBytes, Comparable {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// The name of a reader outside of the account, a site or a sender: the hash of its X25519 key.
package struct ReaderID: SixteenBytes {
  /// The first eight bytes, most significant first.
  package let high: UInt64
  /// The last eight bytes, most significant first.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}
