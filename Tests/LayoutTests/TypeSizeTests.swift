import Foundation
import Testing

/// The sizes that a type keeps, so that a reader can hold it in mind.
struct TypeSizeTests {
  /// A type with its body.
  private struct Declaration {
    let name: String
    let lines: ArraySlice<Substring>

    /// The lines that are not within a member.
    var members: [Substring] {
      var depth = 0
      return lines.filter { line in
        defer { depth += line.count { $0 == "{" } - line.count { $0 == "}" } }
        return depth == 0
      }
    }
  }

  /// Returns the types of a file, those within others included.
  private func declarations(_ file: String) throws -> [Declaration] {
    let lines = try Tree.lines(file)
    return lines.indices.compactMap { start in
      let line = lines[start]
      guard let match = line.firstMatch(of: /^ *(?:[a-z@]+ )*(?:class|struct|actor) ([A-Za-z]+)[^()]*\{$/) else {
        return nil
      }
      let indent = line.prefix { $0 == " " }
      guard let end = lines[start...].firstIndex(where: { $0 == "\(indent)}" }) else { return nil }
      return Declaration(name: "\(file): \(match.1)", lines: lines[(start + 1)..<end])
    }
  }

  private let stored = /^ *(?:[a-z@]+(?:\([a-z]+\))? )*(?:let|var) [a-zA-Z`]/

  @Test func `no type has more than fifteen stored properties`() throws {
    var found = 0
    for file in try Tree.files(below: "Sources", "swift") {
      for declaration in try declarations(file) {
        let count = declaration.members.count { line in
          guard line.contains(stored), !line.contains("static ") else { return false }
          // A computed property begins a body, or has it on its line. An observer comes after a value.
          return !line.contains("{") || line.contains(" = ") || line.contains("didSet")
        }
        #expect(count <= 15, "\(declaration.name) has \(count)")
        found += count
      }
    }
    #expect(found > 1_000)
  }

  @Test func `no initialiser has more than six arguments without a label`() throws {
    var found = 0
    for file in try Tree.files(below: "Sources", "swift") {
      let text = try Tree.lines(file).joined(separator: "\n")
      for initialiser in text.matches(of: /\binit\(([^{]*)/) {
        let count = initialiser.1.matches(of: /(?:^|[,(\n])\s*_ [a-z]/).count
        #expect(count <= 6, "\(file): \(initialiser.1)")
        found += count
      }
    }
    #expect(found > 400)
  }
}
