import ClientFormats
import Foundation
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Testing
import identityctl

/// The parts of the shell completions that are generated from the tables of verbs, commands and options.
struct CompletionTableTests {
  /// A shell with its quoting rules.
  enum Shell: String, CaseIterable {
    case bash = "identityctl.bash"
    case zsh = "_identityctl"
    case fish = "identityctl.fish"

    var path: String { "packaging/completions/\(rawValue)" }

    func quoted(_ text: String) -> String {
      switch self {
      case .bash, .zsh: "'" + text.replacing("'", with: "'\\''") + "'"
      case .fish: "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
      }
    }

    /// Returns an array definition with these elements.
    func array(_ name: String, _ elements: [String]) -> String {
      switch self {
      case .bash: "_identityctl_\(name)=(\n" + elements.map { "  \(quoted($0))\n" }.joined() + ")\n"
      case .zsh:
        "  \(name == "commands" ? "table" : "options_table")=(\n" + elements.map { "    \(quoted($0))\n" }.joined()
          + "  )\n"
      case .fish:
        "set -g __identityctl_\(name)" + elements.map { " \\\n    \(quoted($0))" }.joined() + "\n"
      }
    }
  }

  /// The placeholders in usage texts, each with the source of its completions: `@` and a lookup, or a list of words.
  private static let attributes = [
    "S": "@service", "A": "@account", "ACCOUNT": "@account", "G": "@group", "ID": "@app",
  ]
  private static let operands = [
    "ID": "@app", "FILE": "@file", "TOPIC": Topic.allCases.map(\.rawValue).joined(separator: "|"),
    "LEVEL": Level.allCases.map(\.rawValue).joined(separator: "|"),
  ]
  private static let options = [
    "PATH": "@file", "FILE": "@file", "DIR": "@file",
    "FORM": UUIDFormat.allCases.map(\.rawValue).joined(separator: "|"),
    "WHEN": ColourChoice.allCases.map(\.rawValue).joined(separator: "|"),
  ]

  /// Returns the completions for a value from its usage text, such as `4|7` or `ID|*`.
  private static func values(_ usage: String, _ places: [String: String]) -> String {
    let known = usage.split(separator: "|").compactMap { part in
      part.contains(where: \.isUppercase) ? places[String(part)] : String(part)
    }
    return known.isEmpty ? "-" : known.joined(separator: "|")
  }

  private static func entry(
    _ words: String, _ operands: [Verb.Operand], _ attributes: [Verb.Attribute], _ summary: String, _ shell: Shell
  ) -> String {
    let positional = operands.map { values($0.name, Self.operands) + ($0.repeats ? "..." : "") }
    let replaced = Options.groups.filter { $0.commands.contains(words) }.compactMap(\.replaced)
    // For attributes whose names the client chooses, only the prefix. Options supply some of the others.
    let named = attributes.filter { !replaced.contains($0.name) }.map {
      $0.suffix == nil ? "\($0.name)=\(values($0.value, Self.attributes))" : $0.name
    }
    let fields = [words, positional.joined(separator: " "), named.joined(separator: " ")]
    return (fields + (shell == .bash ? [] : [summary])).joined(separator: ";")
  }

  private static func tables(_ shell: Shell) -> String {
    let verbs = VerbTable.verbs.map { entry($0.words, $0.operands, $0.attributes, $0.summary, shell) }
    let own = ClientCommand.all.map { entry($0.words, $0.operands, $0.attributes, $0.summary, shell) }
    let options = Options.groups.flatMap { group in
      group.options.map { option in
        let head = "--\(option.name)" + (option.value.map { "=\(values($0, Self.options))" } ?? "")
        let fields = [head, group.commands.joined(separator: "|")]
        return (fields + (shell == .bash ? [] : [option.summary])).joined(separator: ";")
      }
    }
    return shell.array("commands", verbs + own) + shell.array("options", options)
  }

  @Test(arguments: Shell.allCases)
  func `the completions match the tables of verbs, commands and options`(shell: Shell) throws {
    let file = try Tree.text(shell.path)
    let start = try #require(file.range(of: "# BEGIN COMMANDS\n"))
    let finish = try #require(file.range(of: "# END COMMANDS\n"))
    if ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_MANUAL"] != nil {
      let new = file[..<start.upperBound] + Self.tables(shell) + file[finish.lowerBound...]
      try Data(new.utf8).write(to: Tree.root.appending(path: shell.path))
    } else {
      let current = String(file[start.upperBound..<finish.lowerBound])
      #expect(current == Self.tables(shell), "run the tests once with IDENTITYD_UPDATE_MANUAL=1")
    }
  }

  @Test func `no entry of the tables contains a separator of the completions`() {
    for words in VerbTable.verbs.map(\.words) + ClientCommand.all.map(\.words) {
      #expect(!words.contains(";") && words.split(separator: " ").count <= 2, "\(words)")
    }
    let groups = Options.groups.flatMap(\.commands)
    #expect(!groups.contains { $0.contains("|") || $0.contains(";") })
  }

  @Test func `every option belongs to an existing command`() {
    let known = Set(VerbTable.verbs.map(\.words) + ClientCommand.all.map(\.words))
    for command in Options.groups.flatMap(\.commands) { #expect(known.contains(command), "\(command)") }
  }
}
