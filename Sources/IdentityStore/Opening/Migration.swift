import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem

/// A migration to the schema version of this program from an earlier version, which lacks some tables and has its events
/// in another one.
struct Migration: Equatable, Sendable {
  /// The schema version from which it starts.
  let version: Int64
  /// The table of events.
  let events: Table
  /// The SQL that creates the missing tables, and replaces the table of events.
  let creation: String

  /// Returns the table of that version in place of a table of this version.
  func replaced(_ table: Table) -> Table { table.place == events.place ? events : table }

  /// Whether both start from the same version.
  static func == (one: Migration, other: Migration) -> Bool { one.version == other.version }
}

extension Store {
  /// Migrates a verified store of an earlier version and reads it back.
  ///
  /// - Parameters:
  ///   - reading: the content of the store.
  ///   - files: the connection to the store, which is replaced.
  /// - Returns: the content after the migration.
  /// - Throws: the error of the disk. Either nothing was changed, or the next start finds the migrated store.
  static func migrated(
    _ reading: Reading, _ files: inout OpenFiles?, in directory: borrowing StateDirectory,
    _ authenticator: borrowing Authenticator, _ keys: StoreKeys, _ options: Options
  ) throws -> Reading {
    guard let migration = reading.migration, files != nil else { throw DatabaseError.noConnection }
    try files?.database.migrate(reading, by: migration, authenticator)
    files = nil
    let database = try connect("\(directory.folder.path)/\(fileName)", options, readOnly: false)
    let migrated = try Reading(database, authenticator, keys, options.migrations)
    guard migrated.damage.isEmpty, migrated.ledger.revision == reading.ledger.revision + 1 else {
      throw SystemError(call: "the migrated store reads back differently", code: EIO)
    }
    files = try OpenFiles(database, in: directory)
    return migrated
  }
}

extension Database {
  /// Adds the tables that an earlier version lacks and writes the events anew, in one transaction with the new schema
  /// version.
  func migrate(
    _ reading: Reading, by migration: Migration, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      try execute(
        "\(migration.creation) PRAGMA user_version = \(Schema.version);", as: "create the tables of this version")
      var next = reading.ledger
      next.revision += 1
      next.digests.includeAllTables()
      next.digests[EventBatch.table.place] = Digest()
      next.eventBlocks = EventBlocks()
      // Without events, the number of the last one is kept.
      if let first = reading.events.first { next.lastEvent = first.sequence - 1 }
      var edit = Edit(try Tables(self), next, nil)
      try edit.append(reading.events, authenticator)
      try edit.finish(
        identity: reading.store, created: reading.created, after: reading.ledger, authenticator)
    }
  }
}
