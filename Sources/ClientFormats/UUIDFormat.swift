import IdentityCore
package import LinuxSystem

/// The format of UUIDs in an answer, as chosen with `--format`.
package enum UUIDFormat: String, CaseIterable {
  /// Lower case with hyphens, as the daemon writes them (RFC 9562).
  case hyphen
  /// 32 hexadecimal digits in lower case.
  case plain
  /// A URN with the prefix `urn:uuid:` (RFC 9562, section 4).
  case urn
  /// Upper case with hyphens.
  case upper
  /// Lower case with hyphens, in an answer with column titles even if it goes into a pipe.
  case table

  /// Reads the argument of `--format`.
  package init(named name: String) throws(CommandLine.UsageError) {
    self = try CommandLine.value(named: name, of: "format")
  }

  /// Returns a UUID in the form of the daemon, if a text is one in a form that this client writes or that RFC 9562 or
  /// Microsoft's registry use: `urn:uuid:` or braces around it. Nil for any other text.
  package static func canonical(_ text: some StringProtocol) -> String? {
    let lower = text.lowercased()
    var core = lower[...]
    if lower.hasPrefix("urn:uuid:") {
      core = lower.dropFirst(9)
    } else if lower.hasPrefix("{"), lower.hasSuffix("}") {
      core = lower.dropFirst().dropLast()
    }
    return UUID(parsing: Array(core.utf8).span).map { "\($0)" }
  }

  /// Returns a value in this format if it is a UUID in the form of the daemon, else unchanged.
  func apply(to text: Text) -> String {
    guard self != .hyphen, self != .table, text.bytes.count == UUID.textLength, let uuid = UUID(text),
      "\(uuid)" == "\(text)"
    else {
      return "\(text)"
    }
    return switch self {
    case .hyphen, .table: "\(uuid)"
    case .plain: "\(uuid)".filter { $0 != "-" }
    case .urn: "urn:uuid:\(uuid)"
    case .upper: "\(uuid)".uppercased()
    }
  }
}
