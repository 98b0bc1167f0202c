import IdentityCore
import IdentityStore
import Testing

/// Rows edited with SQLite's own tool, as somebody with a root shell and good intentions might.
@Suite struct TamperingTests {
  /// An edit, what the report of it has to say, and which part of the registry has to vanish with it.
  struct Edit: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let named: String
    let lost: Lost

    enum Lost: Sendable { case device, app, installation, nothing }

    init(_ testDescription: String, _ sql: String, named: String, lost: Lost) {
      self.testDescription = testDescription
      self.sql = sql
      self.named = named
      self.lost = lost
    }
  }

  static let row = "level = 'installation' AND app = 'unit:app-1.service'"
  static let otherTable = """
    ALTER TABLE identifier RENAME TO old; CREATE TABLE identifier (level TEXT NOT NULL, app TEXT NOT NULL,
    value TEXT NOT NULL, created TEXT NOT NULL, origin TEXT, revision INTEGER NOT NULL, proof BLOB NOT NULL) STRICT;
    INSERT INTO identifier SELECT * FROM old;
    """

  static let edits: [Edit] = [
    Edit(
      "the value of the device", "UPDATE identifier SET value = '\(uuid(77))' WHERE level = 'device'",
      named: "a row of identifier (device ) is not authentic", lost: .device),
    Edit(
      "one letter of a value", "UPDATE identifier SET value = upper(value) WHERE \(row)",
      named: "a row of identifier (installation unit:app-1.service) is not authentic", lost: .installation),
    Edit(
      "the time of a row", "UPDATE identifier SET created = '2020-01-01T00:00:00.000Z' WHERE \(row)",
      named: "(installation unit:app-1.service) is not authentic", lost: .installation),
    Edit(
      "the revision of a row", "UPDATE identifier SET revision = revision + 1 WHERE \(row)",
      named: "(installation unit:app-1.service) is not authentic", lost: .installation),
    Edit(
      "an origin that is a lie", "UPDATE identifier SET origin = 'random' WHERE level = 'device'",
      named: "(device ) is not authentic", lost: .device),
    Edit(
      "an origin taken away", "UPDATE identifier SET origin = NULL WHERE level = 'device'",
      named: "(device ) is not authentic", lost: .device),
    Edit(
      "a row moved to another app", "UPDATE identifier SET app = 'unit:thief.service' WHERE \(row)",
      named: "(installation unit:thief.service) is not authentic", lost: .installation),
    Edit(
      "two values exchanged",
      """
      CREATE TEMP TABLE two AS SELECT app, value FROM identifier WHERE app IN ('unit:app-1.service', 'unit:app-2.service');
      UPDATE identifier SET value = (SELECT value FROM two WHERE two.app <> identifier.app)
      WHERE app IN (SELECT app FROM two);
      """, named: "(installation unit:app-1.service) is not authentic, and 1 more", lost: .installation),
    Edit(
      "the vendor of an app", "UPDATE app SET vendor = 'thief' WHERE id = 'unit:app-1.service'",
      named: "a row of app (unit:app-1.service thief) is not authentic", lost: .app),
    Edit(
      "a copied app", "INSERT INTO app SELECT 'unit:new.service', vendor, installed, revision, proof FROM app LIMIT 1",
      named: "a row of app (unit:new.service vendor-0) is not authentic", lost: .nothing),
    Edit(
      "a deleted identifier", "DELETE FROM identifier WHERE \(row)",
      named: "it holds 8 proven rows and should hold 9", lost: .installation),
    Edit(
      "a deleted device", "DELETE FROM identifier WHERE level = 'device'",
      named: "it holds 8 proven rows and should hold 9", lost: .device),
    Edit(
      "all identifiers deleted", "DELETE FROM identifier; DELETE FROM app",
      named: "it holds 0 proven rows and should hold 9", lost: .device),
    Edit(
      "a row there twice", "\(otherTable) INSERT INTO identifier SELECT * FROM old WHERE \(row); DROP TABLE old",
      named: "it holds 10 proven rows and should hold 9", lost: .nothing),
    Edit(
      "a row there three times, which the exclusive or alone would miss",
      """
      \(otherTable) INSERT INTO identifier SELECT * FROM old WHERE \(row);
      INSERT INTO identifier SELECT * FROM old WHERE \(row); DROP TABLE old
      """, named: "it holds 11 proven rows and should hold 9", lost: .nothing),
    Edit(
      "one row in place of another, which the number alone would miss",
      """
      \(otherTable) DELETE FROM identifier WHERE level = 'device';
      INSERT INTO identifier SELECT * FROM old WHERE \(row); DROP TABLE old
      """, named: "it holds 9 proven rows and should hold 9", lost: .device),
    Edit(
      "a proof taken away", "UPDATE identifier SET proof = x'' WHERE \(row)",
      named: "(installation unit:app-1.service) is not authentic", lost: .installation),
    Edit(
      "a proof cut short", "UPDATE identifier SET proof = substr(proof, 1, 16) WHERE \(row)",
      named: "(installation unit:app-1.service) is not authentic", lost: .installation),
    Edit("the store's own row deleted", "DELETE FROM store", named: "its own row is missing", lost: .nothing),
    Edit(
      "the store's revision", "UPDATE store SET revision = revision + 1", named: "its own row is not authentic",
      lost: .nothing),
    Edit(
      "the number of rows, and a row with it", "UPDATE store SET row_count = 8; DELETE FROM identifier WHERE \(row)",
      named: "its own row is not authentic", lost: .installation),
    Edit(
      "the store's identity", "UPDATE store SET id = '\(uuid(5))'", named: "its own row is not authentic",
      lost: .nothing),
  ]

  @Test(arguments: edits) func `an edited store names what was edited, and serves the rest`(edit: Edit) throws {
    let workspace = try Workspace()
    let original = try workspace.commit(sample(apps: 4))
    try workspace.sql(edit.sql)
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(content)")
        #expect(reason.contains(edit.named), "\(reason)")
        #expect(content.registry.isPart(of: original))
        #expect(store.commit(installed(50)) == content.condition)
        switch edit.lost {
        case .nothing: #expect(content.registry == original)
        case .device: #expect(content.registry.device == nil)
        case .app: #expect(content.registry.apps["unit:app-1.service"] == nil)
        case .installation: #expect(content.registry.apps["unit:app-1.service"]?.installation == nil)
        }
        if edit.lost != .device { #expect(content.registry.device == original.device) }
        if content.registry.device != nil {
          #expect(content.registry.apps["unit:app-3.service"] == original.apps["unit:app-3.service"], "others go on")
        }
      }
    }
  }

  @Test(arguments: ["app", "identifier", "store"])
  func `a table that is gone is no first start`(table: String) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4))
    try workspace.sql("DROP TABLE \(table)")
    let before = try workspace.files()
    guard case .unusable(_, let reason) = try workspace.failure() else {
      Issue.record("not refused")
      return
    }
    #expect(reason.contains("SELECT"))
    #expect(try workspace.files()["identityd.db"] == before["identityd.db"])
  }

  @Test func `a version set back to nothing is no first start`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4))
    try workspace.sql("PRAGMA user_version = 0")
    guard case .unusable = try workspace.failure() else {
      Issue.record("not refused")
      return
    }
    try workspace.sql("PRAGMA user_version = 1")
    #expect(try workspace.found().registry == Registry(applying: sample(apps: 4)))
  }
}

extension Registry {
  /// Whether everything in this registry stands in the other just so: nothing was made up or changed.
  func isPart(of other: Registry) -> Bool {
    guard device == nil || device == other.device else { return false }
    return apps.allSatisfy { id, app in
      guard let known = other.apps[id], known.vendor == app.vendor, known.installed == app.installed else {
        return false
      }
      return app.installation == nil || app.installation == known.installation
    }
  }
}
