/// The output of `identityctl check --json`.
package struct Diagnosis: Decodable, Sendable {
  /// The result of one check.
  package struct Entry: Decodable, Sendable {
    /// See `identityctl(1)`, also for the other fields.
    package let name: String
    package let result: String
    package let reason: String?
    package let facts: [String: Fact]
    /// The faults of the check.
    package fileprivate(set) var findings: [Finding] = []

    private enum CodingKeys: String, CodingKey { case name, result, reason, facts }

    /// The causes of all faults, joined by semicolons, or the reason of a skipped check. Nil without a fault.
    package var cause: String? { findings.isEmpty ? reason : findings.map(\.cause).joined(separator: "; ") }
    /// The commands for all faults.
    package var commands: [String] { findings.flatMap(\.commands) }
    /// The check that found the cause of all faults. Nil if one of them is a cause itself.
    package var symptomOf: String? { findings.contains { $0.symptomOf == nil } ? nil : findings.first?.symptomOf }
  }

  /// The value of a fact.
  package enum Fact: Decodable, Equatable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
  {
    case text(String)
    case number(Int)
    case flag(Bool)
    case list([String])

    package init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Int.self) {
        self = .number(number)
      } else if let list = try? container.decode([String].self) {
        self = .list(list)
      } else {
        self = .text(try container.decode(String.self))
      }
    }

    package init(stringLiteral text: String) { self = .text(text) }
    package init(integerLiteral number: Int) { self = .number(number) }
    package init(booleanLiteral flag: Bool) { self = .flag(flag) }

    /// The text; nil if the value has another type.
    package var text: String? {
      if case .text(let text) = self { text } else { nil }
    }
  }

  /// One fault.
  package struct Finding: Decodable, Sendable {
    /// See `identityctl(1)`, also for the other fields.
    package let check: String
    package let result: String
    package let cause: String
    package let commands: [String]
    package let symptomOf: String?

    private enum CodingKeys: String, CodingKey {
      case check, result, cause
      case commands = "mend"
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
  package private(set) var checks: [Entry]
  /// The faults in the order of reading: each cause, then its symptoms.
  package let findings: [Finding]

  private enum CodingKeys: String, CodingKey { case ok, checks, findings }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    ok = try container.decode(Bool.self, forKey: .ok)
    findings = try container.decode([Finding].self, forKey: .findings)
    checks = try container.decode([Entry].self, forKey: .checks)
    for index in checks.indices { checks[index].findings = findings.filter { $0.check == checks[index].name } }
  }

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
  /// The commands, in order.
  var commands: [String] { get }
}

extension Diagnosis.Entry: Repairable {}
extension Diagnosis.Finding: Repairable {}

extension Repairable {
  /// The commands, joined by `&&`; nil if there are none.
  package var mend: String? { commands.isEmpty ? nil : commands.joined(separator: " && ") }

  /// Returns the repair command in the form for root: without `sudo`, and with the value for `COPY` filled in.
  ///
  /// - Returns: nil if the check names no repair.
  package func command(copy: String = "") -> String? {
    mend?.replacing("sudo ", with: "").replacing("COPY", with: copy)
  }
}
