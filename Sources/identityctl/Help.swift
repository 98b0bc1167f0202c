import IdentityCore
import IdentityWire
import LinuxSystem

/// What `--help` shows.
enum Help {
  /// What a command looks like, and what it does.
  private struct Line {
    let usage: String
    let summary: String
  }

  /// What the client does beyond sending a request.
  private static let own = [
    Line(usage: "monitor [TOPIC…]", summary: "Write events of these topics, or of all, as they happen."),
    Line(usage: "wait TOPIC…", summary: "Write the next event of these topics, and end."),
    Line(
      usage: "version changed [VERSION] [build=B] [app=ID]",
      summary: "Tell by the status whether VERSION, or what was reported last, differs from the last session's."),
    Line(
      usage: "version compare A lt|le|eq|ne|ge|gt B [order=numeric|linux]",
      summary: "Tell by the status whether that is so."),
    Line(usage: "backup FILE", summary: "Write everything there is to FILE, encrypted with a passphrase."),
    Line(usage: "restore FILE", summary: "Bring a backup into force."),
  ]

  /// Everything, or what is known of the commands that begin with these words.
  static func text(about words: [String]) throws(CommandLine.UsageError) -> String {
    let verbs = VerbTable.verbs(beginningWith: words.map { Text($0) }).map {
      Line(usage: $0.usage, summary: $0.summary)
    }
    guard words.isEmpty else {
      let found = verbs + own.filter { line in words.count == 1 && line.usage.hasPrefix(words[0].lowercased() + " ") }
      guard !found.isEmpty else {
        throw CommandLine.UsageError("no verb begins with '\(words.joined(separator: " "))'")
      }
      return list(found)
    }
    return """
      identityctl [OPTION…] VERB…

      Asks identityd who this machine is, and what is installed on it.

      Verbs:
      \(list(verbs))
      Besides:
      \(list(own))
      \(Options.help)
      See identityctl(1) and identityd-protocol(7).

      """
  }

  private static func list(_ lines: [Line]) -> String {
    let width = lines.map(\.usage.count).max() ?? 0
    return lines.map { line in
      "  \(line.usage)\(String(repeating: " ", count: width - line.usage.count))  \(line.summary)\n"
    }.joined()
  }
}
