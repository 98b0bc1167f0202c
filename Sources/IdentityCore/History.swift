/// Every stored identifier, past and in force.
package struct History: Equatable, Sendable {
  /// The identifiers in the order of their numbers, from 1. The numbers of removed identifiers are missing.
  private(set) var table = OrderedTable<NumberedIdentifier>()
  /// The number of the identifier in force for each scope.
  package private(set) var inForce = ScopeNumbers()
  /// The highest number of an identifier with a value.
  private var lastNumber = DividedDictionary<UUID, Int64>()
  /// The previous number with the same value, for each number that has one.
  private var numberBefore = DividedDictionary<Int64, Int64>()
  /// The next number with the same value, for each number that has one.
  private var numberAfter = DividedDictionary<Int64, Int64>()
  /// The numbers of the ended identifiers of each scope that has any, in ascending order.
  private var ended = DividedDictionary<Scope, [Int64]>()
  /// The scopes with more than ``Bound/endedIdentifiers`` ended identifiers. A store of an earlier release may have some.
  private var crowded: Set<Scope> = []
  private var subordinates = SubordinateUsers()
  /// The numbers of expendable identifiers, which the history may drop, by the holder that is charged for them, in
  /// ascending order.
  private var expendable = DividedDictionary<Holder, [Int64]>()
  /// The number of expendable identifiers of all holders.
  package private(set) var expendableCount = 0
  /// The number of the newest identifier.
  package private(set) var last: Int64 = 0

  init() {}

  /// Loads identifiers with their numbers, in ascending order.
  init(_ numbered: [NumberedIdentifier]) {
    inForce = ScopeNumbers(minimumCapacity: numbered.count)
    lastNumber = DividedDictionary(minimumCapacity: numbered.count)
    for entry in numbered {
      last = entry.number - 1
      append(entry.identifier)
    }
  }

  /// The number of identifiers.
  package var count: Int { table.count }

  /// The identifier in force for a scope.
  package subscript(scope: Scope) -> Identifier? { inForce[scope].flatMap { self[number: $0] } }

  /// The identifier with a number.
  subscript(number number: Int64) -> Identifier? { table[number]?.identifier }

  /// Every scope with an identifier in force, in the order in which these identifiers came into force.
  var scopes: [Scope] { inForce.numbers.sorted { $0.value < $1.value }.map(\.key) }

  /// All identifiers with their numbers, oldest first.
  package var numbered: [NumberedIdentifier] { Array(table) }

  /// Returns the numbers of the identifiers of a scope, oldest first.
  func numbers(of scope: Scope) -> [Int64] {
    var numbers = ended[scope] ?? []
    if let number = inForce[scope] { numbers.insert(number, at: numbers.insertionIndex(of: number)) }
    return numbers
  }

  /// Returns whether a scope had one value before it first had another one.
  func has(_ value: UUID, before other: UUID, in scope: Scope) -> Bool {
    for number in numbers(of: scope) {
      guard let found = table[number]?.identifier.value, found == value || found == other else { continue }
      return found == value
    }
    return false
  }

  /// Returns the number of identifiers of a scope.
  func count(of scope: Scope) -> Int { (ended[scope]?.count ?? 0) + (inForce[scope] == nil ? 0 : 1) }

  /// Returns the identifiers with a value, newest first.
  func identifiers(valued value: UUID) -> some Sequence<Identifier> {
    let (table, numberBefore) = (table, numberBefore)
    return sequence(state: lastNumber[value]) { (number: inout Int64?) -> Identifier? in
      guard let present = number else { return nil }
      number = numberBefore[present]
      return table[present]?.identifier
    }
  }

  /// Returns the number of ended identifiers that may be added to a scope before it has the most that are kept.
  func room(in scope: Scope) -> Int { Swift.max(0, Bound.endedIdentifiers - (ended[scope]?.count ?? 0)) }

  /// Returns ended identifiers that are dropped to keep their scope within ``Bound/endedIdentifiers``, oldest first.
  ///
  /// Returns as many as are dropped together at most. A device identifier derived from the machine-id stays as long as
  /// other identifiers can be dropped, because its record keeps the machine-id from giving it again.
  func surplus(of scope: Scope) -> [NumberedIdentifier] {
    guard crowded.contains(scope), let numbers = ended[scope] else { return [] }
    let count = Swift.min(numbers.count - Bound.endedIdentifiers, Bound.endedTogether)
    var found = Array(numbers.lazy.filter { !isLastOfMachine($0) }.prefix(count))
    if found.count < count { found = Array(numbers.prefix(count)) }
    return found.compactMap { table[$0] }
  }

  /// A scope with more ended identifiers than are kept; nil if there is none.
  var crowdedScope: Scope? { crowded.first }

  /// Returns whether an identifier is the only record of a value that was derived from a machine-id.
  private func isLastOfMachine(_ number: Int64) -> Bool {
    self[number: number].map { $0.origin == .machine && lastNumber[$0.value] == number } ?? false
  }

  /// Returns the number of a holder's expendable identifiers.
  func expendable(of holder: Holder) -> Int { expendable[holder]?.count ?? 0 }

  /// Returns the oldest expendable identifiers.
  ///
  /// - Parameter holder: the holder that is charged for them; nil for any holder.
  func oldestExpendable(_ count: Int, of holder: Holder?) -> [NumberedIdentifier] {
    if let holder { return (expendable[holder] ?? []).prefix(count).compactMap { table[$0] } }
    return Array(
      table.lazy.filter { [subordinates] in $0.identifier.holderIfExpendable(subordinates) != nil }.prefix(count))
  }

  /// Appends an identifier. An identifier without an end is in force.
  mutating func append(_ identifier: Identifier) {
    last += 1
    if let before = lastNumber.exchange(last, forKey: identifier.value) {
      numberBefore[last] = before
      numberAfter[before] = last
    }
    if identifier.end == nil {
      inForce[identifier.scope] = last
    } else {
      noteEnd(of: last, in: identifier.scope)
    }
    table.store(NumberedIdentifier(number: last, identifier: identifier))
    charge(last, identifier, isKept: true)
  }

  /// Ends the identifier in force for a scope.
  mutating func end(_ scope: Scope, _ how: Identifier.End) {
    guard let number = inForce.removeValue(forKey: scope), var identifier = self[number: number] else { return }
    identifier.end = how
    table.store(NumberedIdentifier(number: number, identifier: identifier))
    noteEnd(of: number, in: scope)
    charge(number, identifier, isKept: true)
  }

  /// Moves an identifier to another scope, or ends it.
  mutating func move(_ moved: NumberedIdentifier) {
    guard let before = self[number: moved.number] else { return }
    charge(moved.number, before, isKept: false)
    if before.end == nil {
      inForce[before.scope] = nil
    } else {
      forgetEnd(of: moved.number, in: before.scope)
    }
    table.store(moved)
    let scope = moved.identifier.scope
    if moved.identifier.end == nil { inForce[scope] = moved.number } else { noteEnd(of: moved.number, in: scope) }
    charge(moved.number, moved.identifier, isKept: true)
  }

  private mutating func noteEnd(of number: Int64, in scope: Scope) {
    let count = ended.update(scope) { numbers in
      let index = numbers?.insertionIndex(of: number) ?? 0
      numbers = numbers ?? []
      numbers?.insert(number, at: index)
      return numbers?.count ?? 0
    }
    if count > Bound.endedIdentifiers { crowded.insert(scope) }
  }

  private mutating func forgetEnd(of number: Int64, in scope: Scope) {
    let count = ended.update(scope) { numbers in
      if let index = numbers?.insertionIndex(of: number) { numbers?.remove(at: index) }
      if numbers?.isEmpty == true { numbers = nil }
      return numbers?.count ?? 0
    }
    if count <= Bound.endedIdentifiers { crowded.remove(scope) }
  }

  /// Removes an ended identifier.
  mutating func remove(_ number: Int64) {
    guard let identifier = table.remove(number)?.identifier else { return }
    charge(number, identifier, isKept: false)
    forgetEnd(of: number, in: identifier.scope)
    let before = numberBefore.removeValue(forKey: number)
    let after = numberAfter.removeValue(forKey: number)
    if let before { numberAfter[before] = after }
    if let after { numberBefore[after] = before } else { lastNumber[identifier.value] = before }
  }

  /// Recomputes the counts of expendable identifiers, for other subordinate users.
  mutating func use(_ subordinates: SubordinateUsers) {
    self.subordinates = subordinates
    expendable = DividedDictionary()
    expendableCount = 0
    for entry in table { charge(entry.number, entry.identifier, isKept: true) }
  }

  /// Notes an expendable identifier for its holder, or that it was removed.
  private mutating func charge(_ number: Int64, _ identifier: Identifier, isKept: Bool) {
    guard let holder = identifier.holderIfExpendable(subordinates) else { return }
    expendableCount += isKept ? 1 : -1
    expendable.update(holder) { numbers in
      let index = numbers?.insertionIndex(of: number) ?? 0
      if !isKept {
        numbers?.remove(at: index)
      } else if numbers == nil {
        numbers = [number]
      } else {
        numbers?.insert(number, at: index)
      }
      if numbers?.isEmpty == true { numbers = nil }
    }
  }
}

extension [Int64] {
  /// Returns the index of a number in an ascending array, or the index at which to insert it.
  fileprivate func insertionIndex(of number: Int64) -> Int {
    // Most numbers are added at the end, and most are removed from the beginning.
    if last ?? .min < number { return count }
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension History: Sequence {
  /// Iterates over all identifiers, oldest first.
  package func makeIterator() -> some IteratorProtocol<Identifier> { table.lazy.map(\.identifier).makeIterator() }
}

/// An identifier with its number in the history.
package struct NumberedIdentifier: OrderedElement, Equatable {
  /// The position among all identifiers ever recorded, from 1.
  package internal(set) var number: Int64
  /// The identifier.
  package internal(set) var identifier: Identifier

  package init(number: Int64, identifier: Identifier) {
    self.number = number
    self.identifier = identifier
  }

  package var key: Int64 { number }
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
