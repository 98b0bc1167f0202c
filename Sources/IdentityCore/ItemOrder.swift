/// The items in ascending order of their numbers, which is the order in which they were added.
///
/// The items are kept in small blocks of adjacent numbers. A change of one of two copies then copies one block only,
/// and a list of all items needs no sorting.
struct ItemOrder: Equatable, Sendable {
  /// The span of item numbers in a block.
  private static let size: Int64 = 64
  /// The blocks by block number: the item number divided by `size`.
  private var blocks = DividedDictionary<Int64, [HeldItem]>()

  init() {}

  /// Loads items in ascending order of their numbers.
  init(_ items: [HeldItem]) {
    blocks = DividedDictionary(minimumCapacity: items.count / Int(Self.size))
    var rest = items[...]
    while let number = rest.first?.item.number {
      let block = rest.prefix { $0.item.number / Self.size == number / Self.size }
      blocks[number / Self.size] = Array(block)
      rest = rest[block.endIndex...]
    }
  }

  /// Inserts an item, or replaces the item with the same number.
  mutating func store(_ held: HeldItem) {
    let number = held.item.number
    blocks.update(number / Self.size) { block in
      var items = block.take() ?? []
      if let place = items.lastIndex(where: { $0.item.number <= number }) {
        if items[place].item.number == number { items[place] = held } else { items.insert(held, at: place + 1) }
      } else {
        items.insert(held, at: 0)
      }
      block = items
    }
  }

  /// Removes the item with a number.
  mutating func remove(_ number: Int64) {
    blocks.update(number / Self.size) { block in
      block?.removeAll { $0.item.number == number }
      if block?.isEmpty == true { block = nil }
    }
  }

  /// All items in ascending order of their numbers.
  var all: some Sequence<HeldItem> { blocks.keys.sorted().lazy.flatMap { blocks[$0] ?? [] } }
}
