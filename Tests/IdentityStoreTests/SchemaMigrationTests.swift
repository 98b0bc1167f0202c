import Foundation
import IdentityCore
import IdentityWire
import TestSupport
import Testing

@testable import IdentityStore

/// The migration of a store of schema version 1, which lacks the tables `former_machine`, `fleet` and `backup`, and has
/// one event in each row.
struct SchemaMigrationTests {
  private let options = Store.Options()
  private let changes = (sample(apps: 4) + life).filter { !$0.contains { $0.isInLaterTable } }
  /// The events of the store, and its content.
  private let events: [Event]
  private let registry: Registry

  init() {
    var registry = Registry()
    events = changes.flatMap { registry.recorded($0).compactMap(\.event) }
    self.registry = registry
  }

  /// Makes a store of version 1: without the later tables, without their digests in the row of `store`, and with its own
  /// table of events.
  private func makeEarlier(_ workspace: Workspace) throws {
    try workspace.commit(changes, withEvents: true)
    try workspace.sql(
      """
      CREATE TABLE event (
        sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, topic TEXT NOT NULL, name TEXT NOT NULL,
        audience TEXT NOT NULL, attributes BLOB NOT NULL, revision INTEGER NOT NULL, proof BLOB NOT NULL
      ) STRICT
      """)
    try writeEarlier(workspace)
    try workspace.sql(
      """
      DROP TABLE event_batch; DROP TABLE former_machine; DROP TABLE fleet; DROP TABLE backup; PRAGMA user_version = 1
      """)
  }

  private func writeEarlier(_ workspace: Workspace) throws {
    let directory = try workspace.openState()
    let key = try StoreKey.read(in: directory.folder)
    var credentials = KeyCredentials()
    let keys = try StoreKeys(KeyRing(&credentials), in: directory.folder)
    let database = try Store.connect(workspace.path(Store.fileName), options, readOnly: false)
    let reading = try Reading(database, key.authenticator, keys, options.migrations)
    try database.transaction { () throws(DatabaseError) in
      var next = reading.ledger
      next.digests.forgetLaterTables()
      next.digests[EventBatch.table.place] = Digest()
      let earlier = Table(EarlierEvent.table)
      let table = TableStatements(earlier, database)
      for event in events {
        var row = RowBytes()
        row.begin(earlier)
        event.append(earlier: &row)
        row.append(next.revision)
        next.digests[EventBatch.table.place].add(try table.insert(&row, key.authenticator))
      }
      var edit = Edit(try Tables(database), next, nil)
      try edit.finish(
        identity: reading.store, created: reading.created, after: reading.ledger, key.authenticator)
    }
  }

  private func expectMigrated(_ workspace: Workspace, at place: SourceLocation = #_sourceLocation) throws {
    #expect(try workspace.sql("PRAGMA user_version") == "\(Schema.version)\n", sourceLocation: place)
    let content = try workspace.found()
    #expect(content.registry == registry && content.condition == .writable, sourceLocation: place)
    #expect(content.events == events.map { EventLine($0) }, sourceLocation: place)
    #expect(content.notices == [], sourceLocation: place)
  }

  @Test func `row 18: an earlier store becomes a store of this version in one transaction`() throws {
    let workspace = try Workspace()
    try makeEarlier(workspace)
    let revision = try workspace.sql("SELECT revision + 1 FROM store")
    try workspace.withStore(options: options) { _, content in
      #expect(content.notices == [.migrated(from: 1)])
      #expect(content.registry == registry && content.condition == .writable)
    }
    #expect(try workspace.sql("SELECT revision FROM store") == revision)
    try expectMigrated(workspace)
  }

  @Test func `rows 9 and 18: a migration that is cut off at any moment leaves one version intact`() throws {
    let workspace = try Workspace(inMemory: true)
    try makeEarlier(workspace)
    let files = try migrationInLog(of: workspace)
    let log = try #require(files[Store.logName])
    var migrations = 0
    let lengths = Array(stride(from: 1, to: log.count, by: 512)) + [log.count]
    for length in lengths {
      var cut = files
      cut[Store.logName] = Array(log.prefix(length))
      try workspace.restore(cut)
      try workspace.withStore(options: options) { _, content in
        #expect(content.registry == registry && content.condition == .writable, "\(length) of \(log.count) bytes")
        migrations += content.notices == [.migrated(from: 1)] ? 1 : 0
      }
      try expectMigrated(workspace)
    }
    // The last start finds the whole log, so it has nothing to migrate.
    #expect(migrations > 10 && migrations == lengths.count - 1)
  }

  /// Migrates the store without a checkpoint, and returns its files: the earlier database, and the migration in the log.
  private func migrationInLog(of workspace: Workspace) throws -> [String: [UInt8]] {
    let directory = try workspace.openState()
    let key = try StoreKey.read(in: directory.folder)
    var credentials = KeyCredentials()
    let keys = try StoreKeys(KeyRing(&credentials), in: directory.folder)
    let database = try Store.connect(workspace.path(Store.fileName), options, readOnly: false)
    let reading = try Reading(database, key.authenticator, keys, options.migrations)
    try database.migrate(reading, by: options.migrations[0], key.authenticator)
    return try workspace.files(apartFrom: ["identityd.db-shm"])
  }

  @Test func `a damaged store is served as it is and not migrated`() throws {
    let workspace = try Workspace()
    try makeEarlier(workspace)
    try workspace.sql("UPDATE device SET name = 'x' WHERE n = 4")
    let before = try workspace.read(Store.fileName)
    try workspace.withStore(options: options) { _, content in
      #expect(content.condition.damage != nil)
      #expect(content.registry.unproven == .devices && content.registry.apps == registry.apps)
    }
    #expect(try workspace.read(Store.fileName) == before)
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"), arguments: [4_096, 16_384])
  func `on a full disk a store is served as it is, and migrated once there is room`(spare: Int) throws {
    let whole = try Workspace()
    try makeEarlier(whole)
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=384k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    for (name, bytes) in try whole.files() { try workspace.write(name, bytes) }
    try workspace.fillDisk("ballast", sparing: spare)
    let before = try workspace.read(Store.fileName)
    try workspace.withStore(options: options) { store, content in
      #expect(content.registry == registry && content.condition == .full)
      #expect(store.commit(installed(1)) == .full)
      let inVain = store.heal()
      #expect(inVain == nil && store.condition == .full)
      #expect(try workspace.read(Store.fileName) == before)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == registry)
      try store.mustClose()
    }
    try expectMigrated(workspace)
  }
}

extension Event {
  /// Appends the columns of a row of schema version 1.
  fileprivate func append(earlier row: inout RowBytes) {
    row.append(sequence)
    row.append(time)
    row.append(topic.rawValue)
    row.append(.text, name.bytes)
    switch audience {
    case .sharing: row.append("sharing")
    case .vendor(let vendor): row.append("vendor:\(vendor)")
    case .app(let app): row.append("app:\(app)")
    case .group(let group): row.append("group:\(group)")
    }
    row.append(.blob, attributes.flatMap { [$0.name, $0.value] }.terminated)
  }
}

extension Change {
  fileprivate var isInLaterTable: Bool {
    switch self {
    case .machineLeft, .machineAcknowledged, .machineForgotten, .fleetAdvanced, .fleetRecorded, .fleetForgotten,
      .backupTaken:
      true
    default: false
    }
  }
}

extension TableDigests {
  /// Encodes three digests less, as before the later tables were added.
  fileprivate mutating func forgetLaterTables() {
    var row = RowBytes()
    append(to: &row)
    guard case .blob(let bytes)? = row.values.last else { return }
    self = TableDigests(Array(bytes.dropLast(3 * (8 + Authenticator.length)))) ?? self
  }
}
