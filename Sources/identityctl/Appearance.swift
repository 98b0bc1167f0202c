import ClientFormats
import IdentityCore
import LinuxSystem

// Output for people: the width and the colours of the terminal, and the pager.
extension Program {
  /// The name of the variable that names a pager for this program alone.
  private static let pagerVariable = "IDENTITYCTL_PAGER"

  /// Whether output to a stream is coloured.
  static func isColoured(_ line: CommandLine, _ stream: StandardStream) throws(CommandLine.UsageError) -> Bool {
    try ColourChoice(named: line.options["color"] ?? ColourChoice.auto.rawValue).allows(
      isTerminal: stream.isTerminal, kind: Environment["TERM"], noColour: Environment["NO_COLOR"])
  }

  /// Returns the properties of the terminal that a stream goes to.
  static func screen(_ line: CommandLine, _ stream: StandardStream) throws(CommandLine.UsageError) -> Screen {
    Screen(
      columns: width(of: stream), isColoured: try isColoured(line, stream),
      isFull: line.options["full"] != nil || line.options["format"] == UUIDFormat.table.rawValue && !stream.isTerminal,
      now: Timestamp(milliseconds: Clock.realtimeMilliseconds))
  }

  /// Returns the width of a stream: that of the terminal, or else of a usual one.
  static func width(of stream: StandardStream) -> Int {
    (stream.isTerminal ? WindowSize(of: stream).columns : nil) ?? WindowSize.usualColumns
  }

  /// Writes text to standard output, through a pager if that is a terminal with fewer lines than the text.
  ///
  /// - Returns: false if standard output takes no more.
  static func show(_ text: String, _ line: CommandLine) -> Bool {
    if needsPager(text, line), let pager = Pager(pagerVariable, isOwnUser: Pager.isOwnUser, Environment.value),
      pager.show(text)
    {
      return true
    }
    return StandardStream.output.write(text)
  }

  private static func needsPager(_ text: String, _ line: CommandLine) -> Bool {
    guard StandardStream.output.isTerminal, line.options["no-pager"] == nil, Environment["TERM"] ?? "dumb" != "dumb",
      let lines = WindowSize(of: StandardStream.output).lines
    else { return false }
    // The last line is for the prompt of the shell.
    return text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) >= lines
  }
}
