/// A number for each scope. A change of one of two copies duplicates only a small part.
package struct ScopeNumbers: Sendable {
  private var numbers = DividedDictionary<Scope, Int64>()

  /// Creates an empty table.
  package init() {}

  /// Creates the table of the numbers of those identifiers that are in force.
  package init(inForce identifiers: [NumberedIdentifier]) {
    numbers = DividedDictionary(minimumCapacity: identifiers.count)
    for entry in identifiers where entry.identifier.end == nil { numbers[entry.identifier.scope] = entry.number }
  }

  /// The number of a scope.
  package subscript(scope: Scope) -> Int64? {
    get { numbers[scope] }
    set { numbers[scope] = newValue }
  }

  /// Removes and returns the number of a scope.
  package mutating func removeValue(forKey scope: Scope) -> Int64? { numbers.removeValue(forKey: scope) }
}
