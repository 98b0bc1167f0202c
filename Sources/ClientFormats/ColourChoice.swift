package import LinuxSystem

/// The choice of colours, as chosen with `--color`.
package enum ColourChoice: String, CaseIterable, Sendable {
  /// Colours on a terminal that has them.
  case auto
  /// Colours everywhere, also in a file or a pipe.
  case always
  /// No colours.
  case never

  /// Reads the argument of `--color`.
  package init(named name: String) throws(CommandLine.UsageError) {
    self = try CommandLine.value(named: name, of: "color")
  }

  /// Returns whether output is coloured.
  ///
  /// - Parameters:
  ///   - isTerminal: whether the output goes to a terminal.
  ///   - kind: the value of TERM. A terminal without a name may not support colours.
  ///   - noColour: the value of NO_COLOR, the convention of https://no-color.org.
  package func allows(isTerminal: Bool, kind: String?, noColour: String?) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .auto: isTerminal && noColour == nil && kind ?? "dumb" != "dumb"
    }
  }
}
