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
  /// Attributes and further operands are ignored, so that `--help` may follow a complete command.
  ///
  /// - Throws: an ending if no command begins with the first of the words.
  func text(about words: [String]) throws(Program.Ending) -> String {
    let words = words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }.prefix(2).map { $0.lowercased() }
    guard !words.isEmpty else { return everything }
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

  private var everything: String {
    return """
      identityctl [OPTION…] [VERB…]

      \(layout.wrapped("Sends a request to identityd and shows the answer. Without a VERB, shows how the daemon is doing."))
      Verbs:
      \(list(Command.verbs.filter { !$0.isDestructive }))
      Commands of the client:
      \(list(Command.own.filter { !$0.isDestructive }))
      \(layout.wrapped("Verbs that can destroy more than they name, which ask first or need --yes:").dropLast())
      \(list(Command.all.filter(\.isDestructive)))
      \(Options.groups.map(options).joined(separator: "\n"))
      \(layout.wrapped("See identityctl(1) and identityd-protocol(7).").dropLast())

      """
  }

  private func list(_ commands: [Command]) -> String { layout.list(commands.map { .init($0.usage, $0.summary) }) }

  private func options(of group: Options.Group) -> String {
    let title = group.commands.isEmpty ? "Options:" : "Options of \(Options.list(group.commands)):"
    return layout.wrapped(title, next: 2)
      + layout.list(zip(CommandLine.heads(group.options), group.options).map { .init($0, $1.summary) })
  }
}
