package import LinuxSystem

/// The form of JSON, as chosen with `--json`.
package enum JSONForm: Equatable {
  /// Documents with names and types; see ``JSONOutput``.
  case document
  /// The words and attributes of the protocol; see ``WireOutput``.
  case wire

  /// The value of `--json=wire`.
  package static let wireName = "wire"

  /// Reads the option `--json`. Nil if it is not given.
  package init?(_ line: CommandLine) throws(CommandLine.UsageError) {
    switch line.options["json"] {
    case nil: return nil
    case "": self = .document
    case Self.wireName: self = .wire
    case let other?: throw CommandLine.UsageError("--json cannot be '\(other)'; allowed: \(Self.wireName)")
    }
  }
}
