import IdentityCore

/// A UUID (RFC 9562), compared as its 128 bits. For Foundation's, `Foundation.UUID(uuidString: identifier.description)`.
public struct IdentityUUID: Hashable, Comparable, Sendable {
  private let value: UUID

  /// Reads 32 hexadecimal digits, or 36 characters with hyphens, in either case; nil for anything else.
  public init?(_ text: String) {
    guard let value = UUID(Text(text)) else { return nil }
    self.value = value
  }

  /// The sixteen bytes, most significant first.
  public var bytes: [UInt8] { value.bytes }

  /// Orders by the bytes, which is the order of time for version 7.
  public static func < (left: IdentityUUID, right: IdentityUUID) -> Bool {
    (left.value.high, left.value.low) < (right.value.high, right.value.low)
  }
}

extension IdentityUUID: LosslessStringConvertible {
  /// 36 characters, in lower case with hyphens.
  public var description: String { value.description }
}
