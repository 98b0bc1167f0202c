import IdentityCore
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
  /// Nil for a store of an earlier version, which is not written.
  private let tables: Tables?
  /// Nil for a store that had no items yet.
  private let secrets: SecretStatements?

  init(_ database: consuming Database, version: Int64, in directory: borrowing StateDirectory) throws {
    guard let file = try directory.folder.status(of: Store.fileName),
      let log = try directory.folder.status(of: Store.logName)
    else { throw DatabaseError.noConnection }
    let tables = version == Schema.version ? try Tables(database) : nil
    let secrets = version > VersionTwo.version ? try tables?.secret ?? SecretStatements(database) : nil
    let rollback = database.prepare("ROLLBACK")
    // It may be needed where there is no memory.
    try rollback.compile()
    self.tables = tables
    self.secrets = secrets
    self.rollback = rollback
    begin = database.prepare("BEGIN IMMEDIATE")
    end = database.prepare("COMMIT")
    self.file = file
    self.log = log
    self.database = database
  }

  /// Whether those are the files this connection writes.
  func writes(to file: FileStatus, log: FileStatus) -> Bool { file.isSame(as: self.file) && log.isSame(as: self.log) }

  /// Writes in one transaction, synced when this returns: what `body` does, and the store's own row.
  ///
  /// - Throws: ``UncertainCommit`` where all was written but perhaps not synced, else a `DatabaseError`.
  ///
  /// - Parameter sealing: nil where the key of items is missing.
  /// - Returns: what is committed then.
  func commit(
    identity: UUID, created: Timestamp, after ledger: Ledger, _ sealing: ItemSealing?,
    _ authenticator: borrowing Authenticator, _ body: (inout Edit) throws(DatabaseError) -> Void
  ) throws -> Ledger {
    guard let tables else { throw DatabaseError.noConnection }
    var next = ledger
    next.revision += 1
    var edit = Edit(tables, consume next, sealing)
    try begin.run()
    // Where the rollback fails too, the rewrite reads what was committed before: an open transaction is not in it.
    do throws(DatabaseError) {
      try body(&edit)
      try edit.finish(identity: identity, created: created, after: ledger, authenticator)
    } catch {
      try? rollback.run([])
      throw error
    }
    do throws(DatabaseError) {
      try end.run()
    } catch {
      try? rollback.run([])
      // The frame that ends a commit comes last, and found no room.
      if error.isFull { throw error }
      throw UncertainCommit(cause: error)
    }
    return edit.ledger
  }

  /// The secret of an item as it is stored; nil where there is none.
  func secret(of item: Item) throws(DatabaseError) -> StoredSecret? { try secrets?.find(item.number) }

  /// Writes everything that is committed into a new file. It is not synced.
  func copy(into path: String) throws(DatabaseError) {
    try database.prepare("VACUUM INTO ?1").run([.text(path)])
  }
}

/// A commit failed so late that the disk may have all of it: a start that finds it there brings it into force. A rewrite
/// leaves it out.
///
/// Nothing can settle that at once: a word on it would have to be written to the disk that has just failed to take one.
struct UncertainCommit: Error {
  let cause: any Error
}

extension Database {
  /// Makes the tables of this version and what they begin with, in one transaction.
  ///
  /// - Parameters:
  ///   - preparation: what has to happen before, in the same transaction.
  ///   - revision: that of the rows.
  ///   - key: the new data key.
  func create(
    after preparation: String = "", identity: UUID, created: Timestamp, revision: Int64, settings: Settings,
    key: WrappedKey, changes: [Change], _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      try execute(preparation + Schema.creation, as: "make the tables")
      var ledger = Ledger()
      ledger.revision = revision
      ledger.epoch = try .fresh()
      var edit = Edit(try Tables(self), ledger, nil)
      try edit.begin(settings, authenticator)
      try edit.wrap(key, authenticator)
      try edit.apply(changes.map { RecordedChange($0, event: nil) }, authenticator)
      try edit.finish(identity: identity, created: created, after: nil, authenticator)
    }
  }
}
