package import LinuxSystem

/// The options of `identityctl` and the commands they apply to. Parsing, checking and `--help` use this table.
package enum Options {
  /// Options that apply to the same commands.
  package struct Group: Sendable {
    /// The commands that the options apply to. Empty for all commands.
    package let commands: [String]
    /// The options in the order of `--help`.
    package let options: [CommandLine.Option]
  }

  /// All groups in the order of `--help`.
  package static let groups = [
    Group(
      commands: [],
      options: [
        .init("socket", value: "PATH", "Ask the daemon at this socket."),
        .init("json", "Write the answer as one JSON document, or each event as one."),
        .init("quiet", "Write nothing but errors, or events; the exit status tells."),
        .init("format", value: "FORM", "Write UUIDs as hyphen (default), plain, urn or upper."),
        .init("version", "Show the version, and end."),
        .init("help", "Show this help, and end."),
      ]),
    Group(
      commands: ["monitor", "wait"],
      options: [.init("since", value: "SEQ", "Begin behind event SEQ, not with what happens from now on.")]),
    Group(
      commands: ["wait"],
      options: [.init("timeout", value: "SECONDS", "End with status 6 where nothing happens within that time.")]),
    Group(
      commands: ["migrate device", "migrate installation"],
      options: [
        .init("file", value: "PATH", "Take VALUE from this file; - is standard input."),
        .init("field", value: "NAME", "Take it from the line NAME=value or NAME: value of the file."),
      ]),
    Group(
      commands: ["item add", "item put", "item update"],
      options: [.init("data-file", value: "PATH", "Take the secret from this file, as it is; - is standard input.")]),
    Group(
      commands: ["item read"], options: [.init("raw", "Write the bytes of the secret as they are, and nothing else.")]),
    Group(
      commands: ["token put", "token invalidate"],
      options: [
        .init("token-file", value: "PATH", "Take TOKEN from this file, without its line end; - is standard input.")
      ]),
    Group(
      commands: ["stats"],
      options: [
        .init("openmetrics", "Write the figures as OpenMetrics 1.0 has them."),
        .init("prometheus", "Write them in Prometheus' text format, for node_exporter's textfile collector."),
        .init("output", value: "FILE", "Put them in the place of FILE, at once and readable by all."),
      ]),
    Group(
      commands: ["top"],
      options: [.init("interval", value: "SECONDS", "Look so often; 2 where nothing is said.")]),
    Group(
      commands: ["backup", "restore"],
      options: [.init("passphrase-fd", value: "N", "Read the passphrase from descriptor N, not at the terminal.")]),
    Group(
      commands: ["restore"],
      options: [
        .init("dry-run", "Change nothing, and tell what would be."),
        .init("adopt-device", "Take the backup's device identifier over on another machine."),
      ]),
  ]

  /// The options of all groups.
  static let known = groups.flatMap(\.options)

  /// Refuses options that do not apply to the command.
  static func check(_ line: CommandLine) throws(CommandLine.UsageError) {
    let words = line.words.prefix(2).map { $0.lowercased() }
    for group in groups where !group.commands.isEmpty {
      let belongs = group.commands.contains { command in
        words.starts(with: command.split(separator: " ").map(String.init))
      }
      if let option = group.options.first(where: { line.options[$0.name] != nil }), !belongs {
        throw CommandLine.UsageError("option '--\(option.name)' is for \(list(group.commands)) alone")
      }
    }
  }

  /// The section of `--help` about options.
  static var help: String {
    groups.map { group in
      (group.commands.isEmpty ? "Options:\n" : "Options of \(list(group.commands)):\n")
        + CommandLine.help(group.options)
    }.joined(separator: "\n")
  }

  private static func list(_ commands: [String]) -> String {
    let names = commands.map { "'\($0)'" }
    let last = names.last ?? ""
    return names.count < 2 ? last : names.dropLast().joined(separator: ", ") + " and " + last
  }

  /// Parses seconds with optional decimals, at most 1,000,000,000 (some thirty years), and returns microseconds.
  ///
  /// - Parameter option: the name of the option, for the error.
  static func microseconds(_ text: String, of option: String) throws(CommandLine.UsageError) -> UInt64 {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.allSatisfy(isDecimal), let whole = UInt64(parts[0]), whole <= 1_000_000_000 else {
      throw CommandLine.UsageError("--\(option) cannot be '\(text)'; allowed: seconds, like 10 or 2.5")
    }
    let decimals = parts.count > 1 ? parts[1].prefix(6) : ""
    let padded = decimals + String(repeating: "0", count: 6 - decimals.count)
    return whole * 1_000_000 + (UInt64(padded) ?? 0)
  }

  /// Whether a text consists of digits and nothing else, and is not empty.
  static func isDecimal(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
  }
}
