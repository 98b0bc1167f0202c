/// Something that must not be: what libFuzzer keeps the input for.
struct Finding: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Requires what always holds, whatever the input is.
func require(_ holds: Bool, _ what: @autoclosure () -> String) throws(Finding) {
  guard holds else { throw Finding(what()) }
}

/// Requires that something is there.
func require<Value>(_ value: Value?, _ what: @autoclosure () -> String) throws(Finding) -> Value {
  guard let value else { throw Finding(what()) }
  return value
}

/// One kind of input that comes from outside, and what holds for every such input.
protocol FuzzTarget {
  /// Makes what all its runs need, once.
  init() throws
  /// Takes one input.
  ///
  /// - Throws: what went wrong with it. An input that is refused as it should be is nothing wrong.
  func run(_ input: [UInt8]) throws
}

/// Every target by its name, which is also that of the folder of its corpus.
var fuzzTargets: [String: any FuzzTarget.Type] {
  [
    "lines": LineTarget.self,
    "sessions": SessionTarget.self,
    "store": StoreTarget.self,
    "backup": BackupTarget.self,
    "manifests": ManifestTarget.self,
    "configuration": ConfigurationTarget.self,
    "client": ClientTarget.self,
    "releases": ReleaseTarget.self,
  ]
}
