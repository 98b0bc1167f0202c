import ClientFormats
import IdentityCore
import IdentityWire
import LinuxSystem

/// The text of `help` and of `--help`.
struct Help {
  private let layout: HelpLayout

  /// A verb or a command of the client.
  private struct Command {
    let words: String
    let operands: [Verb.Operand]
    let attributes: [Verb.Attribute]
    let summary: String
    let isDestructive: Bool
    /// The usage, in which a secret comes from a file.
    var usage: String {
      let groups = Options.groups(of: words)
      let lead = groups.compactMap(\.replaced).first { replaced in
        operands.contains { $0.name == replaced && !$0.isOptional }
          || attributes.contains { $0.name == replaced && $0.isRequired }
      }
      let options = groups.filter { $0.replaced == lead && lead != nil }.flatMap(\.options)
      return Verb.usage(
        of: ([words] + options.map { "--\($0.name)=\($0.value ?? "")" }).joined(separator: " "),
        operands.filter { $0.name != lead }, attributes.filter { $0.name != lead })
    }
  }

  /// Creates help for a terminal of this width in columns.
  init(width: Int) { layout = HelpLayout(width: width) }

  private static let verbs = VerbTable.verbs.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.consequence != nil)
  }
  private static let own = ClientCommand.all.map {
    Command(
      words: $0.words, operands: $0.operands, attributes: $0.attributes, summary: $0.summary,
      isDestructive: $0.consequence != nil)
  }

  /// Returns the help for all commands, or for the commands that begin with `words`.
  ///
  /// Attributes and further operands are ignored, so that `--help` may follow a complete command.
  ///
  /// - Throws: an ending if no command begins with the first of the words.
  func text(about words: [String]) throws(Program.Ending) -> String {
    let words = words.filter { !WordEncoder.looksLikeAttribute(Array($0.utf8)) }.prefix(2).map { $0.lowercased() }
    guard !words.isEmpty else { return everything }
    for count in stride(from: words.count, to: 0, by: -1) {
      let found = (Self.verbs + Self.own).filter {
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
    let all = Self.verbs + Self.own
    return """
      identityctl [OPTION…] [VERB…]

      \(layout.wrapped("Sends a request to identityd and shows the answer. Without a VERB, shows how the daemon is doing."))
      Verbs:
      \(list(Self.verbs.filter { !$0.isDestructive }))
      Commands of the client:
      \(list(Self.own.filter { !$0.isDestructive }))
      \(layout.wrapped("Verbs that cannot be undone, which ask first or need --yes:").dropLast())
      \(list(all.filter(\.isDestructive)))
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
