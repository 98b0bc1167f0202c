import Foundation
import Testing

/// Tests that each row of the table of faults and attacks has a test that carries its number, or a decision that gives
/// the reason why it has none.
struct FaultTableTests {
  private static let article = "Sources/identityd/identityd.docc/Faults.md"
  private static let decisions = "Sources/identityd/identityd.docc/Decisions"

  /// The numbers of all rows: 1 to 69, and those that were inserted between them.
  private static let rows: [String] = (1...69).flatMap { row -> [String] in
    let between: [Int: String] = [
      20: "bcde", 25: "bcde", 30: "b", 31: "b", 32: "b", 36: "bcde", 40: "bcde", 41: "bcde", 42: "bcde",
    ]
    return ["\(row)"] + (between[row] ?? "").map { "\(row)\($0)" }
  }

  /// Returns the rows of the article, each with its proof.
  private func told() throws -> [(row: String, proof: Substring)] {
    try Tree.lines(Self.article).compactMap { line in
      guard let match = line.firstMatch(of: /^\| ([0-9]+[a-e]?) \| [^|]+ \| [^|]+ \| ([^|]+) \|$/) else { return nil }
      return (String(match.1), match.2)
    }
  }

  /// Returns the row numbers at the beginning of a test's name: `row 1: ` or `rows 1, 2 and 3: `.
  private func numbers(in name: Substring) -> [String] {
    guard let match = name.firstMatch(of: #/^rows? ([0-9a-e, and]+): /#) else { return [] }
    return match.1.matches(of: /[0-9]+[a-e]?/).map { String($0.0) }
  }

  /// Returns the names of all tests that begin with row numbers, with these numbers.
  private func carried() throws -> [(name: String, rows: [String])] {
    try Tree.files(below: "Tests", "swift").flatMap { file in
      try Tree.text(file).matches(of: /func\s+`(rows? [0-9][^`]*)`/).map { (String($0.1), numbers(in: $0.1)) }
    }
  }

  @Test func `the article has every row once, in order`() throws {
    #expect(try told().map(\.row) == Self.rows)
  }

  @Test func `every row has a test, or a decision that says why it has none`() throws {
    let carried = Set(try carried().flatMap(\.rows))
    let names = try FileManager.default.contentsOfDirectory(atPath: Tree.root.appending(path: Self.decisions).path)
    for (row, proof) in try told() where !carried.contains(row) {
      let link = try #require(proof.firstMatch(of: /<doc:(00[0-9]{2}-[a-z0-9-]+)>/), "row \(row) has no proof")
      #expect(names.contains("\(link.1).md"), "row \(row)")
      let decision = try Tree.text("\(Self.decisions)/\(link.1).md")
      #expect(decision.contains("row \(row):"), "\(link.1) does not say why row \(row) has no test")
    }
  }

  @Test func `the front page lists every decision and every article`() throws {
    let page = "Sources/identityd/identityd.docc/identityd.md"
    let text = try Tree.text(page)
    let files = try Tree.files(below: "Sources/identityd/identityd.docc", "md").filter { $0 != page }
    #expect(files.count > 40)
    for file in files {
      let name = URL(filePath: file).deletingPathExtension().lastPathComponent
      #expect(text.contains("\n- <doc:\(name)>\n"), "\(name)")
    }
  }

  @Test func `tests carry only existing rows, and only in the prefix`() throws {
    let all = try carried()
    #expect(all.count > 100)
    for (name, rows) in all {
      #expect(!rows.isEmpty, "\(name)")
      #expect(Set(rows).isSubset(of: Self.rows), "\(name)")
      #expect(name.hasPrefix(rows.count == 1 ? "row " : "rows "), "\(name)")
    }
    for file in try Tree.files(below: "Tests", "swift") {
      #expect(try Tree.text(file).firstMatch(of: /func\s+`[^`]+\(row [0-9]+[a-e]?\)`/) == nil, "\(file)")
    }
  }
}
