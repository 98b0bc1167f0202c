/// The kind of a value in a row, and the range of its content.
@usableFromInline
package struct RowColumn: Sendable {
  /// The kind; nil for an unknown one.
  @usableFromInline package let kind: ColumnKind?
  /// The range of the content.
  @usableFromInline package let range: Range<Int>

  /// Finds the value that begins at an offset of an encoded row.
  @inlinable @inline(__always)
  package init(at offset: Int, in row: [UInt8]) {
    let start = offset + Self.headLength
    kind = ColumnKind(code: row[offset])
    range = start..<start + Int(truncatingIfNeeded: Self.number(at: offset + 1, in: row))
  }

  /// The length of the kind and the length field of a value, in bytes.
  @inlinable @inline(__always)
  package static var headLength: Int { 9 }

  /// Returns the number in eight bytes, least significant first.
  @inlinable @inline(__always)
  package static func number(at offset: Int, in row: [UInt8]) -> UInt64 { row.span.word(at: offset) }
}

/// Reads the fields of records from encoded rows of one table, one row after the other.
package struct RowReader: FieldVisitor {
  package static var isReading: Bool { true }

  /// The row to read.
  package private(set) var row: [UInt8] = []
  /// The schema version of the rows.
  package let version: Int64
  /// The offset of the first value.
  private var start = 0
  /// The offset of the next value, or the end of the row.
  private var offset = 0
  /// Whether each value so far is one that this program would write.
  private var isSound = true
  /// The row that was read last.
  private var before: [UInt8] = []
  /// Whether ``row`` was read into a record.
  private var isRead = false
  /// The columns of the row that was read last whose fields ``FieldRole/repeats``, in order.
  private var kept: [RowColumn] = []
  private var nextKept = 0
  private let unseal: Unsealing

  /// Decodes texts that share a column.
  ///
  /// - Parameters:
  ///   - row: the row.
  ///   - values: the range of the values before the column.
  ///   - content: the range of the column's content.
  ///   - texts: receives the texts.
  /// - Returns: false if this program would not write such a column.
  package typealias Unsealing = (
    _ row: [UInt8], _ values: Range<Int>, _ content: Range<Int>, _ texts: inout [Text]
  ) -> Bool

  /// Creates a reader of the rows of one table.
  ///
  /// - Parameters:
  ///   - version: the schema version of the rows.
  ///   - unseal: decodes texts that share a column. The default refuses them.
  package init(version: Int64 = .max, unseal: @escaping Unsealing = { _, _, _, _ in false }) {
    self.version = version
    self.unseal = unseal
  }

  /// Takes the next row, and gives back a buffer for the row after it.
  ///
  /// - Parameter start: the offset of the first value.
  package mutating func take(_ next: inout [UInt8], from start: Int) {
    if isRead { swap(&row, &before) }
    isRead = false
    swap(&row, &next)
    self.start = start
  }

  /// Reads ``row`` into a record.
  ///
  /// - Parameters:
  ///   - record: the record of the row that was read last, or an empty one.
  ///   - others: the number of values behind those of the record.
  /// - Returns: false if this program would not write such a row. The record is empty then.
  package mutating func read<Record: StoredRecord>(_ record: inout Record, before others: Int = 0) -> Bool {
    offset = start
    isSound = true
    nextKept = 0
    record.read(from: &self)
    for _ in 0..<others { isSound = next() != nil && isSound }
    isRead = isSound && offset == row.count
    if !isRead {
      record = Record()
      kept = []
    }
    return isRead
  }

  package mutating func refuse() { isSound = false }

  @inline(__always)
  package mutating func visit<Value: FieldValue>(
    _ name: StaticString, _ value: inout Value, _ role: FieldRole, since: Int64
  ) {
    guard let column = column(role, since: since) else { return }
    if let read = Value(column, in: row) { value = read } else { refuse() }
  }

  @inline(__always)
  package mutating func visit<Value: FieldValue>(
    _ name: StaticString, _ value: inout Value?, _ role: FieldRole, since: Int64
  ) {
    guard let column = column(role, since: since) else { return }
    if column.kind == .null {
      value = nil
    } else if let read = Value(column, in: row) {
      value = read
    } else {
      refuse()
    }
  }

  /// Returns the column of the next field; nil if the field keeps its value, or if the row has no more columns.
  @inline(__always)
  private mutating func column(_ role: FieldRole, since: Int64) -> RowColumn? {
    guard since <= version else { return nil }
    guard let column = next() else {
      refuse()
      return nil
    }
    return role.contains(.repeats) && isRepeated(column) ? nil : column
  }

  package mutating func visitSealed(_ name: StaticString, _ texts: inout [Text]) {
    let values = start..<offset
    guard let column = next(), column.kind == .blob, unseal(row, values, column.range, &texts) else { return refuse() }
  }

  @inline(__always)
  private mutating func next() -> RowColumn? {
    guard offset < row.count else { return nil }
    let column = RowColumn(at: offset, in: row)
    offset = column.range.upperBound
    return column
  }

  /// Returns whether the row before has the same value in this column, so that the record has it already.
  private mutating func isRepeated(_ column: RowColumn) -> Bool {
    defer { nextKept += 1 }
    guard nextKept < kept.count else {
      kept.append(column)
      return false
    }
    let last = kept[nextKept]
    if column.range != last.range { kept[nextKept] = column }
    guard last.range.count == column.range.count else { return false }
    // With the kind and the length, so that there are at least eight bytes.
    let length = RowColumn.headLength + column.range.count
    let (start, other) = (column.range.upperBound - length, last.range.upperBound - length)
    var compared = 0
    while compared < length {
      let next = min(compared, length - 8)
      guard RowColumn.number(at: start + next, in: row) == RowColumn.number(at: other + next, in: before) else {
        return false
      }
      compared += 8
    }
    return true
  }
}
