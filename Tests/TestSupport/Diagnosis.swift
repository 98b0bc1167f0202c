/// The output of `identityctl check --json`.
package struct Diagnosis: Decodable, Sendable {
  /// The result of one check.
  package struct Entry: Decodable, Sendable {
    /// See `identityctl(1)`, also for the other fields.
    package let name: String
    package let result: String
    package let cause: String?
    package let mend: String?
    package let symptomOf: String?
    package let facts: [String: String]

    private enum CodingKeys: String, CodingKey {
      case name, result, cause, mend, facts
      case symptomOf = "symptom-of"
    }
  }

  /// One fault, or several that a check reports together.
  package struct Finding: Decodable, Sendable {
    /// See `identityctl(1)`, also for the other fields.
    package let check: String
    package let result: String
    package let cause: String?
    package let mend: String?
    package let symptomOf: String?

    private enum CodingKeys: String, CodingKey {
      case check, result, cause, mend
      case symptomOf = "symptom-of"
    }
  }

  /// There is no check with this name.
  package struct Missing: Error {
    /// The name asked for. ``known`` has the names of all checks.
    package let name: String
    package let known: [String]
  }

  /// Whether no check failed.
  package let ok: Bool
  /// The checks in the order of their table.
  package let checks: [Entry]
  /// The faults in the order of reading: each cause, then its symptoms.
  package let findings: [Finding]

  /// Returns the check with a name.
  package subscript(name: String) -> Entry {
    get throws {
      guard let entry = checks.first(where: { $0.name == name }) else {
        throw Missing(name: name, known: checks.map(\.name))
      }
      return entry
    }
  }
}

/// A part of the output that may name commands for a repair.
package protocol Repairable {
  /// The commands, joined by `&&`; nil if there are none.
  var mend: String? { get }
}

extension Diagnosis.Entry: Repairable {}
extension Diagnosis.Finding: Repairable {}

extension Repairable {
  /// Returns the repair command in the form for root: without `sudo`, and with the value for `COPY` filled in.
  ///
  /// - Returns: nil if the check names no repair.
  package func command(copy: String = "") -> String? {
    mend?.replacing("sudo ", with: "").replacing("COPY", with: copy)
  }
}
