import Foundation
import IdentityCore
import IdentityStore
import Testing

/// Rows of items and the row of the data key, edited with sqlite3. The store is damaged, the fault names the row, and
/// all proven rows are served.
struct ItemTamperingTests {
  /// An edit, the expected text of the fault, and the items that are not served afterwards.
  struct Edit: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let named: String
    let lost: [Int64]

    init(_ testDescription: String, _ sql: String, named: String, lost: Int64...) {
      self.testDescription = testDescription
      self.sql = sql
      self.named = named
      self.lost = lost
    }
  }

  private static func row(_ number: Int64, group: String = "com.example.shared", service: String = "mail") -> String {
    "a row of item (\(number) \(group) \(service) user-\(number)) is not authentic"
  }
  private static let swap =
    "UPDATE item SET n = -1 WHERE n = 1; UPDATE item SET n = 1 WHERE n = 2; UPDATE item SET n = 2 WHERE n = -1;"

  static let edits: [Edit] = [
    Edit("another service", "UPDATE item SET service = 'bank' WHERE n = 2", named: row(2, service: "bank"), lost: 2),
    Edit(
      "another account", "UPDATE item SET account = 'thief' WHERE n = 2",
      named: "a row of item (2 com.example.shared mail thief) is not authentic", lost: 2),
    Edit(
      "another group", "UPDATE item SET access_group = 'thief' WHERE n = 2", named: row(2, group: "thief"), lost: 2),
    Edit("another owner", "UPDATE item SET owner = 'thief' WHERE n = 2", named: row(2), lost: 2),
    Edit("another edition", "UPDATE item SET edition = '\(uuid(5))' WHERE n = 2", named: row(2), lost: 2),
    Edit("no longer this device only", "UPDATE item SET this_device_only = 0 WHERE n = 2", named: row(2), lost: 2),
    Edit("an invalid boolean", "UPDATE item SET this_device_only = 2 WHERE n = 2", named: row(2), lost: 2),
    Edit(
      "another lifetime", "UPDATE item SET ends_with_installation = 0 WHERE n = 3", named: row(3), lost: 3),
    Edit("another length", "UPDATE item SET secret_length = 5 WHERE n = 2", named: row(2), lost: 2),
    Edit(
      "another creation time", "UPDATE item SET created = '2020-01-01T00:00:00.000Z' WHERE n = 2", named: row(2),
      lost: 2),
    Edit(
      "another modification time", "UPDATE item SET modified = '2020-01-01T00:00:00.000Z' WHERE n = 2", named: row(2),
      lost: 2),
    Edit(
      "the description of another item",
      "UPDATE item SET description = (SELECT description FROM item WHERE n = 1) WHERE n = 2",
      named: row(2), lost: 2),
    Edit("an empty description", "UPDATE item SET description = x'' WHERE n = 2", named: row(2), lost: 2),
    Edit(
      "another proof", "UPDATE item SET proof = (SELECT proof FROM item WHERE n = 1) WHERE n = 2", named: row(2),
      lost: 2),
    Edit(
      "another number", "UPDATE item SET n = 9 WHERE n = 2",
      named: "a row of item (9 com.example.shared mail user-2) is not authentic", lost: 2),
    Edit(
      "two numbers swapped", swap,
      named: "a row of item (1 com.example.shared mail user-2) is not authentic, and 1 more", lost: 1, 2),
    Edit(
      "two numbers and secrets swapped", swap + swap.replacing("item", with: "secret"),
      named: "a row of item (1 com.example.shared mail user-2) is not authentic, and 1 more", lost: 1, 2),
    Edit(
      "a copy of an item",
      """
      INSERT INTO item SELECT 9, access_group, service, 'copy', owner, edition, this_device_only,
      ends_with_installation, secret_length, created, modified, description, revision, proof FROM item WHERE n = 2
      """, named: "a row of item (9 com.example.shared mail copy) is not authentic"),
  ]

  private static let items = (1...4 as ClosedRange<Int64>).map { Known($0, length: 30) }

  @Test(arguments: edits) func `an edited item is named and not served, and others are served`(edit: Edit) throws {
    let workspace = try Workspace()
    let original = try workspace.fill(Self.items)
    try workspace.sql(edit.sql)
    let before = try workspace.files()
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(content.condition)")
        #expect(reason.contains(edit.named), "\(reason)")
        #expect(content.registry.isPart(of: original))
        #expect(content.registry.apps == original.apps && content.registry.history == original.history)
        #expect(content.registry.itemFault == nil)
        for known in Self.items {
          let isLost = edit.lost.contains(known.item.number)
          #expect(content.registry.items[known.item.key] == (isLost ? nil : known.item))
          if !isLost { try store.expectOpen([known]) }
        }
        let change = try store.storing(Known(9))
        #expect(store.commit([change]) == content.condition)
        #expect(refusal { _ = try store.rotateKey(at: later(9)) } == content.condition.refusal)
        let healed = store.heal()
        #expect(healed == nil)
      }
      for (name, bytes) in before { #expect(try workspace.read(name) == bytes, "\(name)") }
    }
  }

  @Test(arguments: ["DELETE FROM item WHERE n = 2", "DELETE FROM item", "DELETE FROM data_key"])
  func `a deleted row is noticed, and no item is served`(sql: String) throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    try workspace.sql(sql)
    try workspace.withStore { store, content in
      #expect(content.condition.damage?.contains("proven rows and should hold") == true, "\(content.condition)")
      #expect(content.registry.unproven == .items && content.registry.items.total.items == 0)
      #expect(content.registry.apps.count > 0, "the others go on")
      #expect(store.commit([deviceMade]) == content.condition)
    }
  }

  @Test(arguments: ["item WHERE n = 1", "item WHERE n = 1; secret WHERE n = 1", "data_key"])
  func `row 16: a row set back to an earlier state is noticed, and no item is served`(rows: String) throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    let early = try workspace.read("identityd.db")
    try workspace.withStore { store, _ in
      try store.put([Known(1, edition: 1, length: 30)], .updated)
      let source = try store.rotateKey(at: later(1))
      #expect(source == .file)
      try store.mustClose()
    }
    for part in rows.components(separatedBy: "; ") { try workspace.rollBack(part, to: early) }
    let content = try workspace.found()
    #expect(
      content.condition.damage?.contains("are proven, but not all of them are current") == true,
      "\(content.condition)")
    #expect(content.registry.unproven == .items && content.registry.items.total.items == 0)
  }

  @Test(arguments: ["item", "data_key"])
  func `a row of another store under the same master key is not authentic`(table: String) throws {
    let credentials = KeyCredentials(current: [UInt8](repeating: 0x4b, count: 32))
    let (workspace, other) = (try Workspace(), try Workspace())
    for (place, identity) in [(workspace, identity), (other, uuid(9))] {
      try place.withStore(identity: identity, credentials: credentials) { store, _ in
        try store.put(Self.items)
        try store.mustClose()
      }
    }
    try workspace.sql(
      "ATTACH '\(other.path("identityd.db"))' AS other; REPLACE INTO main.\(table) SELECT * FROM other.\(table) LIMIT 1"
    )
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.condition.damage?.contains("a row of \(table) (1 ") == true, "\(content.condition)")
      if table == "item" {
        #expect(content.registry.items[Self.items[0].item.key] == nil)
        try store.expectOpen(Array(Self.items.dropFirst()))
      } else {
        #expect(content.registry.itemFault != nil)
        #expect(store.keySource == nil)
      }
    }
  }
}
