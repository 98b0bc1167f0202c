import Foundation
import IdentityCore
import IdentityStore
import Testing

/// The secrets of items, some of whose rows were edited with sqlite3.
struct ItemTamperingTests {
  private static let items = (1...4 as ClosedRange<Int64>).map { Known($0, length: 30) }

  private static let swap =
    "UPDATE item SET n = -1 WHERE n = 1; UPDATE item SET n = 1 WHERE n = 2; UPDATE item SET n = 2 WHERE n = -1;"

  @Test(arguments: [
    ("UPDATE item SET service = 'bank' WHERE n = 2", "(2 com.example.shared bank user-2) is not authentic", [2]),
    (swap, "(1 com.example.shared mail user-2) is not authentic, and 1 more", [1, 2]),
    (
      swap + swap.replacing("item", with: "secret"),
      "(1 com.example.shared mail user-2) is not authentic, and 1 more", [1, 2]
    ),
  ])
  func `an edited item is named and not served, and the secrets of others are`(
    sql: String, named: String, lost: [Int64]
  ) throws {
    let workspace = try Workspace()
    let original = try workspace.fill(Self.items)
    try workspace.sql(sql)
    let before = try workspace.files()
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(content.condition)")
        #expect(reason.contains("a row of item \(named)"), "\(reason)")
        #expect(content.registry.isPart(of: original))
        #expect(content.registry.apps == original.apps && content.registry.history == original.history)
        #expect(content.registry.itemFault == nil)
        for known in Self.items {
          let isLost = lost.contains(known.item.number)
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
