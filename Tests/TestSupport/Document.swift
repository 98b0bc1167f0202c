package import Foundation

/// A document of the project, parsed for the tests that execute it: Markdown, or a manual page in mdoc(7).
///
/// Holds all commands that the document tells its reader to type: those in code blocks and those in its text.
package struct Document {
  /// The documents whose commands are executed.
  package enum File: String, CaseIterable, Sendable {
    case readme = "README.md"
    case tour = "Sources/identityd/identityd.docc/Tour.md"
    case development = "Sources/identityd/identityd.docc/Development.md"
    case manual = "packaging/man/identityd.8"

    /// The location of the document.
    package var url: URL { Document.root.appending(path: rawValue) }

    fileprivate var isManualPage: Bool { !rawValue.hasSuffix(".md") }
  }

  /// A code block: fenced in Markdown, a literal display in a manual page.
  package struct Block {
    /// The number of the line that opens it, from 1.
    package let line: Int
    /// The language after the backquotes: `console` for commands with their output, `sh` for commands alone. The
    /// language of every block of a manual page is `sh`.
    package let language: String
    /// The name in the comment above the block: `<!-- tested as NAME -->`, or `.\" tested as NAME` in a manual page.
    /// Nil without such a comment.
    package let name: String?
    /// The top-level section of a manual page. Empty in Markdown.
    package let section: String
    package fileprivate(set) var lines: [String] = []
  }

  /// A command within the text.
  package struct Mention {
    /// The number of its line, from 1.
    package let line: Int
    package let command: String
    /// The nearest heading above it.
    package let heading: String
    /// The top-level section of a manual page. Empty in Markdown.
    package let section: String
  }

  /// A command of a `console` block, and its output.
  package struct Step {
    /// The number of the command's line, from 1.
    package let line: Int
    package let command: String
    /// The lines up to the next command.
    package fileprivate(set) var output: [String] = []
  }

  /// The root of the source tree.
  package static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The document that was parsed.
  package let file: File
  package let lines: [String]
  package private(set) var blocks: [Block] = []
  /// The commands in the text: between single backquotes, or after `.Ql` and `.Dl` in a manual page.
  package private(set) var mentions: [Mention] = []
  /// The lines of Markdown outside of code blocks, without fences. Empty for a manual page.
  package private(set) var prose: [String] = []

  /// Reads the document and finds its blocks and commands.
  package init(_ file: File) throws {
    self.file = file
    lines = try String(contentsOf: file.url, encoding: .utf8).components(separatedBy: "\n")
    if file.isManualPage { parseManualPage() } else { parseMarkdown() }
  }

  // MARK: Markdown

  private mutating func parseMarkdown() {
    var block: Block?
    var heading = ""
    for (index, line) in lines.enumerated() {
      // A block within a list is indented.
      let text = line.drop { $0 == " " }
      if text.hasPrefix("```") {
        if let ended = block {
          blocks.append(ended)
          block = nil
        } else {
          let name = index > 0 ? lines[index - 1].wholeMatch(of: /\s*<!-- tested as (.+) -->/) : nil
          block = Block(
            line: index + 1, language: String(text.dropFirst(3)), name: name.map { String($0.1) }, section: "")
        }
      } else if block != nil {
        block?.lines.append(line)
      } else {
        prose.append(line)
        if line.hasPrefix("#") { heading = line.trimmingPrefix(while: { $0 == "#" || $0 == " " }).description }
        for match in line.replacing("\\|", with: "|").matches(of: /`([^`]+)`/) where Self.isCommand(match.1) {
          mentions.append(Mention(line: index + 1, command: String(match.1), heading: heading, section: ""))
        }
      }
    }
  }

  // MARK: Manual pages

  private mutating func parseManualPage() {
    var block: Block?
    var heading = ""
    var section = ""
    for (index, line) in lines.enumerated() {
      if let title = line.wholeMatch(of: /\.S([hs]) (.+)/) {
        heading = String(title.2)
        if title.1 == "h" { section = heading }
      } else if line.hasPrefix(".Bd -literal") {
        let name = index > 0 ? lines[index - 1].wholeMatch(of: #/\.\\" tested as (.+)/#) : nil
        block = Block(line: index + 1, language: "sh", name: name.map { String($0.1) }, section: section)
      } else if line == ".Ed" {
        if let ended = block { blocks.append(ended) }
        block = nil
      } else if block != nil {
        block?.lines.append(Self.unescaped(line))
      } else if let command = Self.literal(in: line), Self.isCommand(command[...]) {
        mentions.append(Mention(line: index + 1, command: command, heading: heading, section: section))
      }
    }
  }

  /// Returns the text after the macro `Ql` or `Dl` in a line of mdoc(7), without closing delimiters.
  private static func literal(in line: String) -> String? {
    guard line.hasPrefix(".") else { return nil }
    let words = line.dropFirst().split(separator: " ").map(String.init)
    guard let place = words.firstIndex(where: { $0 == "Ql" || $0 == "Dl" }) else { return nil }
    var rest = words[(place + 1)...]
    while let last = rest.last, [".", ",", ":", ";", ")", "?", "!"].contains(last) { rest.removeLast() }
    return unescaped(rest.joined(separator: " "))
  }

  /// Returns a line of mdoc(7) with its escapes replaced by the characters that they show.
  private static func unescaped(_ line: String) -> String {
    let escapes = [
      ("\\&", ""), ("\\-", "-"), ("\\(aq", "'"), ("\\(dq", "\""), ("\\(ga", "`"), ("\\(ha", "^"), ("\\(ti", "~"),
      // Last, because it yields the character that begins the others.
      ("\\e", "\\"),
    ]
    return escapes.reduce(line) { $0.replacing($1.0, with: $1.1) }
  }

  // MARK: Commands

  /// Programs. Text between backquotes that begins with one of them is a command.
  private static let programs: Set = [
    "apt", "cp", "dpkg", "identityctl", "identityd", "identityd-setup-key", "journalctl", "mv", "packaging/tools/bench",
    "packaging/tools/build-deb", "packaging/tools/build-rpm", "packaging/tools/fuzz", "packaging/run", "packaging/test",
    "rm", "sudo", "swift", "systemctl",
  ]

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

  /// Returns the commands in the text below a heading, or in a top-level section of a manual page.
  package func commands(below heading: String) -> [String] {
    mentions.filter { $0.heading == heading || $0.section == heading }.map(\.command)
  }

  private static func withoutComment(_ line: String) -> String {
    line.replacing(/(^| +)# .*$/, with: "").trimmingCharacters(in: .whitespaces)
  }
}
