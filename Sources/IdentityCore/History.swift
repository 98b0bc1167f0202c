/// Every stored identifier, past and in force.
package struct History: Equatable, Sendable {
  /// The identifiers by number, from 1. The numbers of removed identifiers are missing.
  private var identifiers = DividedDictionary<Int64, Identifier>()
  /// The number of the identifier in force for each scope.
  package private(set) var inForce = ScopeNumbers()
  /// The highest number of an identifier with a value.
  private var lastNumber = DividedDictionary<UUID, Int64>()
  /// The previous number with the same value, for each number that has one.
  private var numberBefore = DividedDictionary<Int64, Int64>()
  private var subordinates = SubordinateUsers()
  /// The number of expendable identifiers, which the history may drop, by the holder that is charged for them.
  private var expendable = DividedDictionary<Holder, Int>()
  /// The number of expendable identifiers of all holders.
  package private(set) var expendableCount = 0
  /// The number of the newest identifier.
  package private(set) var last: Int64 = 0

  init() {}

  /// Loads identifiers with their numbers, in ascending order.
  init(_ numbered: [NumberedIdentifier]) {
    identifiers = DividedDictionary(minimumCapacity: numbered.count)
    inForce = ScopeNumbers(minimumCapacity: numbered.count)
    lastNumber = DividedDictionary(minimumCapacity: numbered.count)
    for entry in numbered {
      last = entry.number - 1
      append(entry.identifier)
    }
  }

  /// The number of identifiers.
  package var count: Int { identifiers.count }

  /// The identifier in force for a scope.
  package subscript(scope: Scope) -> Identifier? { inForce[scope].flatMap { identifiers[$0] } }

  /// Every scope with an identifier in force, in the order in which these identifiers came into force.
  var scopes: [Scope] { inForce.numbers.sorted { $0.value < $1.value }.map(\.key) }

  /// All identifiers with their numbers, oldest first.
  package var numbered: [NumberedIdentifier] {
    identifiers.sorted { $0.key < $1.key }.map { NumberedIdentifier(number: $0.key, identifier: $0.value) }
  }

  /// All identifiers, oldest first.
  package var all: [Identifier] { numbered.map(\.identifier) }

  /// Returns the identifiers of a scope, oldest first.
  func identifiers(of scope: Scope) -> [Identifier] {
    identifiers.filter { $0.value.scope == scope }.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Returns the identifiers with a value, oldest first.
  func identifiers(valued value: UUID) -> [Identifier] {
    sequence(first: lastNumber[value]) { $0.map { numberBefore[$0] } }.prefix { $0 != nil }.compactMap { $0 }
      .reversed().compactMap { identifiers[$0] }
  }

  /// Returns the number of a holder's expendable identifiers.
  func expendable(of holder: Holder) -> Int { expendable[holder] ?? 0 }

  /// Returns the oldest expendable identifiers.
  ///
  /// - Parameter holder: the holder that is charged for them; nil for any holder.
  func oldestExpendable(_ count: Int, of holder: Holder?) -> [NumberedIdentifier] {
    let found = identifiers.filter { entry in
      guard let charged = entry.value.holderIfExpendable(subordinates) else { return false }
      return holder == nil || charged == holder
    }
    return found.sorted { $0.key < $1.key }.prefix(count).map {
      NumberedIdentifier(number: $0.key, identifier: $0.value)
    }
  }

  /// Appends an identifier. An identifier without an end is in force.
  mutating func append(_ identifier: Identifier) {
    last += 1
    if let before = lastNumber.exchange(last, forKey: identifier.value) { numberBefore[last] = before }
    if identifier.end == nil { inForce[identifier.scope] = last }
    identifiers[last] = identifier
    count(identifier, 1)
  }

  /// Ends the identifier in force for a scope.
  mutating func end(_ scope: Scope, _ how: Identifier.End) {
    guard let number = inForce.removeValue(forKey: scope), var identifier = identifiers[number] else { return }
    identifier.end = how
    identifiers[number] = identifier
    count(identifier, 1)
  }

  /// Removes an ended identifier.
  mutating func remove(_ number: Int64) {
    guard let identifier = identifiers.removeValue(forKey: number) else { return }
    count(identifier, -1)
    let before = numberBefore.removeValue(forKey: number)
    guard var next = lastNumber[identifier.value] else { return }
    guard next != number else {
      lastNumber[identifier.value] = before
      return
    }
    while let earlier = numberBefore[next], earlier != number { next = earlier }
    numberBefore[next] = before
  }

  /// Recomputes the counts of expendable identifiers, for other subordinate users.
  mutating func use(_ subordinates: SubordinateUsers) {
    self.subordinates = subordinates
    expendable = DividedDictionary()
    expendableCount = 0
    for (_, identifier) in identifiers { count(identifier, 1) }
  }

  private mutating func count(_ identifier: Identifier, _ step: Int) {
    guard let holder = identifier.holderIfExpendable(subordinates) else { return }
    expendableCount += step
    expendable.update(holder) { count in
      let new = (count ?? 0) + step
      count = new == 0 ? nil : new
    }
  }
}

/// An identifier with its number in the history.
package struct NumberedIdentifier: Equatable, Sendable {
  /// The position among all identifiers ever recorded, from 1.
  package let number: Int64
  /// The identifier.
  package let identifier: Identifier

  /// Creates a numbered identifier.
  package init(number: Int64, identifier: Identifier) {
    self.number = number
    self.identifier = identifier
  }
}

extension Identifier {
  /// Returns the holder that is charged for an expendable identifier; nil for one that is kept for good.
  ///
  /// An identifier is expendable if it belonged to an app without a manifest and ended when the app was forgotten. Any
  /// app may forget itself as often as it likes.
  fileprivate func holderIfExpendable(_ subordinates: SubordinateUsers) -> Holder? {
    guard end?.cause == .uninstalled, let app = scope.app ?? scope.vendor, app.isUnclaimedApp else { return nil }
    return Holder(of: app, subordinates)
  }
}
