import Foundation
import TestSupport
import Testing

/// Checks of the documents: a test runs each command, links lead somewhere, and the README is short.
struct DocumentCoverageTests {
  /// The sections of the manual page in which a test runs each command.
  private static let sections: Set = ["OPERATIONS", "GUARANTEES"]
  private static let markdown = [Document.File.readme, .tour, .development]

  /// The test files that read a block from a document and run it, keyed by the name of the block.
  private static let takers = [
    "library": "Tests/LibraryTests/DocumentExampleTests.swift",
    "debugger": "Tests/EndToEndTests/Peers/DebuggerTests.swift",
    "fleet": "Tests/EndToEndTests/Fleet/FleetDocumentTests.swift",
    "build": "Tests/SystemTests/Packages/RunScriptTests.swift",
    "client": "Tests/EndToEndTests/Documents/DocumentTests.swift",
    "installation": "Tests/SystemTests/Packages/DocumentTests.swift",
    "copy": "Tests/SystemTests/Packages/DocumentTests.swift",
    "return of a copy": "Tests/SystemTests/Packages/DocumentTests.swift",
    "start over": "Tests/SystemTests/Packages/DocumentTests.swift",
    "image": "Tests/SystemTests/Packages/DocumentTests.swift",
    "metrics": "Tests/SystemTests/Packages/DocumentTests.swift",
    "mounted image": "Tests/SystemTests/Service/ResetTests.swift",
    "uses": "Tests/EndToEndTests/Apps/UseTests.swift",
    "swift": "Tests/LibraryTests/DocumentExampleTests.swift",
    "checks": "Tests/SystemTests/Checks/CheckTimerTests.swift",
    "findings": "Tests/SystemTests/Checks/CheckTimerTests.swift",
  ]
  /// The files that contain a command as a whole line, keyed by the command.
  private static let runners = ["packaging/test --times": ".ci/run"]
  /// Commands that take too long for a test, or need a person, each with a file that must mention the command.
  private static let byHand = [
    "packaging/tools/build-rpm": "packaging/test", "packaging/test --long": "packaging/test",
    "packaging/test": ".ci/run", "packaging/test --planted": "packaging/test",
    "packaging/test --quick": "packaging/test",
    "packaging/test --quick VersionTests": "packaging/test",
    "packaging/tools/bench": "packaging/tools/bench",
    "packaging/tools/bench neighbour": "packaging/tools/benchmarks/IdentityBench/Program.swift",
    "packaging/tools/bench limit --sync-delay=100": "packaging/tools/benchmarks/IdentityBench/Program.swift",
    "LD_LIBRARY_PATH=FOLDER packaging/test --quick BrokerConnectionTests ProtectionTests FleetServiceTests":
      "packaging/test",
    "swift build": "packaging/tools/prerequisites.sh",
  ]

  /// Returns the text of a file, given by its path from the root.
  private static func text(_ path: String) throws -> String {
    try String(contentsOf: Document.root.appending(path: path), encoding: .utf8)
  }

  /// Returns the lines without indentation, and without empty lines.
  private static func unindented(_ text: String) -> String {
    text.split(separator: "\n").map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }.joined(separator: "\n")
  }

  // MARK: Commands

  @Test(arguments: Document.File.allCases)
  func `a test runs each block`(file: Document.File) throws {
    for block in try Document(file).blocks {
      let place = "\(file.rawValue):\(block.line)"
      if block.language == "console" {
        #expect(DocumentTests.sessions.contains(file), "\(place): nothing runs this session")
        continue
      }
      // Of the manual page, the other sections have blocks that no test runs.
      if file == .manual, block.name == nil, !Self.sections.contains(block.section) { continue }
      let name = try #require(block.name, "\(place): no comment says what tests it")
      let taker = try #require(Self.takers[name], "\(place): nothing tests '\(name)'")
      let text = try Self.text(taker)
      // The test has a copy of code to compile, line by line. All other blocks are read from the document.
      let isTaken =
        switch block.language {
        case "swift": Self.unindented(text).contains(Self.unindented(block.lines.joined(separator: "\n")))
        case "sh": text.contains("Document(.\(file)).commands(of: \"\(name)\")")
        default: text.contains("Document(.\(file)).blocks.filter { $0.language == \"\(block.language)\" }")
        }
      #expect(isTaken, "\(taker) does not run '\(name)' of \(file.rawValue)")
    }
  }

  @Test func `the documents have every block that a test takes, once`() throws {
    let names = try Document.File.allCases.flatMap { try Document($0).blocks.compactMap(\.name) }
    #expect(names.sorted() == Self.takers.keys.sorted())
  }

  @Test func `a test runs each command of the OPERATIONS section`() throws {
    let reader = try Self.text("Tests/SystemTests/Packages/DocumentTests.swift")
    #expect(reader.contains("Document(.manual).commands(below: \"OPERATIONS\")"))
    let commands = try Document(.manual).commands(below: "OPERATIONS")
    #expect(!commands.isEmpty)
  }

  @Test(arguments: Document.File.allCases)
  func `a test runs each command within the text`(file: Document.File) throws {
    let taken = try Set(Document(.manual).commands(below: "OPERATIONS"))
    let documents = try Document.File.allCases.map { try Document($0) }
    let steps = documents.flatMap(\.steps).map(\.command)
    let scripts = documents.flatMap { document in
      document.blocks.compactMap(\.name).flatMap { document.commands(of: $0) }
    }
    for mention in try Document(file).mentions {
      if file == .manual, !Self.sections.contains(mention.section) { continue }
      let command = mention.command
      if taken.contains(command) || scripts.contains(command) { continue }
      if steps.contains(where: { $0.contains(command) }) { continue }
      if let runner = Self.runners[command] {
        let isThere = try Self.text(runner).components(separatedBy: "\n").contains(command)
        #expect(isThere, "\(runner)")
      } else {
        let path = try #require(
          Self.byHand[command], "\(file.rawValue):\(mention.line): nothing runs '\(command)'")
        // The file must contain the first argument, or the whole command if there is none.
        let word = command.split(separator: " ").dropFirst().first ?? command[...]
        let isKnown = try Self.text(path).contains(word)
        #expect(isKnown, "\(path) does not know \(word)")
      }
    }
  }

  @Test(arguments: markdown)
  func `no command hides in an indented line, or between two lines`(file: Document.File) throws {
    var isInBlock = false
    for (index, line) in try Document(file).lines.enumerated() {
      let place = "\(file.rawValue):\(index + 1)"
      if line.drop(while: { $0 == " " }).hasPrefix("```") {
        isInBlock.toggle()
      } else if !isInBlock {
        #expect(!line.hasPrefix("    "), "\(place)")
        #expect(line.filter { $0 == "`" }.count.isMultiple(of: 2), "\(place): text between backquotes is on one line")
      }
    }
    #expect(!isInBlock)
  }

  // MARK: Text

  @Test func `the README has at most 600 words outside of code blocks`() throws {
    let prose = try Document(.readme).prose
    let words = prose.flatMap { $0.split(separator: " ") }
    #expect(words.count > 100)
    #expect(words.count <= 600)
  }

  @Test(arguments: markdown)
  func `what a document points to is there`(file: Document.File) throws {
    let folder = file.url.deletingLastPathComponent()
    let catalog = Document.File.tour.url.deletingLastPathComponent()
    let articles = FileManager.default.enumerator(atPath: catalog.path)?.compactMap { $0 as? String } ?? []
    let text = try Self.text(file.rawValue)
    for match in text.matches(of: /\]\(([^)#:]+)\)/) {
      #expect(FileManager.default.fileExists(atPath: folder.appending(path: match.1).path), "\(match.1)")
    }
    for match in text.matches(of: /<doc:([A-Za-z0-9-]+)>/) {
      #expect(articles.contains { $0 == "\(match.1).md" || $0.hasSuffix("/\(match.1).md") }, "\(match.1)")
    }
  }

  @Test func `the README points to every manual page`() throws {
    let text = try Self.text("README.md")
    let folder = Document.root.appending(path: "packaging/man")
    for page in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let citation = "\(page.dropLast(2))(\(page.suffix(1)))"
      #expect(text.contains("[`\(citation)`](packaging/man/\(page))"), "\(page)")
    }
  }

  @Test func `the table of folders has every folder`() throws {
    let text = try Self.text(Document.File.development.rawValue)
    for folder in ["Sources", "packaging", "packaging/tools"] {
      for name in try FileManager.default.contentsOfDirectory(atPath: Document.root.appending(path: folder).path) {
        let isBesides = ["link", "debian", "prerequisites.sh"].contains(name) || name.hasPrefix("C")
        #expect(isBesides || text.contains(name.split(separator: ".")[0]), "\(folder)/\(name)")
      }
    }
  }
}
