import Foundation
import Testing

/// Tests of the client library's documentation: its code must be code that LibraryTests compiles and runs.
struct LibraryDocumentationTests {
  private static let catalog = "Sources/IdentityClient/IdentityClient.docc"
  private static let compiled = "Tests/LibraryTests/Tutorial"

  @Test func `the tutorial shows all of the tested code and nothing else`() throws {
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

  @Test func `every code block in the articles is in a compiled file`() throws {
    let compiled = try Tree.files(below: Self.compiled, "swift").map { try Self.trimmed(Tree.lines($0)) }
    var blocks = 0
    for file in try Tree.files(below: "Sources/IdentityClient", "md", "swift") {
      // The files of the tutorial are compared as a whole.
      if file.contains("/Resources/") { continue }
      for block in Self.blocks(in: try Tree.lines(file)) {
        blocks += 1
        #expect(compiled.contains { Self.contains($0, block) }, "\(file): \(block)")
      }
    }
    #expect(blocks >= 4)
  }

  @Test func `every page and symbol that is named exists`() throws {
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

  @Test func `every public type is in the overview`() throws {
    let overview = try Tree.text("\(Self.catalog)/IdentityClient.md")
    for file in try Tree.files(below: "Sources/IdentityClient", "swift") where !file.contains(".docc/") {
      for match in try Tree.text(file).matches(of: #/(?m)^public (?:final class|struct|enum) ([A-Za-z]+)/#) {
        #expect(overview.contains("``\(match.1)``") || overview.contains("/\(match.1)``"), "\(match.1)")
      }
    }
  }

  /// The folder of this build's modules.
  private static let build = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

  /// Returns the output of a program of the toolchain.
  private func output(_ command: [String]) throws -> (status: Int32, text: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  @Test func `docc finds no fault in the documentation`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "docc-\(UUID().uuidString)")
    let symbols = folder.appending(path: "symbols")
    try FileManager.default.createDirectory(at: symbols, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let target = try output(["uname", "-m"]).text.trimmingCharacters(in: .whitespacesAndNewlines)
    let extracted = try output([
      "swift-symbolgraph-extract", "-module-name", "IdentityClient", "-I", Self.build.appending(path: "Modules").path,
      "-Xcc", "-fmodule-map-file=\(Self.build.appending(path: "CLinux.build/module.modulemap").path)",
      "-minimum-access-level", "public", "-target", "\(target)-unknown-linux-gnu", "-output-dir", symbols.path,
    ])
    #expect(extracted.status == 0, "\(extracted.text)")
    let converted = try output([
      "docc", "convert", Tree.root.appending(path: Self.catalog).path, "--additional-symbol-graph-dir", symbols.path,
      "--output-path", folder.appending(path: "out").path, "--fallback-display-name", "IdentityClient",
      "--fallback-bundle-identifier", "IdentityClient",
    ])
    #expect(converted.status == 0 && !converted.text.contains(/(warning|error):/), "\(converted.text)")
    #expect(FileManager.default.fileExists(atPath: folder.appending(path: "out/data/tutorials").path))
  }

  private static func trimmed(_ lines: [Substring]) -> [String] {
    lines.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  /// Returns the code blocks between fences, without comment marks.
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
