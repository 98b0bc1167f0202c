import IdentityWire

/// The findings of all checks, in the order of the table, and their faults in the order of reading.
package struct Report: Sendable {
  private let findings: [(name: String, finding: Finding)]
  private let faults: [ReportedFault]
  /// The user who reads the report; root needs no `sudo`.
  private let userID: UInt32

  /// Creates a report for a user.
  package init(_ findings: [(name: String, finding: Finding)], for userID: UInt32) {
    self.findings = findings
    faults = ReportedFault.ordered(findings)
    self.userID = userID
  }

  /// Whether no check failed. Warnings do not count.
  package var isGood: Bool { !findings.contains { $0.finding.result == .failed } }

  /// Returns the number of checks with a result.
  package func count(of result: Finding.Result) -> Int { findings.count { $0.finding.result == result } }

  /// Returns the check that found the cause of all faults of a check; nil if one of them is a cause itself.
  private func origin(of name: String) -> String? {
    let own = faults.filter { $0.check == name }
    return own.contains { $0.symptomOf == nil } ? nil : own.first?.symptomOf
  }

  // MARK: Text

  /// The report as text: a line per check, then each cause with the commands that repair it, and its symptoms.
  package var text: String {
    let width = findings.map(\.name.count).max() ?? 0
    let lines = findings.map { name, finding in
      let note = finding.result == .skipped ? finding.reason : origin(of: name).map { "symptom of \($0)" }
      let end = note.map { "  \(WordEncoder.visible($0))" } ?? ""
      return "\(name)\(String(repeating: " ", count: width - name.count))  \(finding.result.rawValue)\(end)\n"
    }
    let paragraphs = faults.map { reported in
      let result = reported.fault.result.rawValue
      let text = "\(reported.check) \(result): \(WordEncoder.visible(reported.fault.cause))\n"
      if let origin = reported.symptomOf { return "symptom of \(origin): \(text)" }
      return "\n" + text + reported.mend.map { "    \($0.text(for: userID))\n" }.joined()
    }
    return (lines + paragraphs).joined()
  }

  // MARK: JSON

  /// The report as one JSON document (RFC 8259) and a line feed.
  ///
  /// The document is `{"ok":true,"checks":[{"name":…,"result":…,"cause":…,"mend":…,"symptom-of":…,"facts":{…}}],
  /// "findings":[{"check":…,"result":…,"cause":…,"mend":…,"symptom-of":…}]}`. The findings are the faults in the order of
  /// the text. A check has all its faults together: their causes joined by semicolons, and their commands by `&&`. The
  /// cause of a skipped check is the reason. A value that does not exist is null.
  package var json: String {
    let checks = findings.map { name, finding in
      let own = faults.filter { $0.check == name }
      let causes = finding.result == .skipped ? [finding.reason ?? ""] : finding.faults.map(\.cause)
      let facts = finding.facts.map { "\(quoted($0.name)):\(quoted($0.value))" }.joined(separator: ",")
      return "{\"name\":\(quoted(name)),"
        + members(finding.result, causes, own.flatMap(\.mend), origin(of: name)) + ",\"facts\":{\(facts)}}"
    }
    let reported = faults.map { fault in
      "{\"check\":\(quoted(fault.check)),"
        + members(fault.fault.result, [fault.fault.cause], fault.mend, fault.symptomOf) + "}"
    }
    return "{\"ok\":\(isGood),\"checks\":[\(checks.joined(separator: ","))],"
      + "\"findings\":[\(reported.joined(separator: ","))]}\n"
  }

  private func members(_ result: Finding.Result, _ causes: [String], _ mend: [Remedy], _ origin: String?) -> String {
    "\"result\":\(quoted(result.rawValue)),\"cause\":\(joined(causes, "; ")),"
      + "\"mend\":\(joined(mend.map { $0.text(for: userID) }, " && ")),\"symptom-of\":\(origin.map(quoted) ?? "null")"
  }

  private func quoted(_ text: String) -> String { WordEncoder.quoted(text) }

  private func joined(_ texts: [String], _ separator: String) -> String {
    texts.isEmpty ? "null" : quoted(texts.joined(separator: separator))
  }
}
