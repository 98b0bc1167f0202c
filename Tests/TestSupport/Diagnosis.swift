/// What `identityctl check --json` wrote.
package struct Diagnosis: Decodable, Sendable {
  /// One check.
  package struct Entry: Decodable, Sendable {
    /// See `identityctl(1)`, as all else.
    package let name: String
    package let result: String
    package let cause: String?
    package let mend: String?
    package let facts: [String: String]
  }

  /// There is no check of this name.
  package struct Missing: Error {
    /// The name, and those that there are.
    package let name: String
    package let known: [String]
  }

  /// Whether nothing failed.
  package let ok: Bool
  /// In the order of the table.
  package let checks: [Entry]

  /// The check of a name.
  package subscript(name: String) -> Entry {
    get throws {
      guard let entry = checks.first(where: { $0.name == name }) else {
        throw Missing(name: name, known: checks.map(\.name))
      }
      return entry
    }
  }
}

extension Diagnosis.Entry {
  /// What mends it, as root runs it: a person's `sudo`, and the words that only a person knows, are put in.
  ///
  /// - Returns: nil where nothing is said to mend it.
  package func command(copy: String = "") -> String? {
    mend?.replacing("sudo ", with: "").replacing("COPY", with: copy)
  }
}
