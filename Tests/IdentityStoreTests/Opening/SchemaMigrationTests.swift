import Foundation
import IdentityCore
import IdentityWire
import TestSupport
import Testing

@testable import IdentityStore

/// The migration of stores of earlier schema versions.
@Suite(.serialized) struct SchemaMigrationTests {
  /// A schema version, with the content that a store of this version can have.
  struct Earlier: Sendable, CustomTestStringConvertible {
    let version: Int64
    let changes: [[Change]]
    /// The events of the store, and its content.
    let events: [Event]
    let registry: Registry

    init(_ version: Int64) {
      self.version = version
      changes = EarlierTables.changes.filter { changes in !changes.contains { $0.since > version } }
      var registry = Registry()
      events = changes.flatMap { registry.recorded($0).compactMap(\.event) }
      self.registry = registry
    }

    var testDescription: String { "version \(version)" }

    static let all = (Schema.earliest..<Schema.version).map(Earlier.init)
  }

  private let options = Store.Options()

  @Test func `the manual names the version that this program writes`() throws {
    #expect(try Document(.manual).lines.contains("This release writes schema version \(Schema.version)."))
  }

  /// Makes a store of an earlier version, with an empty log.
  private func make(_ earlier: Earlier, _ workspace: Workspace) throws {
    try workspace.commit(earlier.changes, withEvents: true)
    try workspace.usePages(of: 4_096)
    try write(earlier, workspace)
    try workspace.sql("PRAGMA user_version = \(earlier.version)")
  }

  private func write(_ earlier: Earlier, _ workspace: Workspace) throws {
    let directory = try workspace.openState()
    let key = try StoreKey.read(in: directory.folder)
    var credentials = KeyCredentials()
    let keys = try StoreKeys(KeyRing(&credentials), in: directory.folder)
    let database = try Store.connect(workspace.path(Store.fileName), options, readOnly: false)
    let reading = try Reading(database, key.authenticator, keys)
    try database.transaction { () throws(DatabaseError) in
      var next = reading.ledger
      try EarlierTables.write(earlier.version, &next, database, key.authenticator)
      if earlier.version < 3 { try EarlierTables.write(reading.registry, &next, database, key.authenticator) }
      if earlier.version < 2 { try EarlierTables.write(earlier.events, &next, database, key.authenticator) }
      var edit = Edit(try Tables(database), next, nil)
      try edit.finish(after: reading.ledger, key.authenticator)
    }
  }

  private func expectMigrated(_ workspace: Workspace, _ earlier: Earlier, at place: SourceLocation = #_sourceLocation)
    throws
  {
    #expect(try workspace.sql("PRAGMA user_version") == "\(Schema.version)\n", sourceLocation: place)
    let content = try workspace.found()
    #expect(content.registry == earlier.registry && content.condition == .writable, sourceLocation: place)
    #expect(content.events == earlier.events.map { EventLine($0) }, sourceLocation: place)
    #expect(content.notices == [], sourceLocation: place)
  }

  @Test(arguments: Earlier.all)
  func `row 18: an earlier store becomes a store of this version in one transaction`(earlier: Earlier) throws {
    let workspace = try Workspace()
    try make(earlier, workspace)
    let revision = try workspace.sql("SELECT revision + 1 FROM store")
    try workspace.withStore(options: options) { _, content in
      #expect(content.notices == [.migrated(from: earlier.version)])
      #expect(content.registry == earlier.registry && content.condition == .writable)
    }
    #expect(try workspace.sql("SELECT revision FROM store") == revision)
    try expectMigrated(workspace, earlier)
  }

  @Test(arguments: Earlier.all)
  func `rows 9 and 18: a migration that is cut off at any moment leaves one version intact`(earlier: Earlier) throws {
    let workspace = try Workspace(inMemory: true)
    try make(earlier, workspace)
    let files = try migrationInLog(of: workspace)
    let log = try #require(files[Store.logName])
    var migrations = 0
    let lengths = Array(stride(from: 1, to: log.count, by: 512)) + [log.count]
    for length in lengths {
      var cut = files
      cut[Store.logName] = Array(log.prefix(length))
      try workspace.restore(cut)
      try workspace.withStore(options: options) { _, content in
        #expect(
          content.registry == earlier.registry && content.condition == .writable, "\(length) of \(log.count) bytes")
        migrations += content.notices == [.migrated(from: earlier.version)] ? 1 : 0
      }
      try expectMigrated(workspace, earlier)
    }
    // The last start finds the whole log, so it has nothing to migrate.
    #expect(migrations > 10 && migrations == lengths.count - 1, "\(migrations) of \(lengths.count)")
  }

  /// The columns of an item are part of what its secret is encrypted with.
  @Test func `no column of an item is later than the first version, because a migration encrypts no secret again`() {
    #expect(Item.table.columns.allSatisfy { $0.since == 1 })
  }

  /// Migrates the store without a checkpoint, and returns its files: the earlier database, and the migration in the log.
  private func migrationInLog(of workspace: Workspace) throws -> [String: [UInt8]] {
    let directory = try workspace.openState()
    let key = try StoreKey.read(in: directory.folder)
    var credentials = KeyCredentials()
    let keys = try StoreKeys(KeyRing(&credentials), in: directory.folder)
    let database = try Store.connect(workspace.path(Store.fileName), options, readOnly: false)
    let reading = try Reading(database, key.authenticator, keys)
    try database.migrate(reading, key.authenticator)
    return try workspace.files(apartFrom: ["identityd.db-shm"])
  }

  @Test(arguments: Earlier.all)
  func `a damaged store is served as it is and not migrated`(earlier: Earlier) throws {
    let workspace = try Workspace()
    try make(earlier, workspace)
    try workspace.sql("UPDATE device SET name = 'x' WHERE n = 4")
    let before = try workspace.read(Store.fileName)
    try workspace.withStore(options: options) { _, content in
      #expect(content.condition.damage != nil)
      #expect(content.registry.unproven == .devices && content.registry.apps == earlier.registry.apps)
    }
    #expect(try workspace.read(Store.fileName) == before)
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"), arguments: Earlier.all, [4_096, 16_384])
  func `on a full disk a store is served as it is, and migrated once there is room`(
    earlier: Earlier, spare: Int
  ) throws {
    let whole = try Workspace()
    try make(earlier, whole)
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=384k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    for (name, bytes) in try whole.files() { try workspace.write(name, bytes) }
    try workspace.fillDisk("ballast", sparing: spare)
    let before = try workspace.read(Store.fileName)
    try workspace.withStore(options: options) { store, content in
      #expect(content.registry == earlier.registry && content.condition == .full)
      #expect(store.commit(installed(1)) == .full)
      let inVain = store.heal()
      #expect(inVain == nil && store.condition == .full)
      #expect(try workspace.read(Store.fileName) == before)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == earlier.registry)
      try store.mustClose()
    }
    try expectMigrated(workspace, earlier)
  }
}

extension Change {
  /// The schema version that can store the change.
  fileprivate var since: Int64 {
    switch self {
    case .machineLeft, .machineAcknowledged, .machineForgotten, .fleetAdvanced, .fleetRecorded, .fleetForgotten,
      .backupTaken:
      2
    case .deviceLeft, .leftDeviceForgotten: 4
    case .proofKeyStored, .proofKeyForgotten: 6
    default: 1
    }
  }
}

extension TableDigests {
  /// Keeps the first digests, as before the later tables were added.
  mutating func keepTables(_ count: Int) {
    var row = RowBytes()
    append(to: &row)
    guard case .blob(let bytes)? = row.values.last else { return }
    self = TableDigests(Array(bytes.prefix(count * (8 + Authenticator.length)))) ?? self
  }
}
