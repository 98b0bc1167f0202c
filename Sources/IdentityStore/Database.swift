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
    let isOverQuota = code & 0xff == SQLITE_IOERR && errno == EDQUOT
    self.init(action: action, code: isOverQuota ? SQLITE_FULL : code)
  }

  init(action: String, code: Int32) {
    self.action = action
    self.code = code
  }

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

/// One SQLite connection, closed with its owner.
@safe
struct Database: ~Copyable, @unchecked Sendable {
  // Sendable: a connection has one owner, so only one thread at a time can use it, and SQLite is compiled thread-safe.
  private let connection: OpaquePointer

  /// Opens a file read-write.
  ///
  /// The VFS "unix-excl" locks the file for this process and keeps the index of the log in its memory: no other process
  /// can write, and there is no shared-memory file that could be cut under a running daemon (which would kill it).
  init(path: String, create: Bool) throws(DatabaseError) {
    _ = Self.settled
    _ = Self.hasNoSparePages
    var connection: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (create ? SQLITE_OPEN_CREATE : 0)
    let code = unsafe sqlite3_open_v2(path, &connection, flags, "unix-excl")
    guard code == SQLITE_OK, let connection = unsafe connection else {
      unsafe sqlite3_close(connection)
      throw DatabaseError(action: "open", code: code)
    }
    unsafe self.connection = connection
    // A foreign process may hold a lock for a moment; the bound keeps the writer answering. Neither these nor the
    // next two can fail for an open connection.
    unsafe sqlite3_busy_timeout(connection, 1_000)
    _ = unsafe csqlite_no_checkpoint_on_close(connection)
    _ = unsafe csqlite_defensive(connection)
  }

  /// For the whole process, once.
  private static let hasNoSparePages = csqlite_no_spare_pages() == SQLITE_OK

  // Not sqlite3_close(): that one refuses, and leaks the files, while a statement of the connection is left.
  deinit { unsafe sqlite3_close_v2(connection) }

  /// Whether SQLite fell back to a read-only descriptor, as it does without a word when it meets EROFS or EACCES.
  var isReadOnly: Bool { unsafe sqlite3_db_readonly(connection, "main") != 0 }

  /// Runs statements that return nothing that matters.
  ///
  /// - Parameter action: what an error calls them; nil for the statements themselves.
  func execute(_ sql: String, as action: String? = nil) throws(DatabaseError) {
    try check(action ?? sql, unsafe sqlite3_exec(connection, sql, nil, nil, nil))
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

  /// Compiles one statement.
  func prepare(_ sql: String) throws(DatabaseError) -> Statement {
    var statement: OpaquePointer?
    try check(sql, unsafe sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
    guard let statement = unsafe statement else { throw DatabaseError(action: sql, code: SQLITE_MISUSE) }
    return unsafe Statement(adopting: statement, sql: sql)
  }

  /// The first column of the first row, as text.
  func text(_ sql: String) throws(DatabaseError) -> String? {
    let statement = try prepare(sql)
    return try statement.step() ? String(decoding: statement.text(0) ?? [], as: UTF8.self) : nil
  }

  /// The first column of the first row, as a number.
  func integer(_ sql: String) throws(DatabaseError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// Gives back what the cache holds of the file and needs no more.
  func releaseMemory() { unsafe sqlite3_db_release_memory(connection) }

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
    let statement = try prepare("PRAGMA wal_checkpoint(PASSIVE)")
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
    unsafe sqlite3_db_status(connection, SQLITE_DBSTATUS_CACHE_WRITE, &count, &highest, forgets ? 1 : 0)
    return count
  }

  private func check(_ action: String, _ code: Int32) throws(DatabaseError) {
    guard code == SQLITE_OK else { throw DatabaseError(action: action, justNow: code) }
  }
}

/// A compiled statement, to be used again and again.
@safe
struct Statement: ~Copyable, @unchecked Sendable {
  // Sendable: it has one owner, as its connection has.
  private let statement: OpaquePointer
  private let sql: String

  fileprivate init(adopting statement: OpaquePointer, sql: String) {
    unsafe self.statement = statement
    self.sql = sql
  }

  deinit { unsafe sqlite3_finalize(statement) }

  /// Sets the only parameter.
  func bind(_ value: Value) throws(DatabaseError) {
    guard case .integer(let number) = value else { return try bind([value]) }
    let code = unsafe sqlite3_bind_int64(statement, 1, number)
    guard code == SQLITE_OK else { throw DatabaseError(action: sql, code: code) }
  }

  /// Sets the parameters `?1`, `?2`, … in order; SQLite makes copies of its own.
  func bind(_ values: [Value]) throws(DatabaseError) {
    if values.isEmpty { return }
    var row = RowBytes()
    values.append(to: &row)
    let code = unsafe row.bytes.withUnsafeBytes { unsafe bind(row, at: $0, Self.copied) }
    guard code == SQLITE_OK else { throw DatabaseError(action: sql, code: code) }
  }

  /// - Parameters:
  ///   - bytes: those of the row.
  ///   - lifetime: whether they stay where they are as long as they are bound.
  private func bind(_ row: borrowing RowBytes, at bytes: UnsafeRawBufferPointer, _ lifetime: sqlite3_destructor_type?)
    -> Int32
  {
    var place = row.start
    var parameter: Int32 = 0
    while place < bytes.count {
      let column = row.column(at: place)
      // Also behind the last byte there is an address: SQLite takes a null pointer for NULL.
      guard let start = unsafe bytes.baseAddress?.advanced(by: column.range.lowerBound) else { return SQLITE_MISUSE }
      let count = UInt64(column.range.count)
      place = column.range.upperBound
      parameter += 1
      let code =
        switch column.kind {
        case .integer: unsafe sqlite3_bind_int64(statement, parameter, row.number(in: column))
        case .text:
          unsafe sqlite3_bind_text64(
            statement, parameter, start.assumingMemoryBound(to: CChar.self), count, lifetime, UInt8(SQLITE_UTF8))
        case .blob: unsafe sqlite3_bind_blob64(statement, parameter, start, count, lifetime)
        case .null, .table, nil: unsafe sqlite3_bind_null(statement, parameter)
        }
      guard code == SQLITE_OK else { return code }
    }
    return SQLITE_OK
  }

  /// Runs to the next row.
  ///
  /// - Returns: false when there is none.
  func step() throws(DatabaseError) -> Bool {
    let code = unsafe sqlite3_step(statement)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw DatabaseError(action: sql, justNow: code)
    }
  }

  /// Runs a statement that returns no rows, and makes it ready for the next time.
  ///
  /// - Parameter row: what its parameters are set to, in order.
  func run(_ row: borrowing RowBytes) throws(DatabaseError) {
    let failure = unsafe row.bytes.withUnsafeBytes { bytes -> DatabaseError? in
      defer {
        // The result of a reset repeats that of the step before it. SQLite forgets the bytes, which may go now.
        unsafe sqlite3_reset(statement)
        unsafe sqlite3_clear_bindings(statement)
      }
      let code = unsafe bind(row, at: bytes, Self.unmoved)
      guard code == SQLITE_OK else { return DatabaseError(action: sql, code: code) }
      let result = unsafe sqlite3_step(statement)
      return result == SQLITE_DONE ? nil : DatabaseError(action: sql, justNow: result)
    }
    if let failure { throw failure }
  }

  /// Runs a statement that returns nothing that matters, and makes it ready for the next time.
  func run(_ values: [Value] = []) throws(DatabaseError) {
    defer { reset() }
    try bind(values)
    _ = try step()
  }

  /// How many rows the connection's last statement that writes inserted, changed or removed.
  var changes: Int64 { unsafe sqlite3_changes64(sqlite3_db_handle(statement)) }

  /// Makes the statement ready for the next time. Its result repeats that of the step before it, which was thrown already.
  func reset() { unsafe sqlite3_reset(statement) }

  /// Appends the first columns of the row. A type that the schema does not know counts as NULL, and proves nothing.
  func append(_ columns: Int, to row: inout RowBytes) {
    for column in 0..<Int32(columns) {
      let kind: RowBytes.Kind
      let start: UnsafeRawPointer?
      switch unsafe sqlite3_column_type(statement, column) {
      case SQLITE_INTEGER:
        row.append(integer(column))
        continue
      case SQLITE_TEXT: (kind, unsafe start) = (.text, unsafe UnsafeRawPointer(sqlite3_column_text(statement, column)))
      case SQLITE_BLOB: (kind, unsafe start) = (.blob, unsafe sqlite3_column_blob(statement, column))
      default:
        row.append(.null)
        continue
      }
      let count = unsafe Int(sqlite3_column_bytes(statement, column))
      unsafe row.append(kind, UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
  }

  /// Runs a statement that returns one row at most, and makes it ready for the next time.
  ///
  /// - Returns: the first columns of the row; nil when there is none.
  func row(_ parameters: [Value], columns: Int) throws(DatabaseError) -> [Value]? {
    defer { reset() }
    try bind(parameters)
    return try step() ? values(columns) : nil
  }

  /// The first columns of the row. A type that the schema does not know counts as NULL, and proves nothing.
  func values(_ count: Int) -> [Value] { (0..<Int32(count)).map { value($0) ?? .null } }

  /// A column of the row as the value it was stored as; nil for a type that the schema does not know.
  func value(_ column: Int32) -> Value? {
    switch unsafe sqlite3_column_type(statement, column) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .integer(integer(column))
    case SQLITE_TEXT: text(column).map(Value.text)
    case SQLITE_BLOB: blob(column).map(Value.blob)
    default: nil
    }
  }

  /// Whether a column holds these bytes, in a time that does not depend on where they differ.
  func holds(_ bytes: [UInt8], in column: Int32) -> Bool {
    guard unsafe sqlite3_column_type(statement, column) == SQLITE_BLOB,
      unsafe Int(sqlite3_column_bytes(statement, column)) == bytes.count,
      let start = unsafe sqlite3_column_blob(statement, column)
    else { return false }
    return unsafe sodium_memcmp(start, bytes, bytes.count) == 0
  }

  func integer(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(statement, column) }

  func text(_ column: Int32) -> [UInt8]? {
    guard let start = unsafe sqlite3_column_text(statement, column) else { return nil }
    let count = unsafe Int(sqlite3_column_bytes(statement, column))
    return unsafe Array(UnsafeBufferPointer(start: start, count: count))
  }

  private func blob(_ column: Int32) -> [UInt8]? {
    let count = unsafe Int(sqlite3_column_bytes(statement, column))
    guard let start = unsafe sqlite3_column_blob(statement, column) else { return count == 0 ? [] : nil }
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// SQLITE_STATIC: the bytes stay where they are.
  private static var unmoved: sqlite3_destructor_type? { nil }

  /// SQLITE_TRANSIENT: SQLite makes its own copy. The macro is a cast that Swift does not import.
  private static var copied: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}

/// A value of a column.
enum Value: Equatable, Sendable {
  case null
  case integer(Int64)
  case text([UInt8])
  case blob([UInt8])

  static func text(_ string: String) -> Value { .text(Array(string.utf8)) }
}
