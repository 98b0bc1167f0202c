import Foundation
import Testing

/// The documentation of the client library: its code is what the end-to-end tests compile and run.
@Suite struct LibraryDocumentationTests {
  private static let catalog = "Sources/IdentityClient/IdentityClient.docc"
  private static let compiled = "Tests/EndToEndTests/Library/Tutorial"

  @Test func `the code of the tutorial is the code that is tested, and all of it is shown`() throws {
    let tutorials = try Tree.files(below: Self.catalog, "tutorial")
    let shown = try tutorials.flatMap { file in
      try Tree.text(file).matches(of: /@Code\(name: "[A-Za-z]+\.swift", file: "([a-z-]+\.swift)"\)/).map {
        String($0.1)
      }
    }
    #expect(shown.count >= 4)
    for file in shown {
      #expect(try Tree.text("\(Self.catalog)/Resources/\(file)") == Tree.text("\(Self.compiled)/\(file)"), "\(file)")
    }
    #expect(
      try Tree.files(below: "\(Self.catalog)/Resources", "swift").map { "\($0.split(separator: "/").last ?? "")" }
        == shown.sorted())
  }

  @Test func `every block of code in the articles is in a file that is compiled`() throws {
    let compiled = try Tree.files(below: Self.compiled, "swift").map { try Self.trimmed(Tree.lines($0)) }
    var blocks = 0
    for file in try Tree.files(below: "Sources/IdentityClient", "md", "swift") {
      // Those of the tutorial are compared as a whole.
      if file.contains("/Resources/") { continue }
      for block in Self.blocks(in: try Tree.lines(file)) {
        blocks += 1
        #expect(compiled.contains { Self.contains($0, block) }, "\(file): \(block)")
      }
    }
    #expect(blocks >= 4)
  }

  @Test func `every page that is named is there, and every symbol`() throws {
    let pages = try Tree.files(below: Self.catalog, "md", "tutorial")
    let names = Set(pages.map { String($0.split(separator: "/").last?.split(separator: ".").first ?? "") })
    let sources = try Tree.files(below: "Sources/IdentityClient", "swift").map { try Tree.text($0) }.joined()
    for page in pages {
      let text = try Tree.text(page)
      for match in text.matches(of: /doc:([A-Za-z]+)/) {
        #expect(names.contains(String(match.1)), "\(page): \(match.1)")
      }
      for match in text.matches(of: /[^`]``([A-Za-z\/]+)[^`]*``/) {
        let name = String(match.1.split(separator: "/").last ?? "")
        let isDeclared = ["class", "struct", "enum", "case", "func", "var", "let"].contains { kind in
          sources.contains(" \(kind) \(name)") || sources.contains("\n\(kind) \(name)")
        }
        #expect(isDeclared, "\(page): \(name)")
      }
    }
  }

  @Test func `every public type has its place in the overview`() throws {
    let overview = try Tree.text("\(Self.catalog)/IdentityClient.md")
    for file in try Tree.files(below: "Sources/IdentityClient", "swift") where !file.contains(".docc/") {
      for match in try Tree.text(file).matches(of: #/(?m)^public (?:final class|struct|enum) ([A-Za-z]+)/#) {
        #expect(overview.contains("``\(match.1)``") || overview.contains("/\(match.1)``"), "\(match.1)")
      }
    }
  }

  private static func trimmed(_ lines: [Substring]) -> [String] {
    lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  /// The blocks between fences, without the marks of a comment.
  private static func blocks(in lines: [Substring]) -> [[String]] {
    var blocks: [[String]] = []
    var block: [String]?
    for line in trimmed(lines).map({ $0.hasPrefix("///") ? $0.dropFirst(3).trimmingCharacters(in: .whitespaces) : $0 })
    {
      if line == "```swift" {
        block = []
      } else if line == "```", let ended = block {
        blocks.append(ended)
        block = nil
      } else {
        block?.append(line)
      }
    }
    return blocks
  }

  private static func contains(_ lines: [String], _ block: [String]) -> Bool {
    lines.indices.contains { lines[$0...].starts(with: block) }
  }
}
