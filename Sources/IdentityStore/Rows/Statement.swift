import CSQLite
import CSodium
import Glibc
import IdentityCore

/// A statement that is compiled at its first use, and then reused.
struct Statement: ~Copyable, Sendable {
  private let compiled: CompiledStatement
  /// The handle; nil before the first use. SQLite treats nil as a statement without a row.
  private var statement: OpaquePointer? { unsafe compiled.statement }
  private var sql: String { compiled.sql() }

  init(_ sql: @escaping () -> String, on connection: Connection) {
    compiled = CompiledStatement(sql, on: connection)
  }

  /// Compiles the statement now, so that a mismatch with the schema is an error here.
  func compile() throws(DatabaseError) { try compiled.compile() }

  /// Binds the only parameter.
  func bind(_ value: Value) throws(DatabaseError) {
    guard case .integer(let number) = value else { return try bind([value]) }
    try compiled.compile()
    let code = unsafe sqlite3_bind_int64(statement, 1, number)
    guard code == SQLITE_OK else { throw DatabaseError(running: sql, code: code) }
  }

  /// Binds the parameters `?1`, `?2`, … in order. SQLite copies the values.
  func bind(_ values: [Value]) throws(DatabaseError) {
    if values.isEmpty { return }
    try compiled.compile()
    var row = RowBytes()
    values.append(to: &row)
    let code = unsafe row.bytes.withUnsafeBytes { unsafe bind(row, at: $0, Self.copied) }
    guard code == SQLITE_OK else { throw DatabaseError(running: sql, code: code) }
  }

  /// Binds the columns of a row in order.
  ///
  /// - Parameters:
  ///   - bytes: the bytes of the row.
  ///   - lifetime: whether the bytes stay in place as long as they are bound, or SQLite copies them.
  private func bind(_ row: borrowing RowBytes, at bytes: UnsafeRawBufferPointer, _ lifetime: sqlite3_destructor_type?)
    -> Int32
  {
    var values = unsafe EncodedValues(bytes, from: row.start)
    var parameter: Int32 = 0
    while let kind = values.next() {
      let content = unsafe values.content
      guard let start = content.baseAddress else { return SQLITE_MISUSE }
      parameter += 1
      let code =
        switch kind {
        case .integer: unsafe sqlite3_bind_int64(statement, parameter, values.number)
        case .text:
          unsafe sqlite3_bind_text64(
            statement, parameter, start.assumingMemoryBound(to: CChar.self), UInt64(content.count), lifetime,
            UInt8(SQLITE_UTF8))
        case .blob: unsafe sqlite3_bind_blob64(statement, parameter, start, UInt64(content.count), lifetime)
        case .null, .table: unsafe sqlite3_bind_null(statement, parameter)
        }
      guard code == SQLITE_OK else { return code }
    }
    return SQLITE_OK
  }

  /// Advances to the next row.
  ///
  /// - Returns: false if there is no further row.
  func step() throws(DatabaseError) -> Bool {
    try compiled.compile()
    let code = unsafe sqlite3_step(statement)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw DatabaseError(running: sql, justNow: code)
    }
  }

  /// Executes a statement that returns no rows, and resets it.
  ///
  /// - Parameter row: the values of the parameters, in order.
  func run(_ row: borrowing RowBytes) throws(DatabaseError) {
    try compiled.compile()
    let failure = unsafe row.bytes.withUnsafeBytes { bytes -> DatabaseError? in
      defer {
        // The result of a reset repeats the result of the last step. Clearing the bindings drops the
        // pointers to `bytes`.
        unsafe sqlite3_reset(statement)
        unsafe sqlite3_clear_bindings(statement)
      }
      let code = unsafe bind(row, at: bytes, Self.unmoved)
      guard code == SQLITE_OK else { return DatabaseError(running: sql, code: code) }
      let result = unsafe sqlite3_step(statement)
      return result == SQLITE_DONE ? nil : DatabaseError(running: sql, justNow: result)
    }
    if let failure { throw failure }
  }

  /// Executes a statement, ignores its result, and resets it.
  func run(_ values: [Value] = []) throws(DatabaseError) {
    defer { reset() }
    try bind(values)
    _ = try step()
  }

  /// The number of rows that the last writing statement of the connection inserted, changed or removed.
  var changes: Int64 { unsafe sqlite3_changes64(sqlite3_db_handle(statement)) }

  /// Resets the statement for its next use. The result of a reset repeats that of the last step, which was
  /// thrown already.
  func reset() { unsafe sqlite3_reset(statement) }

  /// Appends the first columns of the current row. A type that the schema does not use becomes NULL, so no
  /// proof matches.
  func append(_ columns: Int, to row: inout RowBytes) {
    for column in 0..<Int32(columns) {
      // A single look-up of the column. Functions of the value are not thread-safe, and a statement has one owner.
      let value = unsafe sqlite3_column_value(statement, column)
      let kind: RowBytes.Kind
      switch unsafe sqlite3_value_type(value) {
      case SQLITE_INTEGER:
        row.append(unsafe sqlite3_value_int64(value))
        continue
      case SQLITE_TEXT: kind = .text
      case SQLITE_BLOB: kind = .blob
      default:
        row.appendNull()
        continue
      }
      let start = unsafe sqlite3_value_blob(value)
      let count = unsafe Int(sqlite3_value_bytes(value))
      unsafe row.append(kind, UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }
  }

  /// Executes a statement that returns one row at most, and resets it.
  ///
  /// - Returns: the first columns of the row, or nil if there is no row.
  func row(_ parameters: [Value], columns: Int) throws(DatabaseError) -> [Value]? {
    defer { reset() }
    try bind(parameters)
    return try step() ? values(columns) : nil
  }

  /// Returns the first columns of the current row. A type that the schema does not use becomes NULL, so no
  /// proof matches.
  func values(_ count: Int) -> [Value] { (0..<Int32(count)).map { value($0) ?? .null } }

  /// Returns a column of the current row with its stored type; nil for a type that the schema does not use.
  func value(_ column: Int32) -> Value? {
    switch unsafe sqlite3_column_type(statement, column) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .integer(integer(column))
    case SQLITE_TEXT: text(column).map(Value.text)
    case SQLITE_BLOB: blob(column).map(Value.blob)
    default: nil
    }
  }

  /// Returns whether a column contains a proof, in a time that does not depend on the position of a difference.
  func holds(_ proof: Proof, in column: Int32) -> Bool {
    guard unsafe sqlite3_column_type(statement, column) == SQLITE_BLOB else { return false }
    return unsafe proof.withBytes { proof in
      let bytes = unsafe self.bytes(in: column).assumingMemoryBound(to: UInt8.self)
      let proof = unsafe proof.assumingMemoryBound(to: UInt8.self)
      guard bytes.count == crypto_verify_32_BYTES, proof.count == bytes.count, let start = bytes.baseAddress,
        let other = proof.baseAddress
      else { return false }
      // A quarter of the cost of sodium_memcmp, which takes any length.
      return unsafe crypto_verify_32(start, other) == 0
    }
  }

  /// Returns whether the current row has the values of another row, with the same types.
  ///
  /// The time depends on the position of the first difference. It helps nobody to forge a proof, because only the very
  /// same row passes.
  func holds(_ row: borrowing RowBytes) -> Bool {
    var column: Int32 = 0
    return unsafe row.bytes.withUnsafeBytes { bytes in
      var values = unsafe EncodedValues(bytes, from: row.start)
      while let kind = values.next() {
        let type = unsafe sqlite3_column_type(statement, column)
        let isSame =
          switch kind {
          case .integer: type == SQLITE_INTEGER && integer(column) == values.number
          case .text: unsafe type == SQLITE_TEXT && holds(values.content, in: column)
          case .blob: unsafe type == SQLITE_BLOB && holds(values.content, in: column)
          case .null: type == SQLITE_NULL
          case .table: false
          }
        guard isSame else { return false }
        column += 1
      }
      return true
    }
  }

  private func holds(_ bytes: UnsafeRawBufferPointer, in column: Int32) -> Bool {
    let stored = unsafe self.bytes(in: column)
    guard stored.count == bytes.count else { return false }
    guard let start = stored.baseAddress, let other = bytes.baseAddress else { return unsafe bytes.isEmpty }
    return unsafe memcmp(start, other, bytes.count) == 0
  }

  /// The bytes of a text or blob in the current row, valid until the next step. Text is read as a blob too: as text
  /// SQLite would copy it, to add a NUL.
  private func bytes(in column: Int32) -> UnsafeRawBufferPointer {
    let start = unsafe sqlite3_column_blob(statement, column)
    let count = unsafe Int(sqlite3_column_bytes(statement, column))
    return unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
  }

  func integer(_ column: Int32) -> Int64 { unsafe sqlite3_column_int64(statement, column) }

  func text(_ column: Int32) -> [UInt8]? {
    guard let start = unsafe sqlite3_column_text(statement, column) else { return nil }
    let count = unsafe Int(sqlite3_column_bytes(statement, column))
    return unsafe Array(UnsafeBufferPointer(start: start, count: count))
  }

  func blob(_ column: Int32) -> [UInt8]? {
    let count = unsafe Int(sqlite3_column_bytes(statement, column))
    guard let start = unsafe sqlite3_column_blob(statement, column) else { return count == 0 ? [] : nil }
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// SQLITE_STATIC: the bytes stay in place.
  private static var unmoved: sqlite3_destructor_type? { nil }

  /// SQLITE_TRANSIENT: SQLite copies the bytes. The macro is a cast that Swift does not import.
  private static var copied: sqlite3_destructor_type { unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
}

/// A statement handle of SQLite. The handle holds its connection, so it is finalized before the connection closes.
@safe
private final class CompiledStatement: @unchecked Sendable {
  // Sendable: like its connection, it has one owner.
  private(set) var statement: OpaquePointer?
  let sql: () -> String
  private let connection: Connection

  init(_ sql: @escaping () -> String, on connection: Connection) {
    self.sql = sql
    self.connection = connection
  }

  deinit { unsafe sqlite3_finalize(statement) }

  /// Compiles the statement unless that was done before.
  func compile() throws(DatabaseError) {
    if unsafe statement == nil { unsafe statement = try connection.compile(sql()) }
  }
}

/// The values of a row in their encoded form, one after the other. Used only as long as the bytes of the row stay in place.
@safe
private struct EncodedValues {
  private let bytes: UnsafeRawBufferPointer
  private var offset: Int
  /// The content of the value. Its address is valid even if it is empty: for a null pointer SQLite would bind NULL.
  private(set) var content: UnsafeRawBufferPointer

  /// Begins before the first value.
  ///
  /// - Parameter start: the offset of the first value.
  init(_ bytes: UnsafeRawBufferPointer, from start: Int) {
    unsafe self.bytes = bytes
    offset = start
    unsafe content = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<start])
  }

  /// Moves to the next value, and returns its kind; nil behind the last one.
  mutating func next() -> RowBytes.Kind? {
    guard unsafe offset < bytes.count, let kind = unsafe RowBytes.Kind(code: bytes[offset]) else { return nil }
    let start = offset + RowColumn.headLength
    let count = unsafe bytes.loadUnaligned(fromByteOffset: offset + 1, as: UInt64.self)
    offset = start + Int(UInt64(littleEndian: count))
    unsafe content = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<offset])
    return kind
  }

  /// The number in the content of an integer.
  var number: Int64 { unsafe Int64(littleEndian: content.loadUnaligned(as: Int64.self)) }
}
