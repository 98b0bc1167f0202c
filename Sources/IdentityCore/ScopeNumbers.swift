/// A number for each scope. A change of one of two copies duplicates only a small part.
package struct ScopeNumbers: Equatable, Sendable {
  private(set) var numbers = DividedDictionary<Scope, Int64>()

  package init() {}

  /// Creates an empty table with room for a number of scopes.
  init(minimumCapacity: Int) { numbers = DividedDictionary(minimumCapacity: minimumCapacity) }

  /// The number of a scope.
  package subscript(scope: Scope) -> Int64? {
    get { numbers[scope] }
    set { numbers[scope] = newValue }
  }

  /// Returns the number of scopes of a level.
  package func count(of level: Level) -> Int { numbers.keys.count { $0.level == level } }

  /// Removes and returns the number of a scope.
  package mutating func removeValue(forKey scope: Scope) -> Int64? { numbers.removeValue(forKey: scope) }
}
