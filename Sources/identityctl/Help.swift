import ClientFormats
import IdentityCore
import IdentityWire
import LinuxSystem

/// The text of `help` and of `--help`.
struct Help {
  private let layout: HelpLayout

  init(width: Int) { layout = HelpLayout(width: width) }

  /// Returns the help for all commands, or for the commands that begin with `words`.
  ///
  /// Without words, `isWhole` includes the verbs that only programs use. Attributes and further operands are ignored, so
  /// that `--help` may follow a complete command.
  ///
  /// - Throws: an ending if no command begins with the first of the words.
  func text(about words: [String], isWhole: Bool) throws(Program.Ending) -> String {
    let words = words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }.prefix(2).map { $0.lowercased() }
    guard !words.isEmpty else { return everything(isWhole: isWhole) }
    for count in stride(from: words.count, to: 0, by: -1) {
      let found = Command.all.filter {
        $0.words.split(separator: " ").map(String.init).starts(with: words.prefix(count))
      }
      if !found.isEmpty { return text(about: found, named: words.prefix(count).joined(separator: " ")) }
    }
    let advice = Correction(of: words)?.question ?? "see 'identityctl --help'"
    throw Program.Ending(
      status: Program.ExitStatus.usage, text: "no verb begins with '\(words[0])'; \(advice)")
  }

  private func text(about commands: [Command], named words: String) -> String {
    var text = ""
    if commands.count == 1 {
      text += layout.wrapped("identityctl [OPTION…] \(commands[0].usage)", next: 6) + "\n"
      text += layout.wrapped(commands[0].summary)
    } else {
      text += list(commands)
    }
    for group in Options.groups where group.commands.contains(where: { name in commands.contains { $0.words == name } })
    {
      text += "\n\(options(of: group))"
    }
    return text + "\n" + layout.wrapped("'identityctl --help' lists the options of all commands. See identityctl(1).")
  }

  /// The groups of commands, and the words that their commands begin with, the everyday ones first.
  private static let groups: [(title: String, beginnings: [String])] = [
    (
      "Identifiers",
      [
        "get device", "get installation", "get vendor", "get", "renew", "migrate", "history", "resolve", "whoami",
        "app list", "env",
      ]
    ),
    ("Secrets", ["item", "credential"]),
    ("Versions", ["version report", "version changed", "version claim", "version"]),
    ("Push tokens", ["token"]),
    ("Proofs", ["prove", "proof"]),
    (
      "Account and fleet",
      [
        "account create", "account invite", "account join", "account", "devices", "fleet status", "fleet peers",
        "fleet",
      ]
    ),
    ("Events", ["monitor", "wait", "subscribe", "unsubscribe"]),
    (
      "Administration",
      [
        "status", "check", "backup", "restore", "stats", "app forget", "machine", "key", "seal", "ping", "hello",
        "help",
        "quit",
      ]
    ),
  ]

  /// Returns the help for all commands.
  ///
  /// - Parameter isWhole: whether to list the verbs that only programs use, and the options of single commands.
  private func everything(isWhole: Bool) -> String {
    let groups = Self.groups.map { group in
      let found = Self.commands(of: group.beginnings).filter { isWhole || !$0.isForPrograms }
      return "\(group.title):\n\(list(found))"
    }
    let more = isWhole ? "" : "'identityctl help --all' lists the verbs of programs, too, and 'help VERB' its options. "
    return """
      identityctl [OPTION…] [VERB…]

      \(layout.wrapped("Sends a request to identityd and shows the answer. Without a VERB, shows how the daemon is doing."))
      \(groups.joined(separator: "\n"))
      \(layout.wrapped("A command marked with * cannot be undone: it asks first, or needs --yes."))
      \(Options.groups.filter { isWhole || $0.commands.isEmpty }.map(options).joined(separator: "\n"))
      \(layout.wrapped("\(more)See identityctl(1) and identityd-protocol(7).").dropLast())

      """
  }

  /// Returns the commands that begin with these words, in the order of the words.
  static func commands(of beginnings: [String]) -> [Command] {
    var found: [Command] = []
    for beginning in beginnings {
      found += Command.all.filter { command in
        Command.begins(command.words, withOneOf: [beginning])
          && !found.contains { $0.words == command.words && $0.operands.count == command.operands.count }
      }
    }
    return found
  }

  private func list(_ commands: [Command]) -> String {
    layout.list(commands.map { .init($0.usage, $0.summary + ($0.isDestructive ? " *" : "")) })
  }

  private func options(of group: Options.Group) -> String {
    let title = group.commands.isEmpty ? "Options:" : "Options of \(Options.list(group.commands)):"
    return layout.wrapped(title, next: 2)
      + layout.list(zip(CommandLine.heads(group.options), group.options).map { .init($0, $1.summary) })
  }
}
