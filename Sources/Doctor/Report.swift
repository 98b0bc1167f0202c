import IdentityWire

/// The findings of all checks, in the order of the table.
package struct Report: Sendable {
  private let findings: [(name: String, finding: Finding)]
  /// The user who reads the report; root needs no `sudo`.
  private let userID: UInt32

  /// Creates a report for a user.
  package init(_ findings: [(name: String, finding: Finding)], for userID: UInt32) {
    self.findings = findings
    self.userID = userID
  }

  /// Whether no check failed. Warnings do not count.
  package var isGood: Bool { !findings.contains { $0.finding.result == .failed } }

  /// Returns the number of checks with a result.
  package func count(of result: Finding.Result) -> Int { findings.count { $0.finding.result == result } }

  // MARK: Text

  /// The report as text: a line per check, then each fault with its cause and the commands that repair it.
  package var text: String {
    let width = findings.map(\.name.count).max() ?? 0
    let lines = findings.map { name, finding in
      let reason = finding.result == .skipped ? "  \(WordEncoder.visible(finding.reason ?? ""))" : ""
      return "\(name)\(String(repeating: " ", count: width - name.count))  \(finding.result.rawValue)\(reason)\n"
    }
    let faults = findings.flatMap { name, finding in
      finding.faults.map { fault in
        let head = "\n\(name) \(fault.isWarning ? "warning" : "failed"): \(WordEncoder.visible(fault.cause))\n"
        return head + fault.mend.map { "    \($0.text(for: userID))\n" }.joined()
      }
    }
    return (lines + faults).joined()
  }

  // MARK: JSON

  /// The report as one JSON document (RFC 8259) and a line feed.
  ///
  /// The document is `{"ok":true,"checks":[{"name":…,"result":…,"cause":…,"mend":…,"facts":{…}}]}`. The cause of a
  /// skipped check is the reason. The causes of several faults are joined by semicolons, and their commands by `&&`. A
  /// check without faults has null as cause and mend.
  package var json: String {
    let quoted = WordEncoder.quoted
    let checks = findings.map { name, finding in
      let result = finding.result
      let causes = result == .skipped ? [finding.reason ?? ""] : finding.faults.map(\.cause)
      let mends = finding.faults.flatMap(\.mend).map { $0.text(for: userID) }
      let facts = finding.facts.map { "\(quoted($0.name)):\(quoted($0.value))" }.joined(separator: ",")
      return "{\"name\":\(quoted(name)),\"result\":\(quoted(result.rawValue)),\"cause\":\(joined(causes, "; ")),"
        + "\"mend\":\(joined(mends, " && ")),\"facts\":{\(facts)}}"
    }
    return "{\"ok\":\(isGood),\"checks\":[\(checks.joined(separator: ","))]}\n"
  }

  private func joined(_ texts: [String], _ separator: String) -> String {
    texts.isEmpty ? "null" : WordEncoder.quoted(texts.joined(separator: separator))
  }
}
