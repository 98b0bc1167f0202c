import Foundation
import Testing

/// The tags by which the scripts select suites.
struct SuiteTagTests {
  private static let declarations = "Tests/TestSupport/Tags.swift"
  private static let scripts = ["packaging/test", "packaging/tools/lanes.sh"]

  /// The tags in the table of declarations.
  private func declared() throws -> Set<String> {
    Set(try Tree.text(Self.declarations).matches(of: /@Tag package static var (\w+): Self/).map { String($0.1) })
  }

  /// The scripts look for a tag in the sources, and take the name of the file for that of the suite.
  @Test func `each file with a tagged suite has the name of the suite`() throws {
    var used: Set<String> = []
    for file in try Tree.files(below: "Tests", "swift") where !file.hasPrefix("Tests/LayoutTests/") {
      for match in try Tree.text(file).matches(of: /\.tags\(([^)]*)\)/) {
        used.formUnion(match.1.matches(of: /\w+/).map { String($0.0) })
        let suite = try Tree.text(file)[match.range.upperBound...].firstMatch(of: /struct (\w+)/)?.1
        #expect(suite.map(String.init) == URL(filePath: file).deletingPathExtension().lastPathComponent, "\(file)")
      }
    }
    #expect(try used == declared())
  }

  @Test func `the scripts select by each tag, and by no other`() throws {
    let selected = try Self.scripts.flatMap { script in
      try Tree.text(script).matches(of: /\$\((?:tagged|suites_with) (\w+)\)|threaded_suites (\w+)\b/).map { match in
        String(match.1 ?? match.2 ?? "")
      }
    }
    #expect(try Set(selected) == declared())
  }
}
