import TestSupport
import Testing

@testable import IdentityCore

private func item(
  _ group: Text, _ service: Text, number: Int64, owner: Text = "org.a", secret: Int = 1, label: Text? = nil
) -> Item {
  Item(
    key: ItemKey(group: group, service: service, account: "a"), number: number, edition: given(UInt64(number)),
    owner: owner, label: label, attributes: [], isThisDeviceOnly: false, endsWithInstallation: false,
    secretLength: secret, created: Timestamp(milliseconds: 1), modified: Timestamp(milliseconds: 1))
}

struct ItemTableTests {
  private func items(of range: ItemRange) -> [Item] {
    var (range, items) = (range, [Item]())
    while case let block = range.next(), !block.isEmpty { items += block.map(\.item) }
    return items
  }

  /// Checks the table against a plain dictionary of the expected items.
  private func expect(_ table: ItemTable, _ plain: [ItemKey: Item], _ comment: Comment? = nil) {
    let known = plain.values.sorted { $0.key < $1.key }
    #expect(Array(table.all) == known, comment)
    #expect(table.total.items == plain.count, comment)
    #expect(table.total.bytes == plain.values.reduce(0) { $0 + $1.size }, comment)
    for group in Set(plain.keys.map(\.group)) {
      #expect(items(of: ItemRange(table.held, group: group)) == known.filter { $0.key.group == group }, comment)
      #expect(!table.isEmpty(group: group), comment)
    }
    let none = SubordinateUsers()
    for holder in Set(plain.values.map { Holder(of: $0.owner, none) }) {
      let charged = plain.values.filter { Holder(of: $0.owner, none) == holder }
      let usage = ItemTable.Usage(items: charged.count, bytes: charged.reduce(0) { $0 + $1.size })
      #expect(table.usage(of: holder) == usage, comment)
    }
  }

  @Test func `an empty table has no items and no usage`() {
    let table = ItemTable()
    expect(table, [:])
    #expect(items(of: ItemRange(table.held, group: "org.a")) == [])
    #expect(table.isEmpty(group: "org.a"))
    #expect(table.usage(of: .app("org.a")) == ItemTable.Usage())
    #expect(table.lastNumber == 0)
    #expect(table[ItemKey(group: "org.a", service: "s", account: "a")] == nil)
  }

  @Test func `storing an item replaces the one with its key and moves the charge`() {
    var table = ItemTable()
    let first = item("g", "s", number: 1, owner: "org.a", secret: 10)
    let second = item("g", "s", number: 1, owner: "org.b", secret: 3, label: "l")
    table.store(first)
    table.store(second)
    expect(table, [second.key: second])
    #expect(table.usage(of: .app("org.a")) == ItemTable.Usage())
    #expect(table.usage(of: .app("org.b")) == ItemTable.Usage(items: 1, bytes: 7))
  }

  @Test func `a table made of many items equals one made step by step`() {
    let items = (0..<500).map { index in
      item(
        index % 3 == 0 ? "g" : "h", Text("\(index % 400)"), number: Int64(1_000 - index),
        owner: index % 7 == 0 ? "unit:a.service@5" : "org.a", secret: index)
    }
    var table = ItemTable()
    for item in items { table.store(item) }
    let together = ItemTable(items.map(HeldItem.init))
    #expect(together == table)
    expect(together, Dictionary(items.map { ($0.key, $0) }, uniquingKeysWith: { $1 }))
    #expect(together.lastNumber == 1_000)
  }

  @Test func `removing a missing item changes nothing, and an empty group leaves nothing behind`() {
    var table = ItemTable()
    let only = item("g", "s", number: 1)
    table.remove(only.key)
    #expect(table == ItemTable())
    table.store(only)
    table.remove(ItemKey(group: "h", service: "s", account: "a"))
    table.remove(ItemKey(group: "g", service: "t", account: "a"))
    expect(table, [only.key: only])
    table.remove(only.key)
    table.remove(only.key)
    expect(table, [:])
    #expect(table.usage(of: .app("org.a")) == ItemTable.Usage())
    // The table must also drop its entries for the group and the owner, because clients can invent new
    // names without limit.
    var other = ItemTable()
    let another = item("another-group", "s", number: 1, owner: "org.another")
    other.store(another)
    other.remove(another.key)
    #expect(other == table)
  }

  @Test(
    arguments: [
      ("org.a", .app("org.a")), ("user:1000", .principal(.user(1_000))), ("unit:a.service", .app("unit:a.service")),
      ("unit:a@1000.service", .app("unit:a@1000.service")), ("unit:a.service@1000", .principal(.user(1_000))),
      ("unit:b@7.service@1000", .principal(.user(1_000))), ("unit:a.service@0", .app("unit:a.service@0")),
      ("unit:a.service:33", .principal(.user(33))), ("user:0", .app("user:0")),
      ("container:box", .principal(.container("box"))), ("container:box@1000", .principal(.user(1_000))),
      ("unit:a.service@4294967295", .principal(.user(4_294_967_295))), ("unit:a.service@", .app("unit:a.service@")),
      ("org.a@1000", .app("org.a@1000")),
    ] as [(Text, Holder)])
  func `the apps of a principal share one holder, and other apps have their own`(app: Text, holder: Holder) {
    #expect(Holder(of: app, SubordinateUsers()) == holder)
    var table = ItemTable()
    table.store(item("g", "s", number: 1, owner: app))
    #expect(table.usage(of: holder).items == 1)
  }

  @Test func `the last number is the highest one ever used`() {
    var table = ItemTable()
    for number in [3, 7, 5] as [Int64] { table.store(item("g", Text("\(number)"), number: number)) }
    #expect(table.lastNumber == 7)
    table.remove(ItemKey(group: "g", service: "7", account: "a"))
    #expect(table.lastNumber == 7)
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `after random changes the table equals a plain dictionary`(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let owners: [Text] = ["org.a", "org.b", "unit:x.service@7", "unit:y.service@7", "user:7"]
    var table = ItemTable()
    var plain: [ItemKey: Item] = [:]
    var copies: [(ItemTable, [ItemKey: Item])] = []
    for step in 0..<4_000 {
      let group = random.one(of: ["g", "h", "only-sometimes"] as [Text])
      let service = Text("\(Int.random(in: 0..<(group == "g" ? 300 : 3), using: &random))")
      let key = ItemKey(group: group, service: service, account: "a")
      let grows = (step / 1_000).isMultiple(of: 2)
      if random.once(in: 5) != grows {
        let item = item(
          group, service, number: plain[key]?.number ?? table.lastNumber + 1, owner: random.one(of: owners),
          secret: Int.random(in: 0..<100, using: &random), label: random.one(of: [nil, "label"]))
        table.store(item)
        plain[key] = item
      } else {
        table.remove(key)
        plain[key] = nil
      }
      try #require(table[key] == plain[key])
      if step.isMultiple(of: 250) { expect(table, plain, "step \(step)") }
      if step.isMultiple(of: 500) { copies.append((table, plain)) }
    }
    for (table, plain) in copies + [(table, plain)] { expect(table, plain) }
  }

  @Test func `equality does not depend on the order of the changes`() {
    let items = (1...300).map { item($0.isMultiple(of: 3) ? "g" : "h", Text("\($0)"), number: Int64($0)) }
    var (first, second) = (ItemTable(), ItemTable())
    for item in items { first.store(item) }
    for item in items.reversed() { second.store(item) }
    #expect(first == second)
    second.store(item("g", "3", number: 3, label: "l"))
    #expect(first != second)
    second.store(items[2])
    #expect(first == second)
    second.remove(items[0].key)
    #expect(first != second)
  }
}

struct ItemReadBackTests {
  @Test func `items that are read back in any order equal the original ones`() throws {
    var life = Life.withThreeApps()
    for number in 0..<20 {
      for (app, group) in [(orgA, nil), (orgB, "org.shared"), (alice, nil)] as [(Peer, Text?)] {
        try life.ask(.add(Text("\(number)"), in: group, label: "l", attributes: ["k": "v"]), as: app)
      }
    }
    for number in 0..<10 { try life.ask(.delete(Text("\(number)")), as: orgA) }
    try life.ask(.put("3", in: "org.shared"), as: orgA)
    var read = Registry()
    for (id, app) in life.registry.apps { read.apply(.appInstalled(id, app)) }
    read.restore(life.registry.items.all.map(HeldItem.init))
    read.resume(after: life.registry.lastEvent)
    #expect(read == life.registry)
    var again = life
    again.registry = read
    #expect(try again.ask(.find(in: .all), as: root) == life.ask(.find(in: .all), as: root))
  }
}
