import IdentityCore

/// A moment by the daemon's clock.
public struct IdentityTime: Hashable, Comparable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
  public let millisecondsSince1970: Int64

  /// Makes a moment.
  public init(millisecondsSince1970: Int64) { self.millisecondsSince1970 = millisecondsSince1970 }

  /// Reads the form that ``description`` has; nil for anything else.
  public init?(_ text: String) {
    guard let time = Timestamp(parsing: Text(text)) else { return nil }
    millisecondsSince1970 = time.milliseconds
  }

  /// Orders by time.
  public static func < (left: IdentityTime, right: IdentityTime) -> Bool {
    left.millisecondsSince1970 < right.millisecondsSince1970
  }
}

extension IdentityTime: LosslessStringConvertible {
  /// RFC 3339 in UTC with three decimals: `2026-11-21T08:39:12.345Z`.
  public var description: String { Timestamp(milliseconds: millisecondsSince1970).description }
}
