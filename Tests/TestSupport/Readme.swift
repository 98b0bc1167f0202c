package import Foundation

/// README.md, as the tests that execute it read it.
///
/// Everything that it shows to be typed is found here: the commands of its blocks, and those within its text.
package struct Readme {
  /// What stands between two lines of three backquotes.
  package struct Block {
    /// The number of the line that begins it, from 1.
    package let line: Int
    /// What follows the backquotes: `console` for what is typed and what comes of it, `sh` for what is typed alone.
    package let language: String
    /// What the comment above it says, `<!-- tested as NAME -->`; nil without one.
    package let name: String?
    package fileprivate(set) var lines: [String] = []
  }

  /// A command of a `console` block, and what is shown of it.
  package struct Step {
    /// The number of its line, from 1.
    package let line: Int
    package let command: String
    /// The lines up to the next command.
    package fileprivate(set) var output: [String] = []
  }

  /// Where it stands.
  package static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "README.md")

  package let lines: [String]
  package private(set) var blocks: [Block] = []
  /// Commands within the text, between two backquotes, with the numbers of their lines.
  package private(set) var inline: [(line: Int, command: String)] = []
  /// The heading above each line.
  private var headings: [String] = []

  /// Programs: text between backquotes that begins with one of them is a command.
  private static let programs: Set = [
    "apt", "cp", "dpkg", "identityctl", "identityd", "identityd-setup-key", "journalctl", "mv", "packaging/bench",
    "packaging/build-deb", "packaging/build-rpm", "packaging/fuzz", "packaging/run", "packaging/test", "rm", "sudo",
    "swift", "systemctl",
  ]

  /// Reads it, and finds its blocks and commands.
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

  /// Whether it is a program with words behind it, or a script; the mere name of a program is none.
  private static func isCommand(_ text: Substring) -> Bool {
    let words = text.split(separator: " ")
    guard let first = words.first, programs.contains(String(first)) else { return false }
    return words.count > 1 || first.contains("/")
  }

  /// The commands of all `console` blocks, in their order.
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

  /// The commands of the block with that name, without their comments.
  package func commands(of name: String) -> [String] {
    blocks.filter { $0.name == name }.flatMap(\.lines).map(Self.withoutComment).filter { !$0.isEmpty }
  }

  /// The commands within the text below that heading.
  package func commands(below heading: String) -> [String] {
    inline.filter { headings[$0.line - 1] == heading }.map(\.command)
  }

  private static func withoutComment(_ line: String) -> String {
    line.replacing(/(^| +)# .*$/, with: "").trimmingCharacters(in: .whitespaces)
  }
}
