/// What one check found.
package struct Finding: Equatable, Sendable {
  /// How it stands. The names are what `--json` has, and never change.
  package enum Result: String, Sendable {
    case ok
    /// It works, and should be otherwise.
    case warning
    /// It does not work, or what works is not safe.
    case failed
    /// It could not be looked at.
    case skipped
  }

  /// One thing that is wrong.
  package struct Fault: Equatable, Sendable {
    /// Whether it only should be otherwise.
    package let isWarning: Bool
    /// What is wrong, without a full stop.
    package let cause: String
    /// What mends it, to be run in this order; where only people can, what shows them more.
    package let mend: [Remedy]

    /// Something that does not work.
    static func failure(_ cause: String, _ mend: Remedy...) -> Fault {
      Fault(isWarning: false, cause: cause, mend: mend)
    }

    /// Something that works, and should be otherwise.
    static func warning(_ cause: String, _ mend: Remedy...) -> Fault {
      Fault(isWarning: true, cause: cause, mend: mend)
    }
  }

  /// Something that was found out, for programs.
  package struct Fact: Equatable, Sendable {
    /// In lower case, with hyphens.
    package let name: String
    /// As it came.
    package let value: String

    init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// What is wrong.
  package let faults: [Fault]
  /// Why something could not be looked at; nil where everything was.
  package let reason: String?
  /// What was found out.
  package let facts: [Fact]

  /// Puts one together.
  init(_ faults: [Fault] = [], skipped reason: String? = nil, facts: [Fact] = []) {
    self.faults = faults
    self.reason = reason
    self.facts = facts
  }

  /// The worst of the faults; without any, whether everything could be looked at.
  package var result: Result {
    if faults.contains(where: { !$0.isWarning }) { return .failed }
    if !faults.isEmpty { return .warning }
    return reason == nil ? .ok : .skipped
  }
}

/// What was found out, put together: values that are not known are left out.
func facts(_ pairs: (String, String?)...) -> [Finding.Fact] {
  pairs.compactMap { name, value in value.map { Finding.Fact(name, $0) } }
}
