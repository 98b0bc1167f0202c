import LinuxSystem

/// A connection with the statements compiled for it.
struct OpenFiles: ~Copyable, Sendable {
  let database: Database
  /// Which files the connection writes: others under the same names would take their place at the next start.
  private let file: FileStatus
  private let log: FileStatus
  private let begin: Statement
  private let end: Statement
  private let rollback: Statement
  private let insertApp: Statement
  private let insertIdentifier: Statement
  private let updateStore: Statement

  init(_ database: consuming Database, in directory: borrowing StateDirectory) throws {
    guard let file = try directory.folder.status(of: Store.fileName),
      let log = try directory.folder.status(of: Store.logName)
    else { throw DatabaseError.noConnection }
    let begin = try database.prepare("BEGIN IMMEDIATE")
    let end = try database.prepare("COMMIT")
    let rollback = try database.prepare("ROLLBACK")
    let insertApp = try database.prepare(Table.app.insertion)
    let insertIdentifier = try database.prepare(Table.identifier.insertion)
    let updateStore = try database.prepare(
      "UPDATE store SET revision = ?1, row_count = ?2, digest = ?3, proof = ?4 WHERE only = 1")
    self.file = file
    self.log = log
    self.begin = begin
    self.end = end
    self.rollback = rollback
    self.insertApp = insertApp
    self.insertIdentifier = insertIdentifier
    self.updateStore = updateStore
    self.database = database
  }

  /// Whether those are the files this connection writes.
  func writes(to file: FileStatus, log: FileStatus) -> Bool { file.isSame(as: self.file) && log.isSame(as: self.log) }

  /// Writes rows and the store's own row in one transaction, synced when this returns.
  func commit(_ rows: [(row: Row, proof: [UInt8])], store own: [Value], proof: [UInt8]) throws(DatabaseError) {
    try begin.run([])
    do {
      for (row, proof) in rows { try insert(row, proof: proof) }
      try updateStore.run([own[3], own[4], own[5], .blob(proof)])
      try end.run([])
    } catch {
      // Where the rollback fails too, the rewrite reads what was committed before: an open transaction is not in it.
      try? rollback.run([])
      throw error
    }
  }

  private func insert(_ row: Row, proof: [UInt8]) throws(DatabaseError) {
    let values = row.values + [.blob(proof)]
    if row.table.name == Table.app.name { try insertApp.run(values) } else { try insertIdentifier.run(values) }
  }

  /// Writes everything that is committed into a new file. It is not synced.
  func copy(into path: String) throws(DatabaseError) {
    try database.prepare("VACUUM INTO ?1").run([.text(path)])
  }
}
