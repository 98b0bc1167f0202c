import IdentityCore
package import LinuxSystem

/// The format of UUIDs, as chosen with `--format`.
package enum UUIDFormat: String, CaseIterable {
  /// Lower case with hyphens, as the daemon writes them (RFC 9562).
  case hyphen
  /// 32 hexadecimal digits in lower case.
  case plain
  /// A URN with the prefix `urn:uuid:` (RFC 9562, section 4).
  case urn
  /// Upper case with hyphens.
  case upper

  /// Reads the argument of `--format`.
  package init(named name: String) throws(CommandLine.UsageError) {
    self = try CommandLine.value(named: name, of: "format")
  }

  /// Returns a value in this format if it is a UUID in the form of the daemon, else unchanged.
  func apply(to text: Text) -> String {
    guard self != .hyphen, text.bytes.count == UUID.textLength, let uuid = UUID(text), "\(uuid)" == "\(text)" else {
      return "\(text)"
    }
    return switch self {
    case .hyphen: "\(uuid)"
    case .plain: "\(uuid)".filter { $0 != "-" }
    case .urn: "urn:uuid:\(uuid)"
    case .upper: "\(uuid)".uppercased()
    }
  }
}
