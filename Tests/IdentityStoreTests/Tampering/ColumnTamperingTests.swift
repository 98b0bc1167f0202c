import Foundation
import IdentityCore
import Testing

@testable import IdentityStore

/// A change of one value, in each column of each table.
struct ColumnTamperingTests {
  /// The tables, each with its key. Secrets are not among them: a reader examines them, not the start.
  private static let tables = Dictionary(
    uniqueKeysWithValues: ([.store] + Schema.tables).map { ($0.name, $0.columns[0]) })

  @Test(arguments: tables.keys.sorted())
  func `row 12: a change in any column is named`(table: String) throws {
    let workspace = try Workspace(inMemory: true)
    let original = try fill(workspace, table)
    let files = try workspace.files()
    let key = try #require(Self.tables[table])
    let columns = try workspace.sql("SELECT name, type FROM pragma_table_info('\(table)')").split(separator: "\n")
    #expect(columns.count > 3)
    // A CHECK constraint refuses any other value of the key `only`.
    for column in columns where !column.hasPrefix("only|") {
      let parts = column.split(separator: "|")
      let name = parts[0]
      var edits = 0
      for value in Self.values(of: name, type: parts[1]) {
        try workspace.restore(files)
        // The schema refuses some edits, and others change nothing.
        _ = try workspace.run(
          "sqlite3", "-bail", workspace.path("identityd.db"),
          """
          UPDATE \(table) SET \(name) = \(value)
          WHERE \(key) = (SELECT max(\(key)) FROM \(table) WHERE \(name) IS NOT \(value))
          """)
        if try workspace.files()["identityd.db"] == files["identityd.db"] { continue }
        edits += 1
        let content = try workspace.found()
        let named = table == "store" ? "the row of table store is not authentic" : "a row of \(table) ("
        #expect(content.condition.damage?.contains(named) == true, "\(name) = \(value): \(content.condition)")
        #expect(content.registry.isPart(of: original), "\(name) = \(value)")
        let kinds = Schema.tables.first { $0.name == table }?.kinds ?? .all
        #expect(content.registry.without(kinds) == original.without(kinds), "\(name) = \(value): the others go on")
      }
      #expect(edits > 0, "\(name)")
    }
  }

  private func fill(_ workspace: Workspace, _ table: String) throws -> Registry {
    switch table {
    case "item", "data_key": return try workspace.fill((1...2 as ClosedRange<Int64>).map { Known($0, length: 30) })
    case "recovery_key":
      return try workspace.withStore { store, content in
        try store.protectKey(with: store.makeSecretMemory().encrypt(Array(1...32)), at: later(1))
        try store.mustClose()
        return content.registry
      }
    case "app_use", "day":
      var batches = sample(apps: 1) + life
      batches.append(Registry(applying: batches).changes(forUsed: ["user:7"], at: later(1)))
      return try workspace.commit(batches, withEvents: true)
    default: return try workspace.commit(sample(apps: 1) + life, withEvents: true)
    }
  }

  /// Returns SQL expressions for other values of a column.
  private static func values(of name: Substring, type: Substring) -> [String] {
    switch type {
    case "INTEGER": ["\(name) + 1000", "1 - \(name)"]
    case "BLOB": ["CAST(\(name) || x'00' AS BLOB)", "x''"]
    default:
      ["coalesce(\(name), '') || 'x'", "''", "'2020-01-01T00:00:00.000Z'", "'\(uuid(9))'", "'credential'", "NULL"]
    }
  }
}
