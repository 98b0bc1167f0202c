package import Foundation

/// README.md, parsed for the tests that execute it.
///
/// Holds all commands that the README tells its reader to type: those in code blocks and those in its text.
package struct Readme {
  /// A fenced code block.
  package struct Block {
    /// The number of its first fence line, from 1.
    package let line: Int
    /// The language after the backquotes: `console` for commands with their output, `sh` for commands alone.
    package let language: String
    /// The name in the comment above the block, `<!-- tested as NAME -->`. Nil without such a comment.
    package let name: String?
    package fileprivate(set) var lines: [String] = []
  }

  /// A command of a `console` block, and its output.
  package struct Step {
    /// The number of the command's line, from 1.
    package let line: Int
    package let command: String
    /// The lines up to the next command.
    package fileprivate(set) var output: [String] = []
  }

  /// The location of README.md.
  package static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "README.md")

  package let lines: [String]
  package private(set) var blocks: [Block] = []
  /// Commands in the text, between single backquotes, with their line numbers.
  package private(set) var inline: [(line: Int, command: String)] = []
  /// The heading above each line.
  private var headings: [String] = []

  /// Programs. Text between backquotes that begins with one of them is a command.
  private static let programs: Set = [
    "apt", "cp", "dpkg", "identityctl", "identityd", "identityd-setup-key", "journalctl", "mv", "packaging/bench",
    "packaging/build-deb", "packaging/build-rpm", "packaging/fuzz", "packaging/run", "packaging/test", "rm", "sudo",
    "swift", "systemctl",
  ]

  /// Reads the file and finds its blocks and commands.
  package init() throws {
    lines = try String(contentsOf: Self.file, encoding: .utf8).components(separatedBy: "\n")
    var block: Block?
    var heading = ""
    for (index, line) in lines.enumerated() {
      // A block within a list is indented.
      let text = line.drop { $0 == " " }
      if text.hasPrefix("```") {
        if let ended = block { blocks.append(ended) }
        let name = index > 0 ? lines[index - 1].wholeMatch(of: /\s*<!-- tested as (.+) -->/) : nil
        block =
          block == nil
          ? Block(line: index + 1, language: String(text.dropFirst(3)), name: name.map { String($0.1) }) : nil
      } else if block != nil {
        block?.lines.append(line)
      } else {
        if line.hasPrefix("#") { heading = line.trimmingPrefix(while: { $0 == "#" || $0 == " " }).description }
        for match in line.replacing("\\|", with: "|").matches(of: /`([^`]+)`/) where Self.isCommand(match.1) {
          inline.append((index + 1, String(match.1)))
        }
      }
      headings.append(heading)
    }
  }

  /// Whether a text is a program with arguments, or a script. The name of a program alone is not a command.
  private static func isCommand(_ text: Substring) -> Bool {
    let words = text.split(separator: " ")
    guard let first = words.first, programs.contains(String(first)) else { return false }
    return words.count > 1 || first.contains("/")
  }

  /// The commands of all `console` blocks, in order.
  package var steps: [Step] {
    var steps: [Step] = []
    for block in blocks where block.language == "console" {
      for (index, line) in block.lines.enumerated() {
        if line.hasPrefix("$ ") {
          steps.append(Step(line: block.line + index + 1, command: String(line.dropFirst(2))))
        } else if !steps.isEmpty {
          steps[steps.count - 1].output.append(line)
        }
      }
    }
    return steps
  }

  /// Returns the commands of the block with a name, without their comments.
  package func commands(of name: String) -> [String] {
    blocks.filter { $0.name == name }.flatMap(\.lines).map(Self.withoutComment).filter { !$0.isEmpty }
  }

  /// Returns the commands in the text below a heading.
  package func commands(below heading: String) -> [String] {
    inline.filter { headings[$0.line - 1] == heading }.map(\.command)
  }

  private static func withoutComment(_ line: String) -> String {
    line.replacing(/(^| +)# .*$/, with: "").trimmingCharacters(in: .whitespaces)
  }
}
