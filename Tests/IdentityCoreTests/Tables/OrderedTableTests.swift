import TestSupport
import Testing

@testable import IdentityCore

private struct Numbered: OrderedElement, Equatable {
  let key: Int
  let value: Int
}

struct OrderedTableTests {
  /// Checks a table against a dictionary: its elements, its order, its look-ups and its blocks.
  private func expect(_ table: OrderedTable<Numbered>, _ plain: [Int: Int], _ comment: Comment? = nil) {
    let known = plain.sorted { $0.key < $1.key }.map { Numbered(key: $0.key, value: $0.value) }
    #expect(Array(table) == known, comment)
    #expect(table.count == known.count, comment)
    #expect(table.isEmpty == known.isEmpty, comment)
    #expect(known.allSatisfy { table[$0.key] == $0 }, comment)
    for key in [-1, 7, 100, 4_000, 1 << 40] {
      #expect(table[key]?.value == plain[key], comment)
      for isBehind in [false, true] {
        let rest = known.filter { isBehind ? $0.key > key : $0.key >= key }
        let block = Array(table.block(from: key, isBehind: isBehind))
        #expect(block == Array(rest.prefix(block.count)) && block.isEmpty == rest.isEmpty, comment)
      }
    }
  }

  @Test(arguments: [1, 2, 3]) func `random changes give the table of a dictionary`(seed: UInt64) {
    var random = SeededGenerator(seed)
    var (table, plain) = (OrderedTable<Numbered>(), [Int: Int]())
    var copies: [(OrderedTable<Numbered>, [Int: Int])] = []
    // The table grows, shrinks to nothing and grows again, so nodes are divided and joined.
    for (changes, removals) in [(6_000, 2), (9_000, 9), (3_000, 3)] {
      for change in 0..<changes {
        let key = Int.random(in: 0..<5_000, using: &random)
        if Int.random(in: 0..<10, using: &random) < removals {
          #expect(table.remove(key)?.value == plain.removeValue(forKey: key))
        } else {
          let before = plain.updateValue(change, forKey: key)
          #expect(table.store(Numbered(key: key, value: change))?.value == before)
        }
        if change % 1_500 == 0 { copies.append((table, plain)) }
      }
      expect(table, plain)
    }
    for key in Array(plain.keys) { table.remove(key) }
    expect(table, [:])
    // A change of one copy changes no other.
    for (table, plain) in copies { expect(table, plain) }
  }

  @Test(arguments: [0, 1, 63, 64, 65, 4_095, 4_096, 4_097, 20_000])
  func `a table made of many elements equals one made step by step`(count: Int) {
    let elements = (0..<count).map { Numbered(key: $0 * 2, value: $0) }
    let together = OrderedTable(elements)
    var single = OrderedTable<Numbered>()
    for element in elements.reversed() { single.store(element) }
    #expect(together == single)
    expect(together, Dictionary(uniqueKeysWithValues: elements.map { ($0.key, $0.value) }))
    single.store(Numbered(key: 0, value: -1))
    #expect(together != single)
  }

  @Test func `blocks are short, and joined ones have all elements`() {
    let table = OrderedTable((0..<10_000).map { Numbered(key: $0, value: 0) })
    var source = OrderedBlocks(table, from: 100, through: 9_000)
    var keys: [Int] = []
    while case let block = source.next(), !block.isEmpty {
      #expect(block.count <= 64)
      keys += block.map(\.key)
    }
    #expect(keys == Array(100...9_000))
  }
}

struct SearchTests {
  @Test(arguments: [1, 7, 64, 1_000]) func `a search examines no more elements than it may`(effort: Int) {
    let table = OrderedTable((0..<1_000).map { Numbered(key: $0, value: $0 % 10) })
    var search = Search(JoinedBlocks([OrderedBlocks(table, through: 499), OrderedBlocks(table, from: 500)])) {
      $0.value == 9
    }
    var found: [Int] = []
    var calls = 0
    whole: while true {
      calls += 1
      var left = effort
      while true {
        switch search.step(&left) {
        case .found(let element): found.append(element.key)
        case .paused:
          #expect(left == 0)
          continue whole
        case .ended: break whole
        }
      }
    }
    #expect(found == Array(stride(from: 9, to: 1_000, by: 10)))
    #expect(calls == 1_000 / effort + 1)
  }
}
