import Glibc
import IdentityCore
import IdentityWire
import LinuxSystem

extension Store {
  /// Migrates a verified store of an earlier schema version and reads it back.
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
    guard files != nil else { throw DatabaseError.noConnection }
    try files?.database.migrate(reading, authenticator)
    files = nil
    let database = try connect("\(directory.folder.path)/\(fileName)", options, readOnly: false)
    let migrated = try Reading(database, authenticator, keys)
    guard migrated.damage.isEmpty, migrated.ledger.row.revision == reading.ledger.row.revision + 1 else {
      throw SystemError(call: "the migrated store reads back differently", code: EIO)
    }
    files = try OpenFiles(database, in: directory)
    return migrated
  }
}

extension Database {
  /// Writes the tables anew that this schema version has in another form, in one transaction with the new version.
  ///
  /// - Parameter reading: the verified content of the store.
  func migrate(_ reading: Reading, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      var migration = SchemaMigration(from: reading.version, reading.ledger)
      for record in Schema.records { try migration.keep(record, self, authenticator) }
      try migration.divide(self, authenticator)
      if reading.version < EventBatch.table.since {
        try execute("DROP TABLE \(EarlierEvent.table.name)")
        migration.forget(events: reading.events)
      }
      try execute(
        "\(migration.creation) PRAGMA user_version = \(Schema.version);", as: "create the tables of this version")
      var edit = Edit(try Tables(self), migration.ledger, nil)
      for rows in migration.rows { try rows.insert(in: &edit, authenticator) }
      if reading.version < EventBatch.table.since { try edit.append(reading.events, authenticator) }
      try edit.finish(after: reading.ledger, authenticator)
    }
  }
}

/// Records of one type that a migration writes anew.
private protocol MigratedRows {
  func insert(in edit: inout Edit, _ authenticator: borrowing Authenticator) throws(DatabaseError)
}

private struct RecordsOfType<Record: StoredRecord>: MigratedRows {
  let records: [Record]

  func insert(in edit: inout Edit, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    for record in records { try edit.insert(record, authenticator) }
  }
}

/// The rows that a migration writes anew, and the tables that it makes for them.
private struct SchemaMigration: ~Copyable {
  private let version: Int64
  /// The committed state, without the rows that are written anew.
  private(set) var ledger: Ledger
  /// The SQL that replaces the tables.
  private(set) var creation = ""
  /// The rows to write into these tables.
  private(set) var rows: [any MigratedRows] = []

  init(from version: Int64, _ ledger: Ledger) {
    self.version = version
    self.ledger = ledger
    self.ledger.row.revision += 1
    self.ledger.row.digests.includeAllTables()
  }

  /// Keeps the records of a type whose table has other columns now, and replaces the table. Makes a table that the earlier
  /// version lacks.
  mutating func keep<Record: StoredRecord>(
    _ type: Record.Type, _ database: borrowing Database, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let isNew = Record.table.since > version
    guard isNew || Record.table.columns.contains(where: { $0.since > version }) else { return }
    if !isNew { rows.append(RecordsOfType(records: try records(type, database, authenticator))) }
    replace(Record.table)
  }

  /// Divides the tables of version 2 in which an empty key stood for another owner than the other keys.
  mutating func divide(_ database: borrowing Database, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    guard version < 3 else { return }
    let uses = try records(AppUseRecord.self, database, authenticator)
    replace(AppUseRecord.table)
    rows.append(RecordsOfType(records: uses.filter { !$0.id.isEmpty }))
    rows.append(RecordsOfType(records: uses.filter(\.id.isEmpty).map { DayRecord($0.use) }))
    guard version >= EarlierFleetRow.table.since else { return }
    let fleet = try records(EarlierFleetRow.self, database, authenticator)
    rows.append(RecordsOfType(records: fleet.compactMap(\.record)))
    rows.append(RecordsOfType(records: fleet.compactMap(\.standing)))
  }

  /// Has the events numbered from the first one that is kept.
  mutating func forget(events: [EventLine]) {
    ledger.eventBlocks = EventBlocks()
    // Without events, the number of the last one is kept.
    if let first = events.first { ledger.row.lastEvent = first.sequence - 1 }
  }

  private mutating func replace(_ table: RecordTable) {
    creation += "DROP TABLE IF EXISTS \(table.name);\n\(Schema.tables[table.digestIndex].creation)"
    ledger.row.digests[table.digestIndex] = Digest()
  }

  private func records<Record: StoredRecord>(
    _ type: Record.Type, _ database: borrowing Database, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> [Record] {
    var records: [Record] = []
    var found = ProvenRows()
    var reader = RowReader(version: version)
    try found.read(type, through: &reader, database, authenticator) { record, _ in
      records.append(record)
      return true
    }
    guard found.damage.isEmpty else { throw .unproven(Record.table.name, .null) }
    return records
  }
}
