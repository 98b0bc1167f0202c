/// Every stored identifier there was, and which of them are in force.
package struct History: Equatable, Sendable {
  /// By their numbers, the first being 1; numbers of those that were let go are missing.
  private var identifiers = DividedDictionary<Int64, Identifier>()
  /// The number of the identifier that is in force.
  private var current = DividedDictionary<Scope, Int64>()
  /// The last number of a value.
  private var lastNumber = DividedDictionary<UUID, Int64>()
  /// For a number the one before it with the same value, where there is one.
  private var numberBefore = DividedDictionary<Int64, Int64>()
  /// Which users are subordinate to which.
  private var subordinates = SubordinateUsers()
  /// How many of them may be let go, by the holder that is charged for them.
  private var expendable = DividedDictionary<Holder, Int>()
  /// The sum of those.
  package private(set) var expendableCount = 0
  /// The number of the newest.
  package private(set) var last: Int64 = 0

  /// There is none.
  init() {}

  /// Holds identifiers with their numbers, in order.
  init(_ numbered: [NumberedIdentifier]) {
    identifiers = DividedDictionary(minimumCapacity: numbered.count)
    current = DividedDictionary(minimumCapacity: numbered.count)
    lastNumber = DividedDictionary(minimumCapacity: numbered.count)
    for entry in numbered {
      last = entry.number - 1
      append(entry.identifier)
    }
  }

  /// How many there are.
  package var count: Int { identifiers.count }

  /// The identifier of a scope that is in force.
  package subscript(scope: Scope) -> Identifier? { current[scope].flatMap { identifiers[$0] } }

  /// Every scope that has an identifier, in the order these came into force.
  var scopes: [Scope] { current.sorted { $0.value < $1.value }.map(\.key) }

  /// All of them with their numbers, oldest first.
  package var numbered: [NumberedIdentifier] {
    identifiers.sorted { $0.key < $1.key }.map { NumberedIdentifier(number: $0.key, identifier: $0.value) }
  }

  /// All of them, oldest first.
  package var all: [Identifier] { numbered.map(\.identifier) }

  /// Those of a scope, oldest first.
  func identifiers(of scope: Scope) -> [Identifier] {
    identifiers.filter { $0.value.scope == scope }.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Those with a value, oldest first.
  func identifiers(valued value: UUID) -> [Identifier] {
    sequence(first: lastNumber[value]) { $0.map { numberBefore[$0] } }.prefix { $0 != nil }.compactMap { $0 }
      .reversed().compactMap { identifiers[$0] }
  }

  /// How many of a holder's may be let go.
  func expendable(of holder: Holder) -> Int { expendable[holder] ?? 0 }

  /// The oldest ones that may be let go.
  ///
  /// - Parameter holder: only those that it is charged for; nil for anybody's.
  func oldestExpendable(_ count: Int, of holder: Holder?) -> [NumberedIdentifier] {
    let found = identifiers.filter { entry in
      guard let charged = entry.value.holderIfExpendable(subordinates) else { return false }
      return holder == nil || charged == holder
    }
    return found.sorted { $0.key < $1.key }.prefix(count).map {
      NumberedIdentifier(number: $0.key, identifier: $0.value)
    }
  }

  /// Puts one at the end. Where it has no end, it is in force.
  mutating func append(_ identifier: Identifier) {
    last += 1
    if let before = lastNumber.exchange(last, forKey: identifier.value) { numberBefore[last] = before }
    if identifier.end == nil { current[identifier.scope] = last }
    identifiers[last] = identifier
    count(identifier, 1)
  }

  /// Ends the one of a scope that is in force.
  mutating func end(_ scope: Scope, _ how: Identifier.End) {
    guard let number = current.removeValue(forKey: scope), var identifier = identifiers[number] else { return }
    identifier.end = how
    identifiers[number] = identifier
    count(identifier, 1)
  }

  /// Lets go of one that has ended.
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

  /// Charges the holders anew.
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

/// An identifier of the history with its number there.
package struct NumberedIdentifier: Equatable, Sendable {
  /// Its place among all there ever were, the first being 1.
  package let number: Int64
  /// The identifier itself.
  package let identifier: Identifier

  /// Puts both together.
  package init(number: Int64, identifier: Identifier) {
    self.number = number
    self.identifier = identifier
  }
}

extension Identifier {
  /// Whether the history may let go of it, and whom it is charged to: it was of an app without a manifest, and ended as that
  /// app was forgotten, which every app may do to itself as often as it likes. Nil for what is kept for good.
  fileprivate func holderIfExpendable(_ subordinates: SubordinateUsers) -> Holder? {
    guard end?.cause == .uninstalled, let app = scope.app ?? scope.vendor, app.isUnclaimedApp else { return nil }
    return Holder(of: app, subordinates)
  }
}
