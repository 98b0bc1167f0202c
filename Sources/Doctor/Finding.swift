/// The finding of one check.
package struct Finding: Equatable, Sendable {
  /// The result of a check. The names appear in `--json` and never change.
  package enum Result: String, CaseIterable, Sendable {
    case ok
    /// The subject works as installed. Another choice exists that some machines need.
    case info
    /// The subject works, but something about it should be changed.
    case warning
    /// The subject does not work, or is not safe.
    case failed
    /// The subject, or a part of it, could not be examined.
    case skipped
  }

  /// A fault that a check found.
  package struct Fault: Equatable, Sendable {
    /// The severity of the fault alone.
    package let result: Result
    /// The cause, without a full stop.
    package let cause: String
    /// The commands that repair the fault, in order. If only people can repair it, the commands show more about it.
    package let mend: [Remedy]
    /// The effect that the fault consists of; nil if no other fault can bring it about.
    package private(set) var effect: Effect?
    /// The effects that the fault brings about.
    package private(set) var consequences: Set<Effect> = []

    /// Creates a fault that fails the check.
    static func failure(_ cause: String, _ mend: Remedy...) -> Fault { failure(cause, mend: mend) }

    /// Creates a fault that fails the check.
    static func failure(_ cause: String, mend: [Remedy]) -> Fault { Fault(result: .failed, cause: cause, mend: mend) }

    /// Creates a fault that is only a warning.
    static func warning(_ cause: String, _ mend: Remedy...) -> Fault { warning(cause, mend: mend) }

    /// Creates a fault that is only a warning.
    static func warning(_ cause: String, mend: [Remedy]) -> Fault { Fault(result: .warning, cause: cause, mend: mend) }

    /// Creates a fault that is only a remark.
    static func info(_ cause: String, _ mend: Remedy...) -> Fault { Fault(result: .info, cause: cause, mend: mend) }

    /// Returns the fault with the effect that it consists of.
    func being(_ effect: Effect) -> Fault {
      var fault = self
      fault.effect = effect
      return fault
    }

    /// Returns the fault with the effects that it brings about.
    func causing(_ consequences: Effect...) -> Fault {
      var fault = self
      fault.consequences.formUnion(consequences)
      return fault
    }
  }

  /// An effect of a fault that another check finds as a fault, too. In the order from cause to consequence: an effect
  /// brings about only effects after it.
  package enum Effect: Int, Comparable, Sendable {
    /// systemd cannot keep the daemon running.
    case serviceFails
    /// No daemon can be reached at the socket.
    case unreachable
    /// The store cannot be read or written, or a part of it is not proven.
    case storeFails
    /// The items cannot be used.
    case itemsUnavailable
    /// The daemon does not identify its peers.
    case peersUnknown
    /// The manifests are not in force.
    case manifestsIgnored
    /// The fleet's service cannot use identityd.
    case fleetStops

    package static func < (one: Effect, other: Effect) -> Bool { one.rawValue < other.rawValue }
  }

  /// A fact that a check gathered, for programs.
  package struct Fact: Equatable, Sendable {
    /// The name, in lower case with hyphens.
    package let name: String
    /// The value.
    package let value: Value

    /// The value of a fact, unchanged from its source.
    package enum Value: Equatable, Sendable {
      /// One text.
      case text(String)
      /// Any number of texts.
      case list([String])
    }

    init(_ name: String, _ value: String) {
      self.name = name
      self.value = .text(value)
    }

    init(_ name: String, list: [String]) {
      self.name = name
      value = .list(list)
    }
  }

  /// The faults, in the order found.
  package let faults: [Fault]
  /// The reason why something could not be examined; nil if everything was.
  package let reason: String?
  /// The facts, for programs.
  package let facts: [Fact]

  init(_ faults: [Fault] = [], skipped reason: String? = nil, facts: [Fact] = []) {
    self.faults = faults
    self.reason = reason
    self.facts = facts
  }

  /// The severity of the worst fault; without faults, `ok` or `skipped`.
  package var result: Result {
    let results: [Result] = [.failed, .warning, .info]
    if let worst = results.first(where: { result in faults.contains { $0.result == result } }) { return worst }
    return reason == nil ? .ok : .skipped
  }
}

/// Returns facts from names and values, without those whose value is nil.
func facts(_ pairs: (String, String?)...) -> [Finding.Fact] {
  pairs.compactMap { name, value in value.map { Finding.Fact(name, $0) } }
}
