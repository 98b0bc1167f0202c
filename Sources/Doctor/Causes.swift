/// A fault in a report, with the check that found it and the check that found its cause.
package struct ReportedFault: Equatable, Sendable {
  /// The name of the check.
  package let check: String
  /// The fault.
  package let fault: Finding.Fault
  /// The name of the check that found the cause of this fault; nil if the fault is a cause itself.
  package let symptomOf: String?

  /// The commands that repair the fault; none for a symptom, because the repair of its cause ends it.
  package var mend: [Remedy] { symptomOf == nil ? fault.mend : [] }

  /// Returns all faults of a report in the order of reading: first the failures, then the warnings, then the remarks, each
  /// followed by its symptoms.
  ///
  /// - Parameter findings: The findings by the name of their check, in the order of the table.
  package static func ordered(_ findings: [(name: String, finding: Finding)]) -> [ReportedFault] {
    let all = findings.flatMap { name, finding in finding.faults.map { (check: name, fault: $0) } }
    let origins = all.indices.map { origin(of: $0, among: all.map(\.fault)) }
    let causes = all.indices.filter { origins[$0] == $0 }
    let order: [Finding.Result] = [.failed, .warning, .info]
    let sorted = order.flatMap { result in causes.filter { all[$0].fault.result == result } }
    return sorted.flatMap { cause in
      let symptoms = all.indices.filter { origins[$0] == cause && $0 != cause }
      return ([cause] + symptoms).map { index in
        ReportedFault(
          check: all[index].check, fault: all[index].fault, symptomOf: index == cause ? nil : all[cause].check)
      }
    }
  }

  /// Returns the index of the fault from which a fault follows, directly or through others: its own if there is none.
  private static func origin(of index: Int, among faults: [Finding.Fault]) -> Int {
    guard let effect = faults[index].effect else { return index }
    let cause = faults.firstIndex { other in
      other.consequences.contains(effect) && other.effect.map { $0 < effect } ?? true
    }
    // The recursion ends, because the effect of each cause precedes that of its consequence.
    return cause.map { origin(of: $0, among: faults) } ?? index
  }
}
