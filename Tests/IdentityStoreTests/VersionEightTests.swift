import IdentityCore
import TestSupport
import Testing

@testable import IdentityStore

/// A store of schema version 8 holds what one of this version does, but has one digest for all tables, and no epoch.
@Suite struct VersionEightTests {
  @Test func `row 18: it becomes one of this version, with all that it holds, and gets an epoch`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4) + life, withEvents: true)
    let before = try workspace.found()
    try workspace.setBack(to: 8)
    let content = try workspace.found()
    #expect(content.notices == [.migrated(from: 8)])
    #expect(content.registry == before.registry)
    #expect(content.events == before.events)
    #expect(content.epoch != before.epoch && content.epoch != .zero)
    #expect(content.condition == .writable)
    #expect(try workspace.sql("PRAGMA user_version") == "\(Schema.version)\n")
    #expect(try workspace.found().notices == [])
    #expect(try workspace.found().epoch == content.epoch)
  }

  @Test(arguments: [
    "DELETE FROM device WHERE n = 4",
    "UPDATE identifier SET value = upper(value) WHERE n = 3; DELETE FROM device WHERE n = 4",
  ])
  func `where its digest does not hold nothing is served, and nothing migrated`(sql: String) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4) + life, withEvents: true)
    try workspace.setBack(to: 8)
    try workspace.sql(sql)
    let before = try workspace.read("identityd.db")
    let content = try workspace.found()
    #expect(content.condition.damage != nil)
    #expect(content.registry.isNothing)
    #expect(try workspace.read("identityd.db") == before)
  }

  @Test func `a damaged row is left out, and the others are served`() throws {
    let workspace = try Workspace()
    let original = try workspace.commit(sample(apps: 4) + life, withEvents: true)
    try workspace.setBack(to: 8)
    try workspace.sql("UPDATE device SET name = 'x' WHERE n = 4")
    let content = try workspace.found()
    #expect(content.registry.unproven == .devices)
    #expect(content.registry.apps == original.apps)
    #expect(content.registry.devices.count == original.devices.count - 1)
  }
}

extension Workspace {
  /// Makes the store one of an earlier version from 4 on, as far as its own row tells.
  func setBack(to version: Int64) throws {
    let words = String(decoding: try read("store.key"), as: UTF8.self).split(separator: " ")
    let digits = Array(words[2])
    var key = stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
    guard let authenticator = Authenticator(key: &key) else { throw Failure("no key") }
    let database = try Database(path: path("identityd.db"), create: false)
    try database.execute("PRAGMA journal_mode = DELETE")
    let statement = database.prepare(Table.store.selection)
    try #require(try statement.step())
    let values = statement.values(Table.store.columns.count)
    statement.reset()
    guard case .blob(let bytes) = values[5], let digests = TableDigests(bytes) else { throw Failure("no digests") }
    try database.execute(
      """
      DROP TABLE store; CREATE TABLE store (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL,
      created TEXT NOT NULL, revision INTEGER NOT NULL, row_count INTEGER NOT NULL, digest BLOB NOT NULL,
      last_event INTEGER NOT NULL, proof BLOB NOT NULL) STRICT; PRAGMA user_version = \(version)
      """)
    var row = RowBytes()
    row.begin(VersionEight.store)
    for value in values[0..<5] { row.append(value) }
    row.append(digests.total.proof)
    row.append(values[6])
    _ = try TableStatements(VersionEight.store, database).insert(&row, authenticator)
    try database.execute("PRAGMA journal_mode = WAL")
  }
}
