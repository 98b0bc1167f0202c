import IdentityCore
package import LinuxSystem

/// How UUIDs are written: `--format`.
package enum UUIDFormat: String, CaseIterable {
  /// Lower case with hyphens, as they come (RFC 9562).
  case hyphen
  /// 32 digits.
  case plain
  /// `urn:uuid:` before it (RFC 9562, section 4).
  case urn
  /// Upper case with hyphens.
  case upper

  /// Reads what stands behind `--format`.
  package init(named name: String) throws(CommandLine.UsageError) {
    guard let format = UUIDFormat(rawValue: name) else {
      let allowed = Self.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandLine.UsageError("--format cannot be '\(name)'; allowed: \(allowed)")
    }
    self = format
  }

  /// Writes a value: another form where it is a UUID in the form the daemon writes, else as it is.
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
