import IdentityCore
import IdentityStore
import IdentityWire
import Testing

/// Items and their secrets are found as they were stored: at once, at the next start, and after a rewrite.
struct ItemTests {
  /// A change of an item. A nil change deletes the item.
  private typealias Step = (known: Known, change: ItemChange?)

  private static let replaced = Known(3, edition: 1, owner: "com.example.full", length: 300)
  private static let life: [[Step]] = [
    [(Known(1), .added)],
    [(Known(2), .added), (Known(3, length: 0), .added)],
    [(Known(2, edition: 1), .updated)],
    [(replaced, .replaced), (Known(4, length: 5_000), .added)],
    // Two changes of one item in one transaction.
    [(Known(1, edition: 1), .updated), (Known(1, edition: 2, length: 1), .replaced)],
    [(Known(2, edition: 1), nil)],
    // An item is added, updated and deleted in one transaction.
    [(Known(5), .added), (Known(5, edition: 1), .updated), (Known(5, edition: 1), nil), (Known(6), .added)],
    [(replaced, nil), (Known(4, length: 5_000), nil)],
  ]

  private func changes(_ steps: [Step], _ store: borrowing Store) throws -> [Change] {
    var changes: [Change] = []
    for (known, change) in steps {
      if let change {
        changes.append(try store.storing(known, change))
      } else {
        changes.append(.itemDeleted(known.item))
      }
    }
    return changes
  }

  private func expect(_ items: [ItemKey: Known], in store: borrowing Store, _ registry: Registry) throws {
    #expect(Dictionary(uniqueKeysWithValues: registry.items.all.map { ($0.key, $0) }) == items.mapValues(\.item))
    try store.expectOpen(Array(items.values))
  }

  @Test func `an item is read back as last stored, across several transactions`() throws {
    let workspace = try Workspace(inMemory: true)
    var registry = try workspace.commit([[deviceMade]])
    var items: [ItemKey: Known] = [:]
    for steps in Self.life + [[]] {
      try workspace.withStore { store, content in
        #expect(content.registry == registry)
        #expect(content.condition == .writable)
        try expect(items, in: store, content.registry)
        try store.mustCommit(registry.recorded(try changes(steps, store)))
        for (known, change) in steps { items[known.item.key] = change == nil ? nil : known }
        try expect(items, in: store, registry)
        let healed = store.heal()
        #expect(healed == registry)
        try expect(items, in: store, registry)
      }
    }
    #expect(items.count == 2)
    #expect(registry.items.total.items == 2)
    let events = try workspace.found().events.filter { $0.topic == .item }
    #expect(events.count == 15)
    let names = events.map { String(decoding: $0.bytes, as: UTF8.self).split(separator: " ")[3] }
    #expect(Set(names) == ["added", "replaced", "updated", "deleted"])
    #expect(try workspace.sql("SELECT group_concat(n) FROM item; SELECT group_concat(n) FROM secret") == "1,6\n1,6\n")
  }

  @Test func `changes in one transaction have the same result as in separate ones`() throws {
    let workspace = try Workspace()
    var registry = Registry()
    try workspace.withStore { store, _ in
      try store.mustCommit(registry.recorded(try changes(Array(Self.life.joined()), store)))
    }
    try workspace.withStore { store, content in
      #expect(content.registry == registry)
      #expect(content.events.count == 15)
      let left = [Known(1, edition: 2, length: 1), Known(6)]
      try expect(Dictionary(uniqueKeysWithValues: left.map { ($0.item.key, $0) }), in: store, content.registry)
    }
  }

  @Test func `a secret of any length is read back`() throws {
    let workspace = try Workspace()
    let items = [0, 1, 2, 3, 31, 32, 33, 4_096, 32_766, 32_767, 32_768].enumerated().map { place, length in
      Known(Int64(place + 1), length: length)
    }
    let registry = try workspace.fill(items)
    try workspace.withStore { store, content in
      #expect(content.registry == registry)
      try store.expectOpen(items)
      for known in items {
        let sealed = try store.secret(of: known.item)
        #expect(sealed.length == known.secret.count)
      }
    }
  }

  @Test func `odd labels and attributes are read back unchanged`() throws {
    let workspace = try Workspace()
    let long = Text(trusted: [UInt8](repeating: UInt8(ascii: "l"), count: Bound.itemTextLength))
    let many = (0..<Bound.attributesPerItem).map { Item.Attribute(name: Text("name-\(100 + $0)"), value: long) }
    let described: [(Text?, [Item.Attribute])] = [
      (nil, []), (long, []), (nil, [.init(name: "a", value: "b")]), ("é", many), ("e\u{301}", []), ("=\n\t\"", []),
      ("\u{1}", [.init(name: "a", value: "\u{1}\u{2}"), .init(name: "b", value: "NULL")]), ("'; DROP TABLE item", []),
    ]
    let items = described.enumerated().map { place, description in
      var known = Known(Int64(place + 1))
      known.item.label = description.0
      known.item.attributes = description.1
      return known
    }
    let registry = try workspace.fill(items)
    let content = try workspace.found()
    #expect(content.registry == registry)
    for known in items { #expect(content.registry.items[known.item.key] == known.item) }
  }

  @Test func `row 40b: keys that look alike are different items`() throws {
    let workspace = try Workspace()
    let keys: [(Text, Text, Text)] = [
      ("a", "b", "c"), ("a", "bc", ""), ("ab", "c", ""), ("", "", "abc"), ("a", "", "bc"), ("A", "b", "c"),
      ("a", "b", "\u{212A}"), ("a", "b", "K"), ("a", "b", "é"), ("a", "b", "e\u{301}"), ("a", "b", "c "),
    ]
    let items = keys.enumerated().map { place, key in
      let sample = sampleItem(Int64(place + 1))
      let item = Item(
        key: ItemKey(group: key.0, service: key.1, account: key.2), number: sample.number, edition: sample.edition,
        owner: sample.owner, label: sample.label, attributes: sample.attributes, isThisDeviceOnly: false,
        endsWithInstallation: false, secretLength: 20, created: sample.created, modified: sample.modified)
      return Known(item, sampleSecret(Int64(place + 1)))
    }
    let registry = try workspace.fill(items)
    try workspace.withStore { store, content in
      #expect(content.registry == registry)
      #expect(content.registry.items.total.items == keys.count)
      try store.expectOpen(items)
    }
  }

  @Test func `a reused item number does not open the secret of the former item`() throws {
    let workspace = try Workspace()
    try workspace.fill([Known(1), Known(2)])
    try workspace.withStore { store, _ in
      try store.mustCommit([.itemDeleted(Known(2).item)])
      try store.mustClose()
    }
    try workspace.withStore { store, content in
      #expect(content.registry.items.lastNumber == 1)
      let again = Known(2, edition: 7, length: 3)
      try store.put([again])
      try store.expectOpen([again])
      try store.expectDamaged(Known(2).item, .changed)
    }
  }

  @Test func `acknowledged items are there after a kill`() throws {
    let workspace = try Workspace(inMemory: true)
    let other = try Workspace(inMemory: true)
    try workspace.withStore { store, _ in
      for number in 1...12 as ClosedRange<Int64> {
        let known = Known(number, length: Int(number) * 700)
        try store.put([known])
        try store.put([Known(number, edition: 1, length: 10)], .updated)
        try store.put([known], .replaced)
        // The next start has only the files that are on disk at this moment.
        try other.restore(try workspace.files())
        try other.withStore { store, content in
          #expect(content.condition == .writable)
          #expect(content.registry.items.total.items == Int(number))
          try store.expectOpen([known])
        }
      }
    }
  }
}

/// Readers of secrets beside the writer.
struct ItemReaderTests {
  @Test func `a reader sees the writer's commits, and only the current edition`() throws {
    let workspace = try Workspace()
    let (first, second) = (Known(1), Known(1, edition: 1, length: 3_000))
    try workspace.withStore { store, _ in
      let reader = try store.reader()
      let memory = try store.makeSecretMemory()
      func answer(_ known: Known) -> ReaderAnswer { ReaderAnswer(reader, known.item, memory) }
      #expect(answer(first) == .changed, "there is none yet")
      try store.put([first])
      #expect(answer(first) == .appended(first))
      #expect(answer(second) == .changed)
      try store.put([second], .replaced)
      #expect(answer(first) == .changed)
      #expect(answer(second) == .appended(second))
      try store.mustCommit([.itemDeleted(second.item)])
      #expect(answer(second) == .changed)
    }
  }

  @Test func `a reader refuses an item whose description differs from the stored one`() throws {
    let workspace = try Workspace()
    let known = Known(1)
    try workspace.fill([known])
    try workspace.withStore { store, _ in
      let told = known.item
      func with(_ change: (inout Item) -> Void) -> Item {
        var item = told
        change(&item)
        return item
      }
      func renamed(_ key: ItemKey, created: Timestamp = told.created) -> Item {
        Item(
          key: key, number: told.number, edition: told.edition, owner: told.owner, label: told.label,
          attributes: told.attributes, isThisDeviceOnly: told.isThisDeviceOnly,
          endsWithInstallation: told.endsWithInstallation, secretLength: told.secretLength, created: created,
          modified: told.modified)
      }
      let lies = [
        with { $0.owner = "thief" }, with { $0.label = nil }, with { $0.label = "x" },
        with { $0.attributes.removeLast() },
        with { $0.attributes.reverse() }, with { $0.isThisDeviceOnly.toggle() }, with { $0.secretLength += 1 },
        with { $0.endsWithInstallation.toggle() }, with { $0.modified = later(99) },
        renamed(ItemKey(group: "thief", service: told.key.service, account: told.key.account)),
        renamed(ItemKey(group: told.key.group, service: "thief", account: told.key.account)),
        renamed(ItemKey(group: told.key.group, service: told.key.service, account: "thief")),
        renamed(told.key, created: later(99)),
      ]
      for lie in lies {
        try store.expectDamaged(lie, .damaged)
      }
      try store.expectOpen([known])
    }
  }

  @Test func `a released reader keeps no file open, and a closed store makes no reader`() throws {
    let workspace = try Workspace()
    try workspace.fill([Known(1)])
    try workspace.withStore { store, _ in
      let reader = try store.reader()
      let memory = try store.makeSecretMemory()
      #expect(ReaderAnswer(reader, Known(1).item, memory) == .appended(Known(1)))
      try store.mustClose()
      #expect(store.makeItemReader() == nil)
      // The reader now has the file alone, and changes nothing in it.
      let before = try workspace.files()
      #expect(ReaderAnswer(reader, Known(1).item, memory) == .appended(Known(1)))
      #expect(try workspace.files() == before)
    }
    #expect(try openFiles(under: workspace.root) == [])
  }
}
