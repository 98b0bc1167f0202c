import IdentityCore
import IdentityStore
import IdentityWire
import Testing

/// A store so large that a start reads it on two threads. The result must be the same.
struct LargeStoreTests {
  private static let count: Int64 = 1_500

  private func fill(_ workspace: Workspace) throws -> Registry {
    try workspace.withStore { store, content in
      var registry = content.registry
      let items = (1...Self.count).map { Known($0, length: 600) }
      try store.mustCommit(registry.recorded(items.map { try store.storing($0) }))
      try store.mustClose()
      #expect(try workspace.read("identityd.db").count >= 1_048_576)
      return registry
    }
  }

  @Test func `a start reads all of a large store`() throws {
    let workspace = try Workspace()
    let registry = try fill(workspace)
    try workspace.withStore { store, content in
      #expect(content.condition == .writable && content.registry == registry)
      #expect(content.events.map(\.sequence) == Array(1...Self.count))
      try store.expectOpen([Known(1, length: 600), Known(Self.count, length: 600)])
    }
  }

  @Test(arguments: [1, 750, 751, 1_500] as [Int64])
  func `a row that is not authentic is named, wherever it is`(number: Int64) throws {
    let workspace = try Workspace()
    let registry = try fill(workspace)
    try workspace.sql(
      """
      UPDATE item SET owner = 'thief' WHERE n = \(number);
      UPDATE event_batch SET lines = CAST(lines || 'x' AS BLOB) WHERE \(number) BETWEEN first AND last
      """)
    let content = try workspace.found()
    let reason = try #require(content.condition.damage)
    #expect(reason.contains(" is not authentic, and 1 more"))
    #expect(content.registry.items.total.items == Int(Self.count) - 1 && content.registry.isPart(of: registry))
  }

  @Test(arguments: [Int64.max, Int64.min])
  func `a number that no row can have is named`(number: Int64) throws {
    let workspace = try Workspace()
    _ = try fill(workspace)
    try workspace.sql("INSERT INTO identifier VALUES (\(number), '', '', '', '', '', '', '', '', '', '', 0, x'00')")
    let reason = try #require(try workspace.found().condition.damage)
    #expect(reason.contains(" is not authentic"))
  }

  @Test(arguments: ["item WHERE n = 2", "item WHERE n = 1499", "event_batch WHERE last = 1500"])
  func `a missing row is noticed, wherever it was`(row: String) throws {
    let workspace = try Workspace()
    _ = try fill(workspace)
    try workspace.sql("DELETE FROM \(row)")
    let content = try workspace.found()
    #expect(content.condition.damage != nil)
    #expect(content.registry.unproven == (row.hasPrefix("item") ? .items : .events))
    #expect((content.registry.items.total.items == 0) == row.hasPrefix("item"))
    #expect(content.events.isEmpty == row.hasPrefix("event"))
  }
}
