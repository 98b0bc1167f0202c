import Foundation
import TestSupport
import Testing

/// The examples and the table of faults in `identityd.app(5)`, tried with a real daemon.
struct ManifestManualTests {
  private static let page = Document.root.appending(path: "packaging/man/identityd.app.5")

  /// Starts the daemon with a folder of manifests, which `make` fills before the start.
  private func daemon(_ make: (URL) throws -> Void) throws -> (DaemonUnderTest, URL) {
    let daemon = try DaemonUnderTest()
    let folder = daemon.folder.appending(path: "apps")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try make(folder)
    return (try daemon.start(configuration: "[Apps]\nDirectories=\(folder.path)\n"), folder)
  }

  /// Returns the manifest faults that `status` shows.
  private func faults(_ daemon: DaemonUnderTest) throws -> [String] {
    try identityctl(daemon, "status").output.split(separator: "\n").filter { $0.hasPrefix("manifest-fault=") }
      .map { String($0.dropFirst("manifest-fault=".count)) }
  }

  @Test func `the example manifests of the manual are valid and install their apps`() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    let blocks = text.matches(of: /BEGIN MANIFEST (\S+)\n\.Bd[^\n]*\n((?:[^.][^\n]*\n)+)\.Ed\n/)
    #expect(blocks.count == 4)
    let (daemon, _) = try daemon { folder in
      for block in blocks {
        try Data(String(block.2).utf8).write(to: folder.appending(path: "\(block.1).app"))
      }
    }
    #expect(try faults(daemon) == [])
    if isRoot {
      let apps = try identityctl(daemon, "app", "list").output.split(separator: "\n").map(String.init)
      #expect(apps == blocks.map { String($0.1) }.sorted())
    }
  }

  @Test func `the manual's table of faults matches the daemon's messages`() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    let start = try #require(text.range(of: "The messages, each after the path of the file:\n"))
    let finish = try #require(text.range(of: ".El", range: start.upperBound..<text.endIndex))
    let rows = text[start.upperBound..<finish.lowerBound].matches(of: /\.It (?:Ql )?(.+)\n(.+)/).map {
      (String($0.1), String($0.2))
    }
    #expect(rows.count == 8)
    let (daemon, folder) = try daemon { folder in
      for (number, row) in rows.enumerated() {
        let file = folder.appending(path: "app\(number).app")
        switch row.0 {
        case "an empty file": try Data().write(to: file)
        case "a dangling link":
          try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/nonexistent")
        default: try Data("[App]\n\(row.0)\n".utf8).write(to: file)
        }
      }
    }
    let said = rows.enumerated().map { number, row in
      "\(folder.path)/app\(number).app" + row.1.replacing("\\(aq", with: "'").replacing("\\-", with: "-")
    }
    #expect(try faults(daemon).sorted() == said.sorted())
  }
}
