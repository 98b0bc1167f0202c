import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// A store with so many items that a start leaves them out, and reads them once everything else is served.
struct ManyItemsTests {
  private static let count: Int64 = 8_200

  private func fill(_ workspace: Workspace) throws -> Registry {
    try workspace.withStore { store, content in
      var registry = content.registry
      for start in stride(from: 1, through: Self.count, by: 410) {
        let items = (start..<start + 410).map { Known($0, length: 20) }
        try store.mustCommit(registry.recorded(items.map { try store.storing($0) }))
      }
      try store.mustClose()
      return registry
    }
  }

  /// Returns the content of the store before and after the items are read, and the condition then.
  private func found(_ workspace: Workspace) throws -> (before: StoreContent, after: Registry, StoreCondition) {
    try workspace.withStore { store, content in
      var registry = content.registry
      store.readItems(into: &registry)
      let isComplete = !store.lacksItems
      #expect(isComplete)
      return (content, registry, store.condition)
    }
  }

  @Test func `a start leaves many items out, and they are read afterwards`() throws {
    let workspace = try Workspace()
    let registry = try fill(workspace)
    let (before, after, condition) = try found(workspace)
    #expect(before.lacksItems && before.condition == .writable)
    #expect(before.registry.items.total.items == 0 && before.registry.lastEvent == Self.count)
    #expect(after == registry && condition == .writable)
    try workspace.withStore { store, content in
      var registry = content.registry
      store.readItems(into: &registry)
      try store.expectOpen([Known(1, length: 20), Known(Self.count, length: 20)])
    }
  }

  @Test(arguments: [1, 4_100, 4_101, 8_200] as [Int64])
  func `an item that is not authentic is named, wherever it is`(number: Int64) throws {
    let workspace = try Workspace()
    let registry = try fill(workspace)
    try workspace.sql("UPDATE item SET owner = 'thief' WHERE n = \(number)")
    let (before, after, condition) = try found(workspace)
    #expect(before.lacksItems && before.condition == .writable)
    #expect(condition.damage?.contains(" is not authentic") == true)
    #expect(after.unproven == .items && after.items.total.items == Int(Self.count) - 1 && after.isPart(of: registry))
  }

  @Test(arguments: ["n = 2", "n = 8199"]) func `a missing item is noticed, wherever it was`(row: String) throws {
    let workspace = try Workspace()
    _ = try fill(workspace)
    try workspace.sql("DELETE FROM item WHERE \(row)")
    let (_, after, condition) = try found(workspace)
    #expect(condition.damage?.contains("8199") == true)
    #expect(after.unproven == .items && after.items.total.items == 0)
  }

  @Test func `nothing is committed to a store whose items turned out to be damaged`() throws {
    let workspace = try Workspace()
    _ = try fill(workspace)
    try workspace.sql("DELETE FROM item WHERE n = 7")
    try workspace.withStore { store, content in
      var registry = content.registry
      store.readItems(into: &registry)
      #expect(store.commit([.accountSet("alice")])?.damage != nil)
    }
  }

  @Test func `a start on a store with other damage reads everything, and names all of it`() throws {
    let workspace = try Workspace()
    _ = try fill(workspace)
    try workspace.sql(
      "UPDATE item SET owner = 'thief' WHERE n = 5; UPDATE event_batch SET lines = x'00' WHERE first = 1")
    let content = try workspace.found()
    #expect(!content.lacksItems)
    #expect(content.condition.damage?.contains(" is not authentic, and 1 more") == true)
    #expect(content.registry.unproven == .items)
  }

  @Test func `a table that SQLite cannot read is damage of the items alone`() throws {
    let workspace = try Workspace()
    let registry = try fill(workspace)
    let offset = try workspace.sql(
      "SELECT pgoffset FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 20")
    try overwrite(workspace.path("identityd.db"), at: try #require(Int(offset.dropLast())), with: 0xff)
    let (before, after, condition) = try found(workspace)
    #expect(before.lacksItems && condition.damage?.contains("malformed") == true)
    #expect(after.unproven == .items && after.items.total.items == 0 && after.lastEvent == registry.lastEvent)
  }
}
