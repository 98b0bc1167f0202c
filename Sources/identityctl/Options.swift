import ClientFormats
import IdentityWire
package import LinuxSystem

/// The options of `identityctl` and the commands they apply to. Parsing, checking and `--help` use this table.
package enum Options {
  /// Options that apply to the same commands.
  package struct Group: Sendable {
    /// The commands that the options apply to. Empty for all commands.
    package let commands: [String]
    /// The options in the order of `--help`.
    package let options: [CommandLine.Option]
    /// The operand or attribute that the options supply from a file, so that it need not be on the command line.
    package var replaced: String?
  }

  /// All groups in the order of `--help`.
  package static let groups = [
    Group(
      commands: [],
      options: [
        .init("socket", value: "PATH", "Connect to the daemon at this socket."),
        .init("user", "Connect to this user's own daemon instead of the system's."),
        .init("json", letter: "j", "Write the answer, each event or an error as JSON."),
        .init("quiet", letter: "q", "Write only errors and events; the exit status is the answer."),
        .init(
          "format", value: "FORM",
          "Write UUIDs as hyphen (default), plain, urn or upper; or write a table, in a pipe, too."),
        .init("full", letter: "l", "Write every value of a table in full, and times instead of ages."),
        .init("color", value: "WHEN", "Write in colour: auto (default; on a terminal), always or never."),
        .init("no-pager", "Do not show long output with a pager."),
        .init(
          "timeout", value: "SECONDS",
          "Exit with status 6 if the daemon sends nothing for this time (25 by default), or 'wait' sees no event."),
        .init("yes", letter: "y", "Do not ask before a verb that cannot be undone."),
        .init("version", letter: "V", "Show the version and exit."),
        .init("help", letter: "h", "Show this help and exit."),
      ]),
    Group(
      commands: ["help"],
      options: [.init("all", "List the verbs that only programs use, and the options of single commands, too.")]),
    Group(
      commands: ["monitor", "wait"],
      options: [
        .init("since", value: "SEQ", "Begin after event SEQ instead of with new events."),
        .init("epoch", value: "WORD", "The epoch of SEQ; if another has begun, events may have been missed."),
      ]),
    Group(
      commands: ["migrate device", "migrate installation"],
      options: [
        .init("file", value: "PATH", "Read VALUE from this file; - is standard input."),
        .init("field", value: "NAME", "Read VALUE from the line NAME=value or NAME: value of the file."),
      ]),
    Group(
      commands: ["account invite", "account join", "fleet setup"],
      options: [.init("file", value: "PATH", "Write the invitation to this file, or read it from there.")]),
    Group(
      commands: ["fleet setup"],
      options: [
        .init("ca-file", value: "PATH", "Trust the authorities with these certificates, or the broker's own one."),
        .init("password-file", value: "PATH", "Read the password from this file; - is standard input."),
        .init("create", value: "NAME", "Make an account afterwards."),
        .init("join", value: "CODE", "Join an account with a code afterwards; - is a code on standard input."),
      ]),
    Group(
      commands: ["account invite"],
      options: [
        .init("no-passphrase", "Write the invitation without a passphrase: a person with the file can join.")
      ]),
    Group(
      commands: ["fleet keygen"],
      options: [
        .init("file", value: "PATH", "Write the private keys to this new file, which only this user can read.")
      ]),
    Group(
      commands: ["fleet status"],
      options: [
        .init("key", value: "FILE", "Show the reports of the site's devices, with the key of the site in this file."),
        .init("stale", value: "SECONDS", "Show only devices that have sent no report for this time."),
      ]),
    Group(
      commands: ["fleet credentials"],
      options: [
        .init("previous", "Show the passwords of before the last replacement of the account's key.")
      ], replaced: "previous"),
    Group(
      commands: ["devices"],
      options: [.init("stale", value: "SECONDS", "Show only devices that were not heard from for this time.")]),
    Group(
      commands: ["item add", "item put", "item update", "credential put", "key protect", "key recover"],
      options: [.init("data-file", value: "PATH", "Read the secret from this file, unchanged; - is standard input.")],
      replaced: "data"),
    Group(
      commands: ["item add", "item put", "item update", "credential put"],
      options: [.init("allow-empty", "Send an empty secret, too, instead of taking it for a failure.")]),
    Group(
      commands: ["item read"], options: [.init("raw", "Write only the bytes of the secret, unchanged.")]),
    Group(
      commands: ["token put", "token invalidate"],
      options: [
        .init("token-file", value: "PATH", "Read TOKEN from this file, without its line feed; - is standard input.")
      ], replaced: "TOKEN"),
    Group(
      commands: ["proof verify"],
      options: [
        .init("keys", value: "FILE", "Verify by the key set in this file, as 'proof keys --json' writes it."),
        .init("audience", value: "NAME", "Refuse a proof for another audience."),
      ]),
    Group(
      commands: ["fleet keys"],
      options: [
        .init("output", value: "DIR", "Write a directory for each device below this one, readable by all users."),
        .init("key", value: "FILE", "Write the keys of the site's devices, with the key of the site in this file."),
        .init("combined", "Write the file 'combined', too, which is for 'proof verify' alone."),
      ]),
    Group(
      commands: ["proof discovery"],
      options: [.init("output", value: "DIR", "Write the files below this directory, readable by all users.")]),
    Group(
      commands: ["seal"],
      options: [
        .init(
          "root", value: "DIR",
          "Delete the identity of the system below DIR, on which no daemon runs, instead of asking a daemon.")
      ]),
    Group(
      commands: ["stats", "check"],
      options: [
        .init("openmetrics", "Write the metrics in the OpenMetrics 1.0 format."),
        .init("prometheus", "Write the metrics in the Prometheus text format, for node_exporter's textfile collector."),
        .init("output", value: "FILE", "Replace FILE atomically with the metrics, readable by all users."),
      ]),
    Group(
      commands: ["backup", "restore", "account invite", "account join", "fleet setup"],
      options: [
        .init("passphrase-fd", value: "N", "Read the passphrase from file descriptor N instead of the terminal.")
      ]),
    Group(
      commands: dryVerbs + ["backup", "restore"],
      options: [.init("dry-run", "Change nothing; only show what would change.")], replaced: "dry-run"),
    Group(
      commands: ["renew"],
      options: [
        .init("replaces", "The same as replaces=yes: end the former identifier, although this may be a copy.")
      ]),
    Group(
      commands: ["restore"],
      options: [
        .init("adopt-device", "Adopt the backup's device identifier on another machine.")
      ]),
  ]

  /// The verbs that have a dry run in the protocol.
  private static let dryVerbs = VerbTable.verbs.filter { verb in
    verb.attributes.contains { $0.name == "dry-run" } && verb.words != "restore end"
  }.map(\.words)

  /// The options of all groups.
  static let known = groups.flatMap(\.options)

  /// Refuses options that do not apply to the command.
  static func check(_ line: CommandLine) throws(CommandLine.UsageError) {
    if line.options["timeout"] != nil, VerbName(line.words).first == "monitor" {
      throw CommandLine.UsageError("option '--timeout' is not for 'monitor', which only the user ends")
    }
    // Most command lines have no option, and their commands need not be compared with those of all groups.
    guard !line.options.isEmpty else { return }
    let allowed = Set(applicable(to: line.words).map(\.name))
    for option in known where line.options[option.name] != nil && !allowed.contains(option.name) {
      let commands = groups.filter { $0.options.contains { $0.name == option.name } }.flatMap(\.commands)
      throw CommandLine.UsageError("option '--\(option.name)' is only for \(list(commands))")
    }
  }

  /// Whether a command line asks for a dry run of the daemon. `backup` and `restore` look at the option themselves.
  static func sendsDryRun(_ line: CommandLine) -> Bool {
    line.options["dry-run"] != nil && !["backup", "restore"].contains(VerbName(line.words).first)
  }

  /// Returns the options that a command line with these words may have.
  static func applicable(to words: [String]) -> [CommandLine.Option] {
    let name = VerbName(words)
    return groups.filter { $0.commands.isEmpty || $0.commands.contains(where: name.matches) }.flatMap(\.options)
  }

  /// Returns the groups of options that only the given command and its like take.
  static func groups(of command: String) -> [Group] { groups.filter { $0.commands.contains(command) } }

  /// Returns commands as a list in a sentence.
  static func list(_ commands: [String]) -> String {
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
      throw CommandLine.UsageError("--\(option) cannot be '\(text)'; allowed: seconds, such as 10 or 2.5")
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
