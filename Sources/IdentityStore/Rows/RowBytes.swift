import Glibc
import IdentityCore

/// Content that is stored as a row. Revision and proof are added when the row is written.
protocol StoredRow {
  /// The first column.
  var key: Value { get }
  /// Appends the columns.
  func append(to row: inout RowBytes)
}

extension StoredRow {
  /// The columns as separate values.
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

/// Values encoded as consecutive bytes: the input of a proof, and the source of the columns that SQLite takes.
///
/// Each value is encoded as its kind in one byte, its length in eight bytes, least significant first, and its content.
/// The encoding is injective: different lists of values give different bytes. One buffer serves row after row.
struct RowBytes: Sendable {
  /// The kind of a value.
  enum Kind: UInt8 {
    /// The name of the table, which stands before the values.
    case table = 1
    case null
    case integer
    case text
    case blob
  }

  /// The kind of a value, and the range of its content.
  struct Column {
    let kind: Kind?
    let range: Range<Int>
  }

  private(set) var bytes: [UInt8] = []
  /// The offset of the first value, after the name of the table.
  private(set) var start = 0

  init(behind table: String? = nil) {
    bytes.reserveCapacity(512)
    guard let table else { return }
    append(.table, count: table.utf8.count)
    bytes.append(contentsOf: table.utf8)
    start = bytes.count
  }

  /// Begins a new row of a table in the same buffer.
  mutating func begin(_ table: Table) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: table.head)
    start = bytes.count
  }

  // MARK: Encoding

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

  /// Appends a value whose content a closure writes piece by piece.
  ///
  /// - Parameters:
  ///   - count: the length of the content, in bytes.
  ///   - write: appends the content.
  mutating func append(_ kind: Kind, count: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
    // Reserves room once for the whole value: a row has a dozen values.
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

  /// Appends the kind and the length that precede the content of a value.
  @inline(__always)
  private static func append(_ kind: Kind, count: Int, to span: inout OutputSpan<UInt8>) {
    span.append(kind.rawValue)
    span.append(number: UInt64(count))
  }

  /// Appends the encoded values of another row.
  mutating func append(valuesOf row: borrowing RowBytes, upTo end: Int) {
    bytes.append(contentsOf: row.bytes[row.start..<end])
  }

  /// Removes all bytes after the first `length` bytes.
  mutating func cut(to length: Int) { bytes.removeSubrange(length...) }

  // MARK: Decoding

  /// Returns the value that begins at an offset.
  func column(at place: Int) -> Column { Self.column(at: place, in: bytes) }

  static func column(at place: Int, in bytes: [UInt8]) -> Column {
    let start = place + headLength
    return Column(kind: Kind(rawValue: bytes[place]), range: start..<start + Int(number(at: place + 1, in: bytes)))
  }

  /// The length of the kind and the length field of a value, in bytes.
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

  /// The first value, which is the key of a row; nil if there is no value.
  var key: Value? { bytes.count > start ? value(in: column(at: start)) : nil }

  private func value(in column: Column) -> Value {
    switch column.kind {
    case .integer: .integer(number(in: column))
    case .text: .text(Array(bytes[column.range]))
    case .blob: .blob(Array(bytes[column.range]))
    case .null, .table, nil: .null
    }
  }

  /// Returns the number in a column of eight bytes.
  func number(in column: Column) -> Int64 { Int64(bitPattern: Self.number(at: column.range.lowerBound, in: bytes)) }

  /// Returns the number in eight bytes, least significant first.
  static func number(at place: Int, in bytes: [UInt8]) -> UInt64 {
    unsafe bytes.span.extracting(place..<place + 8).withUnsafeBytes {
      unsafe UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self))
    }
  }

  /// Returns the offset at which the first columns end, or the end of the row if it has fewer columns.
  func end(ofColumns columns: Int) -> Int {
    var end = start
    for _ in 0..<columns where end < bytes.count { end = column(at: end).range.upperBound }
    return end
  }

  /// Returns whether both rows are of the same table and begin with the same values.
  func begins(like other: RowBytes, columns: Int) -> Bool {
    let end = end(ofColumns: columns)
    guard end <= other.bytes.count else { return false }
    return unsafe memcmp(bytes, other.bytes, end) == 0
  }
}

extension OutputSpan<UInt8> {
  /// Appends a number in eight bytes, least significant first.
  @inline(__always)
  mutating func append(number: UInt64) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append($0) }
  }

  /// Appends a text. The span must have room for it.
  @inline(__always)
  mutating func append(_ text: Text) { unsafe text.bytes.withUnsafeBytes { unsafe append($0) } }

  /// Appends bytes. The span must have room for them.
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
  /// Appends a number in eight bytes, least significant first.
  mutating func append(number: UInt64) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }
}
