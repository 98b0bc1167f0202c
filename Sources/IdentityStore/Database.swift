import CSQLite
import CSodium
import Glibc

/// SQLite refused something.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
  /// What was tried.
  let action: String
  /// The extended result code (sqlite.org/rescode.html).
  let code: Int32

  /// `commit: disk I/O error (1034)`.
  var description: String {
    guard let text = unsafe sqlite3_errstr(code) else { return "\(action): \(code)" }
    return unsafe "\(action): \(String(cString: text)) (\(code))"
  }

  /// - Parameter code: of the call to SQLite just before. It tells a full disk from any failed write, but not a full quota:
  ///   that is in errno still, because what SQLite does behind a failed write is to take back, in memory.
  init(action: String, justNow code: Int32) {
    let isOverQuota = code == DatabaseError.writeFailed && errno == EDQUOT
    self.init(action: action, code: isOverQuota ? SQLITE_FULL : code)
  }

  init(action: String, code: Int32) {
    self.action = action
    self.code = code
  }

  /// SQLITE_IOERR_WRITE (sqlite.org/rescode.html), a macro that Swift cannot import.
  private static let writeFailed = SQLITE_IOERR | 3 << 8

  /// There is no connection to the store (SQLITE_MISUSE).
  static let noConnection = DatabaseError(action: "write to the store, which is closed", code: 21)

  /// A row that has to be there is not, or not as it was written (SQLITE_CORRUPT).
  static func unproven(_ table: String, _ key: Value) -> DatabaseError {
    let name =
      switch key {
      case .integer(let number): "\(number)"
      case .text(let bytes): String(decoding: bytes, as: UTF8.self)
      case .null, .blob: "?"
      }
    return DatabaseError(action: "find row \(name) of \(table) as it was written", code: 11)
  }

  /// A change does not fit what is stored (SQLITE_MISUSE).
  static func impossible(_ action: String) -> DatabaseError { DatabaseError(action: action, code: 21) }

  /// Whether the disk or a quota is full.
  var isFull: Bool { code & 0xff == SQLITE_FULL }

  /// Whether what was asked for is not in the file, as when a table is missing (SQLITE_ERROR).
  var isAboutContent: Bool { code & 0xff == SQLITE_ERROR }

  /// Whether SQLite takes the file for damaged. One failed read can look like that too, so once proves nothing.
  var saysDamaged: Bool { code & 0xff == SQLITE_CORRUPT || code & 0xff == SQLITE_NOTADB }
}

/// What SQLite has of a connection, closed with the last that uses it: its owner, or a statement of it.
@safe
final class Connection: @unchecked Sendable {
  // Sendable: whoever uses it has its database, or a statement of it.
  fileprivate let pointer: OpaquePointer

  fileprivate init(adopting pointer: OpaquePointer) { unsafe self.pointer = pointer }

  // Not sqlite3_close(): that one refuses, and leaks the files, while a statement of the connection is left.
  deinit { unsafe sqlite3_close_v2(pointer) }

  /// Compiles a statement.
  func compile(_ sql: String) throws(DatabaseError) -> OpaquePointer {
    var statement: OpaquePointer?
    let code = unsafe sqlite3_prepare_v3(pointer, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK else { throw DatabaseError(action: sql, justNow: code) }
    guard let statement = unsafe statement else { throw DatabaseError(action: sql, code: SQLITE_MISUSE) }
    return unsafe statement
  }
}

/// One SQLite connection, closed with its owner.
struct Database: ~Copyable, Sendable {
  // A connection has one owner, so only one thread at a time can use it, and SQLite is compiled thread-safe.
  private let connection: Connection

  /// Opens a file read-write.
  ///
  /// The VFS "unix-excl" locks the file for this process and keeps the index of the log in its memory: no other process
  /// can write, and there is no shared-memory file that could be cut under a running daemon (which would kill it).
  ///
  /// On a disk that is mounted read-only neither is possible in that way, nor needed: there the connection takes no locks,
  /// and has the index in memory because it is the only one by its own word (sqlite.org/wal.html, "Use of WAL Without
  /// Shared-Memory").
  ///
  /// - Parameter readOnly: whether the disk is mounted so.
  init(path: String, create: Bool, readOnly: Bool = false) throws(DatabaseError) {
    _ = Self.settled
    _ = Self.hasNoSparePages
    var connection: OpaquePointer?
    let access = readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0)
    let flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = unsafe sqlite3_open_v2(path, &connection, flags, readOnly ? "unix-none" : "unix-excl")
    guard code == SQLITE_OK, let connection = unsafe connection else {
      unsafe sqlite3_close(connection)
      throw DatabaseError(action: "open", code: code)
    }
    let exclusive = "PRAGMA locking_mode = EXCLUSIVE"
    let outcome = unsafe readOnly ? sqlite3_exec(connection, exclusive, nil, nil, nil) : SQLITE_OK
    guard outcome == SQLITE_OK else {
      unsafe sqlite3_close(connection)
      throw DatabaseError(action: exclusive, code: outcome)
    }
    self.connection = unsafe Connection(adopting: connection)
    // A foreign process may hold a lock for a moment; the bound keeps the writer answering. Neither these nor the
    // next two can fail for an open connection.
    unsafe sqlite3_busy_timeout(connection, 1_000)
    _ = unsafe csqlite_no_checkpoint_on_close(connection)
    _ = unsafe csqlite_defensive(connection)
  }

  /// For the whole process, once.
  private static let hasNoSparePages = csqlite_no_spare_pages() == SQLITE_OK

  /// Whether SQLite fell back to a read-only descriptor, as it does without a word when it meets EROFS or EACCES.
  var isReadOnly: Bool { unsafe sqlite3_db_readonly(connection.pointer, "main") != 0 }

  /// Runs statements that return nothing that matters.
  ///
  /// - Parameter action: what an error calls them; nil for the statements themselves.
  func execute(_ sql: String, as action: String? = nil) throws(DatabaseError) {
    try check(action ?? sql, unsafe sqlite3_exec(connection.pointer, sql, nil, nil, nil))
  }

  /// Runs what belongs together: all of it is in force afterwards, or nothing.
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

  /// A statement, which is compiled when it is first used: of all that there are, a start needs a few.
  func prepare(_ sql: @autoclosure @escaping () -> String) -> Statement { Statement(sql, on: connection) }

  /// The first column of the first row, as text.
  func text(_ sql: String) throws(DatabaseError) -> String? {
    let statement = prepare(sql)
    return try statement.step() ? String(decoding: statement.text(0) ?? [], as: UTF8.self) : nil
  }

  /// The first column of the first row, as a number.
  func integer(_ sql: String) throws(DatabaseError) -> Int64? {
    let statement = prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// Gives back what the cache holds of the file and needs no more.
  func releaseMemory() { unsafe sqlite3_db_release_memory(connection.pointer) }

  /// Writes the whole log back into the file, syncs it, and cuts the log to nothing.
  func checkpoint() throws(DatabaseError) {
    guard try checkpointIfFree() else { throw DatabaseError(action: Self.checkpointing, code: SQLITE_BUSY) }
  }

  /// The same; false where a reader was in the way.
  func checkpointIfFree() throws(DatabaseError) -> Bool {
    guard try integer(Self.checkpointing) == 0 else { return false }
    _ = pagesInLog(forgets: true)
    return true
  }

  /// What holds for all connections, settled before the first one.
  private static let settled: Int32 = csqlite_count_no_memory()

  private static let checkpointing = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// Writes the log back into the file and syncs it. The log stays as long as it is, and the next commit begins at its front:
  /// where a file neither grows nor shrinks, a sync writes what is in it and nothing else.
  ///
  /// Waits for no reader. Where one is in the way, the next time does it.
  func writeBackLog() throws(DatabaseError) {
    let statement = prepare("PRAGMA wal_checkpoint(PASSIVE)")
    guard try statement.step() else { return }
    if statement.integer(0) == 0, statement.integer(1) == statement.integer(2) { _ = pagesInLog(forgets: true) }
  }

  /// The size of what was written to the log since it was last written back, in bytes.
  var logSize: Int64 { Int64(pagesInLog(forgets: false)) * Self.frameSize }

  /// A page of the database and what the log holds beside it (sqlite.org/fileformat.html, section 4.1).
  private static let frameSize: Int64 = 4_096 + 24

  private func pagesInLog(forgets: Bool) -> Int32 {
    var count: Int32 = 0
    var highest: Int32 = 0
    // Fails only for a counter that there is not.
    unsafe sqlite3_db_status(connection.pointer, SQLITE_DBSTATUS_CACHE_WRITE, &count, &highest, forgets ? 1 : 0)
    return count
  }

  private func check(_ action: String, _ code: Int32) throws(DatabaseError) {
    guard code == SQLITE_OK else { throw DatabaseError(action: action, justNow: code) }
  }
}
