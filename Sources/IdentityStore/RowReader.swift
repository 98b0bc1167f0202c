import IdentityCore

/// Reads the values of a row one after the other, from the first on. What is of another kind than asked for is none.
struct RowReader {
  private let bytes: [UInt8]
  private var place: Int

  init(_ row: borrowing RowBytes) {
    bytes = row.bytes
    place = row.start
  }

  /// Where the next value is, or the end of all.
  var position: Int { place }

  /// The bytes of the next value of a kind.
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

  /// Leaves values out.
  mutating func skip(_ count: Int) { for _ in 0..<count { _ = nextColumn() } }

  /// Whether that many values are NULL, which are left out.
  mutating func skipNulls(_ count: Int) -> Bool {
    var areNull = true
    for _ in 0..<count where nextColumn()?.kind != .null { areNull = false }
    return areNull
  }

  mutating func number() -> Int64? {
    next(.integer).map { Int64(bitPattern: RowBytes.number(at: $0.lowerBound, in: bytes)) }
  }

  mutating func text() -> Text? { next(.text).map { Text(trusted: Array(bytes[$0])) } }

  /// A text of which many rows have the same.
  mutating func text(_ known: inout RepeatedText) -> Text? { next(.text).map { known.text(bytes[$0]) } }

  mutating func uuid() -> UUID? { next(.text).flatMap { UUID(parsing: bytes.span.extracting($0)) } }

  mutating func time() -> Timestamp? { next(.text).flatMap { Timestamp(parsing: bytes.span.extracting($0)) } }

  mutating func bytes(_ kind: RowBytes.Kind) -> ArraySlice<UInt8>? { next(kind).map { bytes[$0] } }

  /// A word that is one of a kind's.
  mutating func word<Kind: RawRepresentable<String>>(_ kind: Kind.Type) -> Kind? {
    next(.text).flatMap { Kind(rawValue: String(decoding: bytes[$0], as: UTF8.self)) }
  }
}

/// What a row is read as, its columns in their order.
protocol ReadRow {
  /// Nil for a row that this program does not write.
  init?(reading row: inout RowReader)
}

extension ReadRow {
  /// Reads a row that is no bytes yet.
  init?(columns: [Value]) {
    var bytes = RowBytes()
    columns.append(to: &bytes)
    var row = RowReader(bytes)
    self.init(reading: &row)
  }
}

/// A text as it was read last: where the next row has the same, it is held once.
struct RepeatedText {
  private var last = Text("")

  /// These bytes as text.
  mutating func text(_ bytes: ArraySlice<UInt8>) -> Text {
    if last.bytes.count != bytes.count || !last.bytes.elementsEqual(bytes) { last = Text(trusted: Array(bytes)) }
    return last
  }
}
