/// A violated requirement. libFuzzer saves the input that led to it.
struct Finding: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Requires a condition that must hold for every input.
func require(_ holds: Bool, _ what: @autoclosure () -> String) throws(Finding) {
  guard holds else { throw Finding(what()) }
}

/// Requires a value that is not nil.
func require<Value>(_ value: Value?, _ what: @autoclosure () -> String) throws(Finding) -> Value {
  guard let value else { throw Finding(what()) }
  return value
}

/// One kind of external input, and the requirements on every such input.
protocol FuzzTarget {
  init() throws
  /// Runs one input.
  ///
  /// - Throws: the fault. A correct refusal of an input is not a fault.
  func run(_ input: [UInt8]) throws
}

/// Every target by its name, which is also the name of its corpus folder.
var fuzzTargets: [String: any FuzzTarget.Type] {
  [
    "lines": LineTarget.self,
    "sessions": SessionTarget.self,
    "store": StoreTarget.self,
    "backup": BackupTarget.self,
    "manifests": ManifestTarget.self,
    "configuration": ConfigurationTarget.self,
    "client": ClientTarget.self,
    "fleet": FleetMessageTarget.self,
    "fleet-configuration": FleetConfigurationTarget.self,
    "fleet-control": FleetControlTarget.self,
    "releases": ReleaseTarget.self,
    "proofs": ProofTarget.self,
  ]
}
