import Foundation
import Testing

/// Tests of the pages as readers see them: with the `man` of Debian, which uses groff, and with mandoc.
struct ManualRenderingTests {
  /// A page, a program that shows it, and the width of the terminal in columns.
  struct Rendering: CustomTestStringConvertible, Sendable {
    let page: String
    let program: String
    let width: Int

    var testDescription: String { "\(page) with \(program) in \(width) columns" }
  }

  private static let pages = (try? Tree.files(below: "packaging/man", "1", "3", "5", "7", "8")) ?? []
  private static let renderings = pages.flatMap { page in
    ["man", "mandoc"].flatMap { program in [80, 120].map { Rendering(page: page, program: program, width: $0) } }
  }

  /// The most columns that text is indented by: more than half of the narrowest terminal remains.
  private static let mostIndentation = 35

  /// Shows a page.
  ///
  /// - Returns: the lines as plain text, and the warnings.
  private func show(_ rendering: Rendering) throws -> (lines: [String], warnings: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    let file = Tree.root.appending(path: rendering.page).path
    switch rendering.program {
    case "man":
      process.arguments = ["man", "--warnings=w", "--local-file", file]
      process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MAN") }.merging(
        ["MANWIDTH": "\(rendering.width)", "LC_ALL": "C.UTF-8"]) { $1 }
    default: process.arguments = ["mandoc", "-T", "utf8", "-O", "width=\(rendering.width)", file]
    }
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    let warnings = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    // Bold and underlined characters are printed over others.
    let plain = text.replacing(/.\u{8}/, with: "")
    return (plain.split(separator: "\n", omittingEmptySubsequences: false).map(String.init), warnings)
  }

  /// The parts of a page's source that must be shown unchanged.
  private struct Source {
    /// The lines of literal displays, without indentation.
    var literals: Set<String> = []
    /// The texts that the page encloses in single quotation marks.
    var quotations: [String] = []

    init(_ path: String) throws {
      var isLiteral = false
      for line in try Tree.lines(path) {
        if line.hasPrefix(".Bd -literal") || line == ".Ed" {
          isLiteral = line != ".Ed"
        } else if isLiteral, !line.hasPrefix(".") {
          literals.insert(Self.shown(line).trimmingCharacters(in: .whitespaces))
        } else if line.hasPrefix("."), !line.hasPrefix(".\\\"") {
          // An escaped space does not end a word.
          let words = line.dropFirst().replacing("\\ ", with: "").split(separator: " ")
          quotations += Self.quotations(in: words.map(String.init))
        }
      }
      literals.remove("")
    }

    /// Returns the text that a line of the source shows.
    private static func shown(_ line: Substring) -> String {
      let escapes = [
        "\\&": "", "\\-": "-", "\\(aq": "'", "\\(dq": "\"", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\e": "\\",
      ]
      return String(line).replacing(/\\(?:\(..|.)/) { escapes[String($0.output)] ?? String($0.output) }
    }

    /// Returns the quotations in the words of a line: after `Ql` up to closing punctuation, and from `So` to `Sc`.
    private static func quotations(in words: [String]) -> [String] {
      var found: [String] = []
      var rest = words[...]
      while let start = rest.firstIndex(where: { $0 == "Ql" || $0 == "So" }) {
        let isClosed = rest[start] == "So"
        rest = rest[(start + 1)...]
        let end = isClosed ? rest.firstIndex(of: "Sc") ?? rest.endIndex : rest.endIndex
        var quoted = rest[..<end]
        if !isClosed { while let last = quoted.last, last.count == 1, ".,:;()".contains(last) { quoted.removeLast() } }
        let plain = quoted.filter { !["Ar", "Cm", "Ns", "Pa", "Va"].contains($0) }
        found.append(shown(plain.joined()[...]))
        rest = rest[end...]
      }
      return found
    }
  }

  /// Returns the text without what depends on the place of a line's end, and with one form of each quotation mark.
  private func condensed(_ text: String) -> String {
    text.replacing(/[\s"\-\u{2010}\u{2212}]+/, with: "").replacing("\u{2019}", with: "'")
  }

  @Test(arguments: renderings)
  func `a page is shown whole`(rendering: Rendering) throws {
    let source = try Source(rendering.page)
    let (lines, warnings) = try show(rendering)
    #expect(warnings == "")
    let page = rendering.page.split(separator: "/").last.map(String.init) ?? ""
    let title = "\(page.dropLast(2))(\(page.suffix(1)))"
    let header = try #require(lines.first).uppercased()
    // mandoc leaves out the second title if it has no room. groff would shorten both.
    #expect(header.hasPrefix(title.uppercased()) && !header.contains("..."), "\(header)")

    let shown = Set(lines.map { $0.trimmingCharacters(in: .whitespaces) })
    // Lines of examples are not broken, so that they can be copied.
    for line in source.literals { #expect(shown.contains(line), "the example is missing or changed: \(line)") }
    for line in lines.dropFirst() where !source.literals.contains(line.trimmingCharacters(in: .whitespaces)) {
      #expect(line.count <= rendering.width, "\(line)")
      guard line != lines.last(where: { !$0.isEmpty }) else { continue }
      #expect(line.prefix { $0 == " " }.count <= Self.mostIndentation, "\(line)")
    }
    let text = condensed(lines.joined(separator: "\n"))
    for quotation in source.quotations {
      #expect(text.contains("\u{2018}\(condensed(quotation))'"), "the quotation is missing or changed: \(quotation)")
    }
  }
}
