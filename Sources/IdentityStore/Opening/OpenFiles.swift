import IdentityCore
import LinuxSystem

/// An open connection with its statements.
struct OpenFiles: ~Copyable, Sendable {
  let database: Database
  /// The identities of the files that the connection writes. If other files take their names, the next
  /// start uses those.
  private let file: FileStatus
  private let log: FileStatus
  let frame: LogFrame
  private let begin: Statement
  private let end: Statement
  private let rollback: Statement
  private let tables: Tables

  init(_ database: consuming Database, in directory: borrowing StateDirectory) throws {
    guard let file = try directory.folder.status(of: Store.fileName),
      let log = try directory.folder.status(of: Store.logName)
    else { throw DatabaseError.noConnection }
    let frame = try LogFrame(of: database)
    let tables = try Tables(database)
    let rollback = database.prepare("ROLLBACK")
    // Compiled in advance: memory may be exhausted when the rollback is needed.
    try rollback.compile()
    self.tables = tables
    self.rollback = rollback
    begin = database.prepare("BEGIN IMMEDIATE")
    end = database.prepare("COMMIT")
    self.file = file
    self.log = log
    self.frame = frame
    self.database = database
  }

  /// Reads the items that a reading lacks.
  func readItems(
    of reading: inout Reading, _ authenticator: borrowing Authenticator, _ cipher: ItemCipher?, path: String
  ) throws(DatabaseError) {
    try reading.readItems(database, authenticator, cipher, path: path)
  }

  /// The number of bytes written to the WAL since the last checkpoint.
  var logSize: Int64 { Int64(database.pagesInLog) * Int64(frame.length) }

  /// Returns whether the connection writes to these files.
  func writes(to file: FileStatus, log: FileStatus) -> Bool { file.isSame(as: self.file) && log.isSame(as: self.log) }

  /// Runs `body` and writes the row of `store` in one transaction, which is synced on return.
  ///
  /// - Parameter cipher: nil if the key of items is missing.
  /// - Returns: the committed ledger.
  /// - Throws: ``UncertainCommit`` if COMMIT failed but all of the transaction may be on disk, else a `DatabaseError`.
  func commit(
    after ledger: Ledger, _ cipher: ItemCipher?, _ authenticator: borrowing Authenticator,
    _ body: (inout Edit) throws(DatabaseError) -> Void
  ) throws -> Ledger {
    var next = ledger
    next.row.revision += 1
    var edit = Edit(tables, consume next, cipher)
    try begin.run()
    // A failed rollback is ignored: an open transaction is not part of the committed state that a rewrite reads.
    do throws(DatabaseError) {
      try body(&edit)
      try edit.finish(after: ledger, authenticator)
    } catch {
      try? rollback.run([])
      throw error
    }
    do throws(DatabaseError) {
      try end.run()
    } catch {
      try? rollback.run([])
      // The disk had no room for the last frame, which ends the commit. So no start finds the commit.
      if error.isFull { throw error }
      throw UncertainCommit(cause: error)
    }
    return edit.ledger
  }

  /// Returns the secret of an item as it is stored, or nil if there is none.
  func secret(of item: Item) throws(DatabaseError) -> StoredSecret? { try tables.secret.find(item.number) }

  /// Writes all committed content into a new file, without syncing it.
  func copy(into path: String) throws(DatabaseError) {
    try database.prepare("VACUUM INTO ?1").run([.text(path)])
  }
}

/// A commit that failed so late that the disk may have all of it.
///
/// If the next start finds the commit, the commit takes effect. A rewrite of the store leaves it out. The outcome
/// cannot be decided at once: a record of it would have to be written to the disk that has just failed.
struct UncertainCommit: Error {
  let cause: any Error
}

extension Database {
  /// Creates the tables of this version and their first rows, in one transaction.
  ///
  /// - Parameter key: the new data key, wrapped.
  func create(
    identity: UUID, created: Timestamp, settings: StoredSettings, key: WrappedKey,
    _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      try execute(Schema.creation, as: "make the tables")
      var ledger = Ledger()
      ledger.row = try StoreRow(identity: identity, created: created)
      var edit = Edit(try Tables(self), ledger, nil)
      try edit.begin(settings, authenticator)
      try edit.wrap(key, authenticator)
      try edit.finish(after: nil, authenticator)
    }
  }
}
