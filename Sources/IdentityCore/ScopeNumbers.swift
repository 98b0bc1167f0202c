/// A number for each scope: changing one of two copies costs the copy of a few.
package struct ScopeNumbers: Sendable {
  private var numbers = DividedDictionary<Scope, Int64>()

  /// There is none.
  package init() {}

  /// The numbers of those identifiers that are in force.
  ///
  /// - Parameter numbers: of the identifiers, in the same order.
  package init(inForce identifiers: [Identifier], _ numbers: [Int64]) {
    self.numbers = DividedDictionary(minimumCapacity: identifiers.count)
    for (identifier, number) in zip(identifiers, numbers) where identifier.end == nil {
      self.numbers[identifier.scope] = number
    }
  }

  /// The number of a scope.
  package subscript(scope: Scope) -> Int64? {
    get { numbers[scope] }
    set { numbers[scope] = newValue }
  }

  /// Takes the number of a scope out.
  package mutating func removeValue(forKey scope: Scope) -> Int64? { numbers.removeValue(forKey: scope) }
}
