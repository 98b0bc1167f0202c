import Glibc
import IdentityCore

/// Reads the values of a row in order. A value of another kind than requested is read as nil.
struct RowReader {
  private let bytes: [UInt8]
  private var place: Int

  init(_ row: borrowing RowBytes) {
    bytes = row.bytes
    place = row.start
  }

  /// The offset of the next value, or the end of the row.
  var position: Int { place }

  /// Reads the next value and returns its range; nil if the value is of another kind.
  mutating func next(_ kind: RowBytes.Kind) -> Range<Int>? {
    guard let column = nextColumn(), column.kind == kind else { return nil }
    return column.range
  }

  private mutating func nextColumn() -> RowBytes.Column? {
    guard place < bytes.count else { return nil }
    let column = RowBytes.column(at: place, in: bytes)
    place = column.range.upperBound
    return column
  }

  /// Skips values.
  mutating func skip(_ count: Int) { for _ in 0..<count { _ = nextColumn() } }

  /// Skips values and returns whether all of them are NULL.
  mutating func skipNulls(_ count: Int) -> Bool {
    var areNull = true
    for _ in 0..<count where nextColumn()?.kind != .null { areNull = false }
    return areNull
  }

  mutating func number() -> Int64? {
    next(.integer).map { Int64(bitPattern: RowBytes.number(at: $0.lowerBound, in: bytes)) }
  }

  mutating func text() -> Text? { next(.text).map { Text(trusted: Array(bytes[$0])) } }

  /// Reads a text that many rows repeat.
  mutating func text(_ known: inout RepeatedText) -> Text? { next(.text).map { known.text(bytes[$0]) } }

  mutating func uuid() -> UUID? { next(.text).flatMap { UUID(parsing: bytes.span.extracting($0)) } }

  mutating func time() -> Timestamp? { next(.text).flatMap { Timestamp(parsing: bytes.span.extracting($0)) } }

  /// Reads a time that many rows repeat.
  mutating func time(_ known: inout Repeated<Timestamp>) -> Timestamp? {
    next(.text).flatMap { known.value(of: bytes[$0]) { Timestamp(parsing: $0.span) } }
  }

  mutating func bytes(_ kind: RowBytes.Kind) -> ArraySlice<UInt8>? { next(kind).map { bytes[$0] } }

  /// Reads a text that is a raw value of an enumeration.
  mutating func word<Kind: RawRepresentable<String>>(_ kind: Kind.Type) -> Kind? {
    next(.text).flatMap { Kind(rawValue: String(decoding: bytes[$0], as: UTF8.self)) }
  }

  /// Reads a text that is a raw value of an enumeration, and that many rows repeat.
  mutating func word<Kind: RawRepresentable<String>>(_ known: inout Repeated<Kind>) -> Kind? {
    next(.text).flatMap { known.value(of: bytes[$0]) { Kind(rawValue: String(decoding: $0, as: UTF8.self)) } }
  }
}

/// A value that is decoded from the columns of a row, in their order.
protocol ReadRow {
  /// Decodes a row; nil if this program would not write such a row.
  init?(reading row: inout RowReader)
}

extension ReadRow {
  /// Decodes a row from separate values.
  init?(columns: [Value]) {
    var bytes = RowBytes()
    columns.append(to: &bytes)
    var row = RowReader(bytes)
    self.init(reading: &row)
  }
}

/// The text read last. Following rows with the same text share its storage.
struct RepeatedText {
  private var last = Text("")

  /// Returns bytes as text.
  mutating func text(_ bytes: ArraySlice<UInt8>) -> Text {
    if !bytes.isSame(as: last.bytes) { last = Text(trusted: Array(bytes)) }
    return last
  }
}

/// The value decoded last. Following rows with the same bytes are not decoded again.
struct Repeated<Value> {
  private var bytes: [UInt8] = []
  private var value: Value?

  /// Returns the value that `decode` makes of bytes.
  mutating func value(of bytes: ArraySlice<UInt8>, _ decode: (ArraySlice<UInt8>) -> Value?) -> Value? {
    if let value, bytes.isSame(as: self.bytes) { return value }
    self.bytes.removeAll(keepingCapacity: true)
    self.bytes += bytes
    value = decode(bytes)
    return value
  }
}

extension ArraySlice<UInt8> {
  /// Returns whether the bytes are those of an array.
  func isSame(as other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { bytes in
      // Empty bytes may have no address.
      guard let start = bytes.baseAddress else { return true }
      return unsafe memcmp(start, other, other.count) == 0
    }
  }
}
