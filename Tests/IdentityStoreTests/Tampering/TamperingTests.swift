import IdentityCore
import Testing

@testable import IdentityStore

/// Rows edited with sqlite3, as root might do with good intentions.
struct TamperingTests {
  /// An edit, the expected text of the fault, and the data that is not served afterwards.
  struct Edit: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let named: String
    let lost: Lost

    /// The lost data. With `doubt` each row is authentic but all of them together are not, so one may be
    /// of an earlier time.
    enum Lost: Equatable, Sendable { case device, app, installation, account, listed, nothing, doubt(Records) }

    init(_ testDescription: String, _ sql: String, named: String, lost: Lost) {
      self.testDescription = testDescription
      self.sql = sql
      self.named = named
      self.lost = lost
    }
  }

  static let row = "level = 'installation' AND app = 'unit:app-1.service'"
  static let device = "level = 'device' AND app IS NULL AND vendor IS NULL AND ended IS NULL"
  static let count = "proven rows and should hold"
  static let otherTable = """
    DROP INDEX identifier_in_force; ALTER TABLE identifier RENAME TO old;
    CREATE TABLE identifier (n INTEGER NOT NULL, level TEXT NOT NULL, app TEXT, vendor TEXT, value TEXT NOT NULL,
    origin TEXT NOT NULL, created TEXT NOT NULL, cause TEXT NOT NULL, author TEXT, ended TEXT, end_cause TEXT,
    revision INTEGER NOT NULL, proof BLOB NOT NULL) STRICT;
    INSERT INTO identifier SELECT * FROM old;
    """

  static let edits: [Edit] = [
    Edit(
      "one letter of a value", "UPDATE identifier SET value = upper(value) WHERE \(row)",
      named: "a row of identifier (3 installation unit:app-1.service) is not authentic", lost: .installation),
    Edit(
      "a row moved to another app", "UPDATE identifier SET app = 'unit:thief.service' WHERE \(row)",
      named: "(3 installation unit:thief.service) is not authentic", lost: .installation),
    Edit(
      "two values swapped",
      """
      CREATE TEMP TABLE two AS SELECT n, value FROM identifier WHERE n IN (3, 4);
      UPDATE identifier SET value = (SELECT value FROM two WHERE two.n <> identifier.n) WHERE n IN (3, 4);
      """, named: "(3 installation unit:app-1.service) is not authentic, and 1 more", lost: .installation),
    Edit(
      "a manifest removed",
      """
      UPDATE app SET vendor = NULL, access_groups = NULL, device_identifier = NULL, version_order = NULL
      WHERE id = 'unit:app-1.service'
      """, named: "a row of app (unit:app-1.service) is not authentic", lost: .app),
    Edit(
      "the seal inverted", "UPDATE setting SET sealed = 1 - sealed", named: "a row of setting (1  1 0a0a)",
      lost: .account),
    Edit(
      "two devices swapped",
      """
      UPDATE device SET n = -1 WHERE n = 1; UPDATE device SET n = 1 WHERE n = 3; UPDATE device SET n = 3 WHERE n = -1
      """, named: "a row of device (1 \(uuid(32)) a \"tablet\"", lost: .listed),
    Edit(
      "two batches of events swapped",
      """
      UPDATE event_batch SET last = -1 WHERE last = 3; UPDATE event_batch SET last = 3 WHERE last = 5;
      UPDATE event_batch SET last = 5 WHERE last = -1
      """, named: "a row of event_batch (4 to 3) is not authentic, and 1 more",
      lost: .nothing),
    Edit(
      "deleted events", "DELETE FROM event_batch WHERE last = 5", named: "events 4 to 5 are missing, and 1 more",
      lost: .doubt(.events)),
    Edit(
      "several deleted batches of events", "DELETE FROM event_batch WHERE last BETWEEN 5 AND 7",
      named: "events 4 to 7 are missing, and 1 more", lost: .doubt(.events)),
    Edit(
      "the last event deleted", "DELETE FROM event_batch WHERE last = (SELECT last_event FROM store)",
      named: "event 55 is missing, and 1 more", lost: .doubt(.events)),
    Edit(
      "all events deleted", "DELETE FROM event_batch", named: "events 1 to 55 are missing, and 1 more",
      lost: .doubt(.events)),
    Edit(
      "all identifiers deleted", "DELETE FROM identifier; DELETE FROM app", named: count,
      lost: .doubt([.identifiers, .apps])),
    Edit(
      "a duplicate row", "\(otherTable) INSERT INTO identifier SELECT * FROM old WHERE \(row); DROP TABLE old",
      named: "(3 installation unit:app-1.service) is not authentic", lost: .nothing),
    Edit(
      "the store's own row deleted", "DELETE FROM store", named: "the row of table store is missing", lost: .doubt(.all)
    ),
    Edit(
      "the last event's number and a row", "UPDATE store SET last_event = 8; DELETE FROM identifier WHERE \(row)",
      named: "the row of table store is not authentic", lost: .doubt(.all)),
  ]

  @Test(arguments: edits) func `an edited store names the edited row and serves verified rows`(edit: Edit) throws {
    let workspace = try Workspace()
    let original = try workspace.commit(sample(apps: 4) + life, withEvents: true)
    let events = try workspace.found().events
    try workspace.sql(edit.sql)
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(content)")
        #expect(reason.contains(edit.named), "\(reason)")
        let found = content.registry
        #expect(found.isPart(of: original))
        #expect(content.events == events.suffix(content.events.count), "they are without a gap up to the last")
        #expect(store.commit(installed(50)) == content.condition)
        // An event that is not authentic hides the events before it, and puts nothing else in doubt.
        #expect(found.unproven.isEmpty == reason.contains("a row of event_batch"))
        var inDoubt: Records = []
        if case .doubt(let kinds) = edit.lost {
          inDoubt = kinds
          #expect(found.unproven == kinds)
        }
        if inDoubt == .all { return #expect(found.isNothing && content.events.isEmpty) }
        #expect(content.events.isEmpty == inDoubt.contains(.events))
        #expect((found[.device] == nil) == (edit.lost == .device || inDoubt.contains(.identifiers)))
        #expect((found.apps["unit:app-1.service"] == nil) == (edit.lost == .app || inDoubt.contains(.apps)))
        #expect(
          (found[.installation("unit:app-1.service")] == nil)
            == (edit.lost == .installation || inDoubt.contains(.identifiers)))
        #expect((found.account == nil) == (edit.lost == .account))
        #expect((found.machine == nil) == (edit.lost == .account))
        #expect(
          (found.devices.count != original.devices.count) == (edit.lost == .listed || inDoubt.contains(.devices)))
        guard !inDoubt.contains(.apps) else { return }
        #expect(found.apps["unit:app-3.service"] == original.apps["unit:app-3.service"], "others go on")
      }
    }
  }

  @Test(arguments: Schema.tables.map(\.name) + ["store", "secret"])
  func `a missing table is not taken for a first start`(table: String) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4))
    try workspace.sql("DROP TABLE \(table)")
    let before = try workspace.files()
    let content = try workspace.found()
    let reason = try #require(content.condition.damage)
    #expect(reason.contains("no such table") || reason.contains("read the database: SQL logic error"), "\(reason)")
    #expect(content.registry.isNothing)
    #expect(try workspace.read(try #require(content.asideNames.first)) == before["identityd.db"])
  }

  @Test func `a schema version of 0 is damage, takes no change and loses nothing`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4) + life)
    try workspace.sql("PRAGMA user_version = 0")
    let before = try workspace.files()["identityd.db"]
    try workspace.withStore { store, content in
      #expect(content.condition.damage?.contains("it has schema version 0") == true)
      #expect(content.registry.isNothing)
      #expect(store.commit([deviceMade]) == content.condition)
    }
    #expect(try workspace.files()["identityd.db"] == before)
    try workspace.sql("PRAGMA user_version = \(Schema.version)")
    #expect(try workspace.found().registry == Registry(applying: sample(apps: 4) + life))
  }
}
