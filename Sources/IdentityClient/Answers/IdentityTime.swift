import IdentityCore

/// A time of the daemon's clock, with a resolution of one millisecond.
public struct IdentityTime: Hashable, Comparable, Sendable {
  /// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
  public let millisecondsSince1970: Int64

  /// Creates a time from milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
  public init(millisecondsSince1970: Int64) { self.millisecondsSince1970 = millisecondsSince1970 }

  /// Reads a time in the form of ``description``; nil for any other text.
  public init?(_ text: String) {
    guard let time = Timestamp(parsing: Text(text)) else { return nil }
    millisecondsSince1970 = time.milliseconds
  }

  /// Whether the first time is earlier.
  public static func < (left: IdentityTime, right: IdentityTime) -> Bool {
    left.millisecondsSince1970 < right.millisecondsSince1970
  }
}

extension IdentityTime: LosslessStringConvertible {
  /// The time in RFC 3339 form, in UTC with three decimals: `2026-11-21T08:39:12.345Z`.
  public var description: String { Timestamp(milliseconds: millisecondsSince1970).description }
}
