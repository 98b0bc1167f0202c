/// The name of a cgroup that systemd made for a unit (systemd.unit(5)).
package struct UnitName: Equatable, Sendable {
  /// The kind of a unit, as far as a cgroup can belong to it.
  package enum Kind: Equatable, Sendable {
    case slice
    case service
    case scope
    /// A socket, a mount or a swap: units whose few processes belong to the system.
    case other
  }

  /// The kind of the unit, from the suffix of the name.
  package let kind: Kind
  private let name: Substring

  /// Creates the name of a unit; returns nil for the name of a cgroup that belongs to no unit.
  package init?(_ name: Substring) {
    switch name {
    case _ where name.hasSuffix(".slice"): kind = .slice
    case _ where name.hasSuffix(".service"): kind = .service
    case _ where name.hasSuffix(".scope"): kind = .scope
    case _ where name.hasSuffix(".socket") || name.hasSuffix(".mount") || name.hasSuffix(".swap"): kind = .other
    default: return nil
    }
    self.name = name
  }

  /// The user whose manager the service runs, by the name `user@UID.service`; nil for any other unit.
  package var managedUser: UInt32? { user(between: "user@", and: ".service") }

  /// The user whose slice this is, by the name `user-UID.slice`; nil for any other unit.
  package var slicedUser: UInt32? { user(between: "user-", and: ".slice") }

  private func user(between prefix: String, and suffix: String) -> UInt32? {
    guard name.hasPrefix(prefix), name.hasSuffix(suffix), name.utf8.count > prefix.utf8.count + suffix.utf8.count
    else { return nil }
    return Self.userID(name.dropFirst(prefix.count).dropLast(suffix.count))
  }

  /// Returns a user ID, by the rules of systemd: digits alone, without a leading zero, and neither of the IDs that mean
  /// no user.
  private static func userID(_ text: Substring) -> UInt32? {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard text.utf8.allSatisfy({ digits.contains($0) }), text == "0" || !text.hasPrefix("0") else { return nil }
    return UInt32(text).flatMap { $0 == .max || $0 == 0xFFFF ? nil : $0 }
  }
}
