import IdentityCore

/// Values encoded as consecutive bytes: the input of a proof, and the source of the columns that SQLite takes.
///
/// Each value is encoded as its kind in one byte, its length in eight bytes, least significant first, and its content.
/// The encoding is injective: different lists of values give different bytes. One buffer serves row after row.
struct RowBytes: Sendable {
  typealias Kind = ColumnKind

  /// The encoded name of the table, and the values.
  private(set) var bytes: [UInt8] = []
  /// The offset of the first value, after the name of the table.
  private(set) var start = 0

  init(behind table: String? = nil, room: Int = 512) {
    bytes.reserveCapacity(room)
    guard let table else { return }
    append(.table, count: table.utf8.count)
    bytes.append(contentsOf: table.utf8)
    start = bytes.count
  }

  /// Begins a new row in the same buffer.
  ///
  /// - Parameter head: the bytes of a row of the table without values.
  mutating func begin(behind head: [UInt8]) {
    bytes.removeAll(keepingCapacity: true)
    bytes.append(contentsOf: head)
    start = bytes.count
  }

  // MARK: Encoding

  /// Appends a number.
  mutating func append(_ number: Int64) {
    bytes.append(addingCapacity: RowColumn.headLength + 8) { span in
      Self.append(.integer, count: 8, to: &span)
      span.append(number: UInt64(bitPattern: number))
    }
  }

  /// Appends a value of a kind.
  mutating func append(_ kind: Kind, _ value: [UInt8]) {
    unsafe value.withUnsafeBytes { unsafe append(kind, $0) }
  }

  /// Appends a value of a kind.
  mutating func append(_ kind: Kind, _ value: UnsafeRawBufferPointer) {
    bytes.append(addingCapacity: RowColumn.headLength + value.count) { span in
      Self.append(kind, count: value.count, to: &span)
      unsafe span.append(value)
    }
  }

  /// Appends a text.
  mutating func append(_ word: String) {
    append(.text, count: word.utf8.count)
    bytes.append(contentsOf: word.utf8)
  }

  /// Appends NULL.
  mutating func appendNull() { append(.null, count: 0) }

  /// Appends a value whose content a closure writes piece by piece.
  ///
  /// - Parameters:
  ///   - count: the length of the content, in bytes.
  ///   - write: appends the content.
  mutating func append(_ kind: Kind, count: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
    // Reserves room once for the whole value: a row has a dozen values.
    bytes.append(addingCapacity: RowColumn.headLength + count) { span in
      Self.append(kind, count: count, to: &span)
      let start = span.count
      write(&span)
      precondition(span.count == start + count)
    }
  }

  private mutating func append(_ kind: Kind, count: Int) {
    bytes.append(addingCapacity: RowColumn.headLength) { Self.append(kind, count: count, to: &$0) }
  }

  /// Appends the kind and the length that precede the content of a value.
  @inline(__always)
  static func append(_ kind: Kind, count: Int, to span: inout OutputSpan<UInt8>) {
    span.append(kind.code)
    span.append(number: UInt64(count))
  }

  /// Appends the encoded values of another row.
  mutating func append(values: ArraySlice<UInt8>) { bytes.append(contentsOf: values) }

  /// Removes all bytes after the first `length` bytes.
  mutating func cut(to length: Int) { bytes.removeSubrange(length...) }

  // MARK: Decoding

  /// Passes the row to a reader, which gives back a buffer for another row.
  mutating func pass(to reader: inout RowReader) { reader.take(&bytes, from: start) }

  /// Takes the row back from a reader.
  mutating func fetch(from reader: RowReader) { bytes = reader.row }

  /// Returns the offset at which the first columns end, or the end of the row if it has fewer columns.
  func end(ofColumns columns: Int) -> Int {
    var end = start
    for _ in 0..<columns where end < bytes.count { end = RowColumn(at: end, in: bytes).range.upperBound }
    return end
  }
}

extension RowBytes {
  /// Appends the fields of a record. Texts that share a column are in the clear.
  mutating func append(_ record: consuming some StoredRecord) {
    var fields = FieldList()
    record.list(in: &fields)
    for content in fields.contents { append(content) }
  }

  /// Appends the content of a column. Texts that share it are in the clear, each terminated by a NUL.
  mutating func append(_ content: FieldContent) {
    switch content {
    case .null: appendNull()
    case .integer(let number): append(number)
    case .text(let text): append(.text, text.bytes)
    case .word(let word): append(word)
    case .uuid(let uuid): append(uuid)
    case .time(let time): append(time)
    case .blob(let bytes): append(.blob, bytes)
    case .sealed(let texts): append(.blob, texts.terminated)
    }
  }

  /// Appends a UUID as text.
  mutating func append(_ uuid: UUID) { append(.text, count: UUID.textLength) { uuid.append(to: &$0) } }

  /// Appends a time as text.
  mutating func append(_ time: Timestamp) { append(.text, count: Timestamp.textLength) { time.append(to: &$0) } }
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
  init(_ bytes: borrowing Span<UInt8>) { self = unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) } }

  /// Appends a number in eight bytes, least significant first.
  mutating func append(number: UInt64) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }
}

extension [Text] {
  /// The texts as bytes, each terminated by a NUL. No text contains a NUL.
  var terminated: [UInt8] {
    var bytes: [UInt8] = []
    for text in self {
      bytes.append(contentsOf: text.bytes)
      bytes.append(0)
    }
    return bytes
  }
}

extension Span<UInt8> {
  /// Returns whether both have the same bytes. Compares eight bytes at a time.
  func isSame(as other: borrowing Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { bytes in
      unsafe other.withUnsafeBytes { others in
        var offset = 0
        while offset + 8 <= bytes.count {
          let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
          guard unsafe word == others.loadUnaligned(fromByteOffset: offset, as: UInt64.self) else { return false }
          offset += 8
        }
        while offset < bytes.count {
          guard unsafe bytes[offset] == others[offset] else { return false }
          offset += 1
        }
        return true
      }
    }
  }
}
