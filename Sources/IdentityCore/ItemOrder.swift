/// Items in the order they were added, which is that of their numbers.
///
/// They stand in blocks of neighbouring numbers, each small: a change of one of two copies costs the copy of a block, and a
/// list of all items takes no sorting.
struct ItemOrder: Equatable, Sendable {
  /// How many numbers a block has.
  private static let size: Int64 = 64
  /// By the number of the block.
  private var blocks = DividedDictionary<Int64, [HeldItem]>()

  /// There is none.
  init() {}

  /// Puts an item in its place, or in that of the one with its number.
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

  /// Lets go of an item.
  mutating func remove(_ number: Int64) {
    blocks.update(number / Self.size) { block in
      block?.removeAll { $0.item.number == number }
      if block?.isEmpty == true { block = nil }
    }
  }

  /// The items in order.
  var all: some Sequence<HeldItem> { blocks.keys.sorted().lazy.flatMap { blocks[$0] ?? [] } }
}
