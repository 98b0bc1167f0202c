import Foundation
import Testing

/// Tests of the manual pages as a whole, and of the parts that show other files.
struct ManualPageTests {
  /// The file names of the pages, such as `identityd.conf.5`.
  private static let pages =
    (try? Tree.files(below: "packaging/man", "1", "3", "5", "7", "8").map { String($0.dropFirst(14)) }) ?? []

  /// Returns the citation of a page, such as `identityd.conf(5)`.
  private static func written(_ page: String) -> String { "\(page.dropLast(2))(\(page.suffix(1)))" }

  /// Returns the project's own pages that a text refers to.
  private func references(_ text: some StringProtocol) -> [String] {
    text.split(separator: "\n").compactMap { line in
      String(line).firstMatch(of: /\.(?:Pq )?Xr ((?:(?:docker|git)-credential-)?identity[a-z.-]+) (\d)/).map {
        "\($0.1).\($0.2)"
      }
    }
  }

  /// Returns the SEE ALSO section of a page.
  private func seeAlso(_ page: String) throws -> Substring {
    let text = try Tree.text("packaging/man/\(page)")
    let start = try #require(text.range(of: ".Sh SEE ALSO\n"), "\(page)")
    let rest = text[start.upperBound...]
    return rest[..<(rest.range(of: "\n.Sh ")?.lowerBound ?? rest.endIndex)]
  }

  /// Runs mandoc(1).
  private func mandoc(_ arguments: String...) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["mandoc"] + arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  @Test(arguments: pages)
  func `mandoc finds no fault in the manual`(page: String) throws {
    let found = try mandoc("-Tlint", "-W", "warning", Tree.root.appending(path: "packaging/man/\(page)").path)
    #expect(found.status == 0, "\(found.output)")
  }

  @Test func `all pages that are named exist, and SEE ALSO lists them`() throws {
    #expect(Self.pages.count >= 6)
    for page in Self.pages {
      let named = Set(references(try Tree.text("packaging/man/\(page)"))).subtracting([page])
      #expect(named.isSubset(of: Self.pages), "\(page)")
      let listed = references(try seeAlso(page))
      #expect(named.subtracting(listed).isEmpty, "\(page) refers to pages that its SEE ALSO lacks")
      for other in listed { #expect(references(try seeAlso(other)).contains(page), "\(page) is not in \(other)") }
      #expect(page == "identityd.8" || listed.contains("identityd.8"), "\(page)")
    }
    #expect(Set(references(try seeAlso("identityd.8"))).union(["identityd.8"]) == Set(Self.pages))
  }

  @Test(arguments: pages)
  func `SEE ALSO is sorted by section and name`(page: String) throws {
    let order = try seeAlso(page).split(separator: "\n").compactMap {
      String($0).firstMatch(of: /\.Xr (\S+) (\d)/).map { "\($0.2) \($0.1)" }
    }
    #expect(!order.isEmpty)
    #expect(order == order.sorted())
  }

  @Test(arguments: pages)
  func `a reference within a page names a section of the page`(page: String) throws {
    let lines = try Tree.lines("packaging/man/\(page)")
    let sections = Set(lines.compactMap { $0.firstMatch(of: /^\.S[hs] "?([^"]+)"?$/).map { String($0.1) } })
    #expect(sections.count > 5)
    for line in lines {
      guard let match = line.firstMatch(of: /^\.(?:P[qo] )?Sx "?([^"]+?)"?(?: [.,;:)]+)?$/) else { continue }
      #expect(sections.contains(String(match.1)), "\(line)")
    }
  }

  @Test(arguments: ["README.md", "Sources/identityd/identityd.docc/identityd.md"])
  func `every list of the manual has all pages`(path: String) throws {
    let text = try Tree.text(path)
    for page in Self.pages { #expect(text.contains("`\(Self.written(page))`"), "\(page)") }
  }

  @Test func `the manual describes every setting of a manifest`() throws {
    let page = try Tree.text("packaging/man/identityd.app.5")
    let table = try Tree.text("Sources/AppManifests/ManifestSetting.swift")
    let names = table.matches(of: /(?:name: |choice\()"([A-Za-z]+)"/).map { String($0.1) }
    #expect(names.count >= 6)
    for name in names { #expect(page.contains(".It Va \(name) Ns = Ns "), "\(name)") }
    let described = page.matches(of: #/\.It Va ([A-Za-z]+) Ns = Ns /#).map { String($0.1) }
    #expect(Set(described) == Set(names))
  }

  // MARK: Example clients

  private static let clients = ["client.sh", "client.py", "client.c"]

  /// Escapes a line so that the page shows it unchanged and it can be copied from there.
  private func escaped(_ line: Substring) -> String {
    let plain = String(line).replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("'", with: "\\(aq")
      .replacing("`", with: "\\(ga").replacing("^", with: "\\(ha").replacing("~", with: "\\(ti")
    return plain.hasPrefix(".") ? "\\&\(plain)" : plain
  }

  @Test(arguments: clients)
  func `an example client has less than 50 lines, and the manual shows it unchanged`(name: String) throws {
    let path = "packaging/man/identityd-protocol.7"
    let begin = ".\\\" BEGIN \(name)\n"
    let client = try Tree.text("packaging/examples/\(name)")
    let lines = client.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect(lines.count < 50 && client.hasSuffix("\n"))
    #expect(lines.allSatisfy { $0.count <= 120 })
    let block = ".Bd -literal\n" + lines.map { escaped($0) + "\n" }.joined() + ".Ed\n"
    let page = try Tree.text(path)
    let start = try #require(page.range(of: begin))
    let finish = try #require(page.range(of: ".\\\" END \(name)\n"))
    if ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_MANUAL"] != nil {
      let new = page[..<start.upperBound] + block + page[finish.lowerBound...]
      try Data(new.utf8).write(to: Tree.root.appending(path: path))
    } else {
      #expect(page[start.upperBound..<finish.lowerBound] == block, "run the tests once with IDENTITYD_UPDATE_MANUAL=1")
      let file = Tree.root.appending(path: path).path
      let shown = try mandoc("-T", "ascii", "-O", "width=200", file).output
      // mandoc indents the text of a page.
      let expected = lines.map { $0.isEmpty ? "\n" : "     \($0)\n" }.joined()
      #expect(shown.contains("\n" + expected), "what is shown is not the file")
    }
  }
}
