import IdentityCore

/// A UUID (RFC 9562), compared by its 128 bits.
///
/// For Foundation's type, use `Foundation.UUID(uuidString: identifier.description)`.
public struct IdentityUUID: Hashable, Comparable, Sendable {
  private let value: UUID

  /// Reads 32 hexadecimal digits, or 36 characters with hyphens, in either case; nil for any other text.
  public init?(_ text: String) {
    guard let value = UUID(Text(text)) else { return nil }
    self.value = value
  }

  /// The 16 bytes, most significant byte first.
  public var bytes: [UInt8] { value.bytes }

  /// Whether the bytes of the first UUID sort first. For version 7 this is the order of time.
  public static func < (left: IdentityUUID, right: IdentityUUID) -> Bool {
    (left.value.high, left.value.low) < (right.value.high, right.value.low)
  }
}

extension IdentityUUID: LosslessStringConvertible {
  /// The UUID as 36 characters, in lower case with hyphens.
  public var description: String { value.description }
}
