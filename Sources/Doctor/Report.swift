import IdentityCore
import IdentityWire
import LinuxSystem

/// The findings of all checks, in the order of the table, and their faults in the order of reading.
package struct Report: Sendable {
  private let findings: [(check: Check, finding: Finding)]
  private let faults: [ReportedFault]
  /// The user who reads the report; root needs no `sudo`.
  private let userID: UInt32

  package init(_ findings: [(check: Check, finding: Finding)], for userID: UInt32) {
    self.findings = findings
    faults = ReportedFault.ordered(findings.map { ($0.check.name, $0.finding) })
    self.userID = userID
  }

  /// Whether no check failed. Warnings and remarks do not count.
  package var isGood: Bool { !findings.contains { $0.finding.result == .failed } }

  /// Returns the number of checks with a result.
  package func count(of result: Finding.Result) -> Int { findings.count { $0.finding.result == result } }

  /// Returns the check that found the cause of all faults of a check; nil if one of them is a cause itself.
  private func origin(of name: String) -> String? {
    let own = faults.filter { $0.check == name }
    return own.contains { $0.symptomOf == nil } ? nil : own.first?.symptomOf
  }

  // MARK: Text

  /// Returns the report as text: a line per check, then each cause with the commands that repair it, and its symptoms.
  ///
  /// - Parameter wrapped: breaks a paragraph into lines, and adds the last line feed.
  package func text(isColoured: Bool, wrapped: (String) -> String) -> String {
    func shown(_ text: String, _ emphasis: Emphasis) -> String { emphasis.applied(to: text, isColoured: isColoured) }
    func shown(_ result: Finding.Result) -> String { shown(result.rawValue, result.emphasis) }
    let width = findings.map(\.check.name.count).max() ?? 0
    let lines = findings.map { check, finding in
      let name = check.name
      let note = finding.result == .skipped ? finding.reason : origin(of: name).map { "symptom of \($0)" }
      let end = note.map { "  \(shown(WordEncoder.visible($0), .faint))" } ?? ""
      return "\(name)\(String(repeating: " ", count: width - name.count))  \(shown(finding.result))\(end)\n"
    }
    let paragraphs = faults.map { reported in
      let origin = reported.symptomOf.map { "symptom of \($0): " } ?? ""
      let result = reported.fault.result
      let text = wrapped("\(origin)\(reported.check) \(result.rawValue): \(WordEncoder.visible(reported.fault.cause))")
        .replacing(
          "\(reported.check) \(result.rawValue):", with: "\(reported.check) \(shown(result)):", maxReplacements: 1)
      return (origin.isEmpty ? "\n" : "") + text
        + reported.mend.map { "    \(shown($0.text(for: userID), .bold))\n" }.joined()
    }
    return (lines + paragraphs).joined()
  }

  // MARK: JSON

  /// The report as one JSON document (RFC 8259) and a line feed. The JSON Schema of identityctl declares its names and types.
  ///
  /// A check has the reason why it was skipped. The findings are the faults in the order of the text, each with the
  /// commands that repair it. A symptom has no commands. A value that does not exist is null.
  package var json: String {
    let checks = findings.map { check, finding in
      var facts = JSONObject()
      for fact in finding.facts { facts.add(fact.name, json(of: fact.value, check.kind(of: fact.name))) }
      var object = JSONObject()
      object.add("name", quoted(check.name))
      object.add("result", quoted(finding.result.rawValue))
      object.add("reason", quoted(finding.result == .skipped ? finding.reason : nil))
      object.add("facts", facts.text)
      return object.text
    }
    let reported = faults.map { reported in
      var object = JSONObject()
      object.add("check", quoted(reported.check))
      object.add("result", quoted(reported.fault.result.rawValue))
      object.add("cause", quoted(reported.fault.cause))
      object.add("symptom-of", quoted(reported.symptomOf))
      object.add("mend", JSONObject.array(reported.mend.map { quoted($0.text(for: userID)) }))
      return object.text
    }
    var document = JSONObject()
    document.add("ok", isGood ? "true" : "false")
    document.add("checks", JSONObject.array(checks))
    document.add("findings", JSONObject.array(reported))
    return document.text + "\n"
  }

  private func json(of value: Finding.Fact.Value, _ kind: Verb.Field.Kind) -> String {
    switch value {
    case .text(let text): kind.json(of: Text(text))
    case .list(let texts): JSONObject.array(texts.map { quoted($0) })
    }
  }

  private func quoted(_ text: String?) -> String { text.map { WordEncoder.quoted($0) } ?? "null" }
}

extension Finding.Result {
  /// The emphasis of the result for people.
  fileprivate var emphasis: Emphasis {
    switch self {
    case .ok, .info: .green
    case .warning: .yellow
    case .failed: .red
    case .skipped: .faint
    }
  }
}
