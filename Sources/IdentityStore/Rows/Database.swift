import CSQLite
import CSodium
import CStoreFiles
import Glibc

/// An error of SQLite, or an error that is reported with a result code of SQLite.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
  /// The operation that failed.
  let action: String
  /// The extended result code (sqlite.org/rescode.html).
  let code: Int32

  /// The error as text, for example `commit: disk I/O error (1034)`.
  var description: String {
    guard let text = unsafe sqlite3_errstr(code) else { return "\(action): \(code)" }
    return unsafe "\(action): \(String(cString: text)) (\(code))"
  }

  /// Creates the error of the call to SQLite just before.
  ///
  /// SQLite distinguishes a full disk from other failed writes, but not an exceeded quota. In that case `errno` is
  /// still EDQUOT, because SQLite only undoes changes in memory after a failed write.
  ///
  /// - Parameter code: the result of the call.
  init(action: String, justNow code: Int32) {
    let isOverQuota = code == DatabaseError.writeFailed && errno == EDQUOT
    self.init(action: action, code: isOverQuota ? SQLITE_FULL : code)
  }

  /// Creates the error of a statement, which people are not shown, and of the call to SQLite just before.
  init(running sql: String, justNow code: Int32) { self.init(action: Self.action(of: sql), justNow: code) }

  /// Creates the error of a statement, which people are not shown.
  init(running sql: String, code: Int32) { self.init(action: Self.action(of: sql), code: code) }

  fileprivate static func action(of sql: String) -> String {
    switch sql.prefix(6) {
    case "SELECT", "PRAGMA": "read the database"
    case "COMMIT": "commit"
    default: "write to the database"
    }
  }

  init(action: String, code: Int32) {
    self.action = action
    self.code = code
  }

  /// SQLITE_IOERR_WRITE (sqlite.org/rescode.html), a macro that Swift cannot import.
  private static let writeFailed = SQLITE_IOERR | 3 << 8

  /// The error of writing to a store without a connection (SQLITE_MISUSE).
  static let noConnection = DatabaseError(action: "write to the store, which is closed", code: 21)

  /// Returns the error for a required row that is missing, or not as it was written (SQLITE_CORRUPT).
  static func unproven(_ table: String, _ key: Value) -> DatabaseError {
    let name =
      switch key {
      case .integer(let number): "\(number)"
      case .text(let bytes): String(decoding: bytes, as: UTF8.self)
      case .null, .blob: "?"
      }
    return DatabaseError(action: "find row \(name) of \(table) as it was written", code: 11)
  }

  /// Returns the error for a change that does not fit the stored data (SQLITE_MISUSE).
  static func impossible(_ action: String) -> DatabaseError { DatabaseError(action: action, code: 21) }

  /// Whether the disk or a quota is full.
  var isFull: Bool { code & 0xff == SQLITE_FULL }

  /// Whether the file lacks something that the statement names, such as a table (SQLITE_ERROR).
  var isAboutContent: Bool { code & 0xff == SQLITE_ERROR }

  /// Whether SQLite reports a damaged file. One failed read can cause the same error, so a single error proves nothing.
  var saysDamaged: Bool { code & 0xff == SQLITE_CORRUPT || code & 0xff == SQLITE_NOTADB }
}

/// A connection handle of SQLite, closed when its owner and the last of its statements are released.
@safe
final class Connection: @unchecked Sendable {
  // Sendable: only the owning `Database` and its statements use the handle.
  fileprivate let pointer: OpaquePointer

  fileprivate init(adopting pointer: OpaquePointer) { unsafe self.pointer = pointer }

  // Not sqlite3_close(): it refuses while the connection has a statement, and the files would leak.
  deinit { unsafe sqlite3_close_v2(pointer) }

  /// Compiles a statement.
  func compile(_ sql: String) throws(DatabaseError) -> OpaquePointer {
    var statement: OpaquePointer?
    let code = unsafe sqlite3_prepare_v3(pointer, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK else { throw DatabaseError(running: sql, justNow: code) }
    guard let statement = unsafe statement else { throw DatabaseError(running: sql, code: SQLITE_MISUSE) }
    return unsafe statement
  }
}

/// One SQLite connection, closed when its owner and the last of its statements are released.
struct Database: ~Copyable, Sendable {
  // A connection has one owner, so only one thread at a time uses it. SQLite is compiled thread-safe.
  private let connection: Connection

  /// Opens a database file, read-write unless `readOnly` is set.
  ///
  /// A VFS based on "unix-excl" locks the file for this process and keeps the WAL index in the memory of the process. So no
  /// other process can write, and there is no shared-memory file whose truncation would kill the running daemon.
  ///
  /// On a read-only file system this locking is neither possible nor needed. The connection then takes no locks and
  /// declares itself the only connection, so the WAL index is in memory too (sqlite.org/wal.html, "Use of WAL
  /// Without Shared-Memory").
  ///
  /// - Parameters:
  ///   - readOnly: whether the files are only read, because the file system is mounted read-only or the disk refuses writes.
  ///   - logLength: the number of bytes of the WAL to read; nil for all of it.
  init(path: String, create: Bool, readOnly: Bool = false, logLength: Int64? = nil) throws(DatabaseError) {
    _ = Self.countsNoMemory
    _ = Self.hasNoSparePages
    guard Self.hasFiles else { throw DatabaseError(action: "register the VFS", code: SQLITE_ERROR) }
    var connection: OpaquePointer?
    let access = readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0)
    let flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = unsafe sqlite3_open_v2(path, &connection, flags, readOnly ? CSTORE_LOCKLESS : CSTORE_LOCKING)
    guard code == SQLITE_OK, let connection = unsafe connection else {
      unsafe sqlite3_close(connection)
      throw DatabaseError(action: "open", code: code)
    }
    let exclusive = "PRAGMA locking_mode = EXCLUSIVE"
    var outcome = unsafe readOnly ? sqlite3_exec(connection, exclusive, nil, nil, nil) : SQLITE_OK
    if let logLength, outcome == SQLITE_OK { outcome = unsafe cstore_end_log(connection, logLength) }
    guard outcome == SQLITE_OK else {
      unsafe sqlite3_close(connection)
      throw DatabaseError(running: exclusive, code: outcome)
    }
    self.connection = unsafe Connection(adopting: connection)
    // Another process may hold a lock for a moment. The timeout of one second keeps the writer responsive. This call
    // and the next two cannot fail for an open connection.
    unsafe sqlite3_busy_timeout(connection, 1_000)
    _ = unsafe csqlite_no_checkpoint_on_close(connection)
    _ = unsafe csqlite_defensive(connection)
  }

  /// Turns off the preallocation of cache pages, once for the whole process.
  private static let hasNoSparePages = csqlite_no_spare_pages() == SQLITE_OK

  /// Registers the VFSes that open the files of a store, once for the whole process.
  private static let hasFiles = cstore_register() == SQLITE_OK

  /// Whether SQLite fell back to a read-only descriptor, as it does silently after EROFS or EACCES.
  var isReadOnly: Bool { unsafe sqlite3_db_readonly(connection.pointer, "main") != 0 }

  /// Executes statements and ignores their results.
  ///
  /// - Parameter action: the name of the operation in an error; nil for one that follows from the SQL text.
  func execute(_ sql: String, as action: String? = nil) throws(DatabaseError) {
    try check(action ?? DatabaseError.action(of: sql), unsafe sqlite3_exec(connection.pointer, sql, nil, nil, nil))
  }

  /// Runs a closure in one transaction. If the closure throws, none of its changes takes effect.
  func transaction(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
    try execute("BEGIN IMMEDIATE")
    do {
      try body()
      try execute("COMMIT")
    } catch {
      try? execute("ROLLBACK")
      throw error
    }
  }

  /// Returns a statement that is compiled at its first use: a start uses only a few of all statements.
  func prepare(_ sql: @autoclosure @escaping () -> String) -> Statement { Statement(sql, on: connection) }

  /// Returns the first column of the first row as text, or nil if there is no row.
  func text(_ sql: String) throws(DatabaseError) -> String? {
    let statement = prepare(sql)
    return try statement.step() ? String(decoding: statement.text(0) ?? [], as: UTF8.self) : nil
  }

  /// Returns the first column of the first row as a number, or nil if there is no row.
  func integer(_ sql: String) throws(DatabaseError) -> Int64? {
    let statement = prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// Frees the cache memory that the connection does not need.
  func releaseMemory() { unsafe sqlite3_db_release_memory(connection.pointer) }

  /// Checkpoints the whole WAL, syncs the database, and truncates the WAL.
  ///
  /// - Throws: SQLITE_BUSY if a reader is in the way.
  func checkpoint() throws(DatabaseError) {
    guard try checkpointIfFree() else {
      throw DatabaseError(action: "write the log to the database", code: SQLITE_BUSY)
    }
  }

  /// Checkpoints like ``checkpoint()``, but returns false if a reader is in the way.
  func checkpointIfFree() throws(DatabaseError) -> Bool {
    guard try integer(Self.checkpointing) == 0 else { return false }
    _ = pagesInLog(forgets: true)
    return true
  }

  /// Turns off the memory statistics of SQLite for the whole process, before the first connection.
  private static let countsNoMemory = csqlite_count_no_memory() == SQLITE_OK

  private static let checkpointing = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// Checkpoints the WAL and syncs the database, without truncating the WAL.
  ///
  /// The next commit overwrites the WAL from its beginning. The sync of a file whose length does not change
  /// writes content only. The call does not wait for readers. If a reader is in the way, a later call completes
  /// the checkpoint.
  func writeBackLog() throws(DatabaseError) {
    let statement = prepare("PRAGMA wal_checkpoint(PASSIVE)")
    guard try statement.step() else { return }
    if statement.integer(0) == 0, statement.integer(1) == statement.integer(2) { _ = pagesInLog(forgets: true) }
  }

  /// The number of pages written to the WAL since the last checkpoint.
  var pagesInLog: Int32 { pagesInLog(forgets: false) }

  private func pagesInLog(forgets: Bool) -> Int32 {
    var count: Int32 = 0
    var highest: Int32 = 0
    // Fails only for an unknown counter.
    unsafe sqlite3_db_status(connection.pointer, SQLITE_DBSTATUS_CACHE_WRITE, &count, &highest, forgets ? 1 : 0)
    return count
  }

  private func check(_ action: String, _ code: Int32) throws(DatabaseError) {
    guard code == SQLITE_OK else { throw DatabaseError(action: action, justNow: code) }
  }
}
