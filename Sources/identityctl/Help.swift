import IdentityCore
import IdentityWire
import LinuxSystem

/// The text of `--help`.
enum Help {
  /// The usage and the summary of one command.
  private struct Line {
    let usage: String
    let summary: String
    let isDestructive: Bool
  }

  /// Returns the help for all commands, or for the commands that begin with `words`.
  static func text(about words: [String]) throws(CommandLine.UsageError) -> String {
    let verbs = VerbTable.verbs(beginningWith: words.map { Text($0) }).map {
      Line(usage: $0.usage, summary: $0.summary, isDestructive: $0.consequence != nil)
    }
    guard words.isEmpty else {
      let found = verbs + own(ClientCommand.all.filter { $0.begins(with: words) })
      guard !found.isEmpty else {
        throw CommandLine.UsageError("no verb begins with '\(words.joined(separator: " "))'")
      }
      return list(found)
    }
    let commands = own(ClientCommand.all)
    return """
      identityctl [OPTION…] VERB…

      Sends a request to identityd and shows the answer.

      Verbs:
      \(list(verbs.filter { !$0.isDestructive }))
      Commands of the client:
      \(list(commands.filter { !$0.isDestructive }))
      Verbs that cannot be undone, which ask first or need --yes:
      \(list((verbs + commands).filter(\.isDestructive)))
      \(Options.help)
      See identityctl(1) and identityd-protocol(7).

      """
  }

  private static func own(_ commands: [ClientCommand]) -> [Line] {
    commands.map { Line(usage: $0.usage, summary: $0.summary, isDestructive: $0.consequence != nil) }
  }

  private static func list(_ lines: [Line]) -> String {
    let width = lines.map(\.usage.count).max() ?? 0
    return lines.map { line in
      "  \(line.usage)\(String(repeating: " ", count: width - line.usage.count))  \(line.summary)\n"
    }.joined()
  }
}
