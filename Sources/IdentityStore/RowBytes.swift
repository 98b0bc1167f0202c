import Glibc
import IdentityCore

/// What is stored as a row, without its revision and its proof.
protocol StoredRow {
  /// Its first column.
  var key: Value { get }
  /// Appends its columns.
  func append(to row: inout RowBytes)
}

extension StoredRow {
  /// The columns by themselves.
  var columns: [Value] {
    var row = RowBytes()
    append(to: &row)
    return row.values
  }
}

extension [Value]: StoredRow {
  var key: Value { self[0] }

  func append(to row: inout RowBytes) { for value in self { row.append(value) } }
}

/// Values as bytes, one behind the other: what a proof is made of, and what SQLite takes the columns of a row from. No two
/// lists of values have the same.
///
/// Each value is its kind, its length in eight bytes, the least significant first, and itself. One buffer serves row after
/// row.
struct RowBytes: Sendable {
  /// What a value is.
  enum Kind: UInt8 {
    /// The name of the table stands before the values.
    case table = 1
    case null
    case integer
    case text
    case blob
  }

  /// A value, and where it stands.
  struct Column {
    let kind: Kind?
    let range: Range<Int>
  }

  private(set) var bytes: [UInt8] = []
  /// Where the first value begins: behind the name of the table.
  private(set) var start = 0

  /// Begins without a value.
  init(behind table: String? = nil) {
    bytes.reserveCapacity(512)
    guard let table else { return }
    append(.table, count: table.utf8.count)
    bytes.append(contentsOf: table.utf8)
    start = bytes.count
  }

  /// Begins anew, as a row of a table.
  mutating func begin(_ table: Table) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: table.head)
    start = bytes.count
  }

  // MARK: In

  mutating func append(_ value: Value) {
    switch value {
    case .null: append(.null, count: 0)
    case .integer(let number): append(number)
    case .text(let value): append(.text, value)
    case .blob(let value): append(.blob, value)
    }
  }

  mutating func append(_ number: Int64) {
    bytes.append(addingCapacity: Self.headLength + 8) { span in
      Self.append(.integer, count: 8, to: &span)
      span.append(number: UInt64(bitPattern: number))
    }
  }

  mutating func append(_ kind: Kind, _ value: [UInt8]) {
    unsafe value.withUnsafeBytes { unsafe append(kind, $0) }
  }

  mutating func append(_ kind: Kind, _ value: UnsafeRawBufferPointer) {
    bytes.append(addingCapacity: Self.headLength + value.count) { span in
      Self.append(kind, count: value.count, to: &span)
      unsafe span.append(value)
    }
  }

  mutating func append(_ proof: Proof) { unsafe proof.withBytes { unsafe append(.blob, $0) } }

  mutating func append(_ text: Text) { append(.text, text.bytes) }

  mutating func append(_ text: Text?) { if let text { append(text) } else { append(.null) } }

  mutating func append(_ isSo: Bool) { append(isSo ? 1 : 0 as Int64) }

  mutating func append(_ uuid: UUID) { append(.text, count: UUID.textLength) { uuid.append(to: &$0) } }

  mutating func append(_ word: String) {
    append(.text, count: word.utf8.count)
    bytes.append(contentsOf: word.utf8)
  }

  mutating func append(_ time: Timestamp) { append(.text, count: Timestamp.textLength) { time.append(to: &$0) } }

  /// Appends a value that is written piece by piece.
  ///
  /// - Parameters:
  ///   - count: how many bytes it has.
  ///   - write: appends them.
  mutating func append(_ kind: Kind, count: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
    // In one piece: there are a dozen of them in a row.
    bytes.append(addingCapacity: Self.headLength + count) { span in
      Self.append(kind, count: count, to: &span)
      let start = span.count
      write(&span)
      precondition(span.count == start + count)
    }
  }

  private mutating func append(_ kind: Kind, count: Int) {
    bytes.append(addingCapacity: Self.headLength) { Self.append(kind, count: count, to: &$0) }
  }

  /// Appends what stands before a value.
  @inline(__always)
  private static func append(_ kind: Kind, count: Int, to span: inout OutputSpan<UInt8>) {
    span.append(kind.rawValue)
    span.append(number: UInt64(count))
  }

  /// Appends values of another row as they are.
  mutating func append(valuesOf row: borrowing RowBytes, upTo end: Int) {
    bytes.append(contentsOf: row.bytes[row.start..<end])
  }

  /// Lets go of all that was appended behind that many bytes.
  mutating func cut(to length: Int) { bytes.removeSubrange(length...) }

  // MARK: Out

  /// The value that begins at a place, as ``append(_:)`` wrote it.
  func column(at place: Int) -> Column { Self.column(at: place, in: bytes) }

  static func column(at place: Int, in bytes: [UInt8]) -> Column {
    let start = place + headLength
    return Column(kind: Kind(rawValue: bytes[place]), range: start..<start + Int(number(at: place + 1, in: bytes)))
  }

  /// Of a value: its kind, and its length.
  private static let headLength = 9

  /// The values, without the name of the table.
  var values: [Value] {
    var values: [Value] = []
    var place = start
    while place < bytes.count {
      let column = column(at: place)
      place = column.range.upperBound
      values.append(value(in: column))
    }
    return values
  }

  /// The first value, which is the key of a row.
  var key: Value? { bytes.count > start ? value(in: column(at: start)) : nil }

  private func value(in column: Column) -> Value {
    switch column.kind {
    case .integer: .integer(number(in: column))
    case .text: .text(Array(bytes[column.range]))
    case .blob: .blob(Array(bytes[column.range]))
    case .null, .table, nil: .null
    }
  }

  /// The number that a column of eight bytes is.
  func number(in column: Column) -> Int64 { Int64(bitPattern: Self.number(at: column.range.lowerBound, in: bytes)) }

  /// Eight bytes, the least significant first, in one piece.
  static func number(at place: Int, in bytes: [UInt8]) -> UInt64 {
    unsafe bytes.span.extracting(place..<place + 8).withUnsafeBytes {
      unsafe UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self))
    }
  }

  /// Where that many values end, or all that there are.
  func end(ofColumns columns: Int) -> Int {
    var end = start
    for _ in 0..<columns where end < bytes.count { end = column(at: end).range.upperBound }
    return end
  }

  /// Whether the first values are the same in both, of the same table.
  func begins(like other: RowBytes, columns: Int) -> Bool {
    let end = end(ofColumns: columns)
    guard end <= other.bytes.count else { return false }
    return unsafe memcmp(bytes, other.bytes, end) == 0
  }
}

extension OutputSpan<UInt8> {
  /// Appends eight bytes, the least significant first.
  @inline(__always)
  mutating func append(number: UInt64) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append($0) }
  }

  /// Appends a text, for which there has to be room.
  @inline(__always)
  mutating func append(_ text: Text) { unsafe text.bytes.withUnsafeBytes { unsafe append($0) } }

  /// Appends bytes, for which there has to be room.
  @inline(__always)
  mutating func append(_ other: UnsafeRawBufferPointer) {
    guard let source = other.baseAddress else { return }
    unsafe withUnsafeMutableBufferPointer { buffer, count in
      precondition(other.count <= buffer.count - count)
      if let target = buffer.baseAddress {
        unsafe UnsafeMutableRawPointer(target + count).copyMemory(from: source, byteCount: other.count)
      }
      count += other.count
    }
  }
}

extension [UInt8] {
  /// Appends eight bytes, the least significant first.
  mutating func append(number: UInt64) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }
}
