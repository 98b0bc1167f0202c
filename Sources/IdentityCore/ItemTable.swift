/// All items without their secrets, by group and key, and what each app is charged for.
package struct ItemTable: Equatable, Sendable {
  /// What counts against a quota.
  package struct Usage: Equatable, Sendable {
    /// How many items.
    package var items = 0
    /// Their sizes together, in bytes.
    package var bytes = 0

    mutating func add(_ item: Item) {
      items += 1
      bytes += item.size
    }

    mutating func remove(_ item: Item) {
      items -= 1
      bytes -= item.size
    }
  }

  private var groups = DividedDictionary<Text, DividedDictionary<ItemKey, Item>>()
  private var usages = DividedDictionary<Text, Usage>()
  /// All of them together.
  package private(set) var total = Usage()
  /// The number of the item that was added last.
  package private(set) var lastNumber: Int64 = 0

  /// The item with a key.
  package subscript(key: ItemKey) -> Item? { groups[key.group]?[key] }

  /// Every item of a group, in no order.
  func items(in group: Text) -> some Sequence<Item> { (groups[group] ?? .init()).values }

  /// Every item, in no order.
  package var all: some Sequence<Item> { groups.values.lazy.flatMap(\.values) }

  /// What the holder of a quota uses.
  func usage(of holder: Text) -> Usage { usages[holder] ?? Usage() }

  /// Takes an item in, in the place of one with the same key.
  mutating func store(_ item: Item) {
    remove(item.key)
    lastNumber = max(lastNumber, item.number)
    let group = item.key.group
    if groups[group] == nil { groups[group] = .init() }
    groups[group]?[item.key] = item
    let holder = item.owner.quotaHolder
    if usages[holder] == nil { usages[holder] = Usage() }
    usages[holder]?.add(item)
    total.add(item)
  }

  /// Lets go of an item.
  mutating func remove(_ key: ItemKey) {
    guard let item = self[key] else { return }
    groups[key.group]?[key] = nil
    if groups[key.group]?.count == 0 { groups[key.group] = nil }
    let holder = item.owner.quotaHolder
    usages[holder]?.remove(item)
    if usages[holder]?.items == 0 { usages[holder] = nil }
    total.remove(item)
  }
}

extension Text {
  /// Who is charged for what this app stores: the app, but all of a user's own services together, whose names are the
  /// user's choice.
  var quotaHolder: Text { owner.map { Text("services of uid \($0)") } ?? self }
}
