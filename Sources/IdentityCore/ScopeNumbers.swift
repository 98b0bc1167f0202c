/// A number for each scope: changing one of two copies costs the copy of a few.
package struct ScopeNumbers: Sendable {
  private var numbers = DividedDictionary<Scope, Int64>()

  /// There is none.
  package init() {}

  /// The numbers of those identifiers that are in force.
  package init(inForce identifiers: [NumberedIdentifier]) {
    numbers = DividedDictionary(minimumCapacity: identifiers.count)
    for entry in identifiers where entry.identifier.end == nil { numbers[entry.identifier.scope] = entry.number }
  }

  /// The number of a scope.
  package subscript(scope: Scope) -> Int64? {
    get { numbers[scope] }
    set { numbers[scope] = newValue }
  }

  /// Takes the number of a scope out.
  package mutating func removeValue(forKey scope: Scope) -> Int64? { numbers.removeValue(forKey: scope) }
}
