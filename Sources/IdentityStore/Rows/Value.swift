import Glibc
import IdentityCore

/// A value of a column.
enum Value: Equatable, Sendable {
  case null
  case integer(Int64)
  case text([UInt8])
  case blob([UInt8])

  static func text(_ string: String) -> Value { .text(Array(string.utf8)) }

  /// The canonical text of a UUID.
  init(_ uuid: UUID) { self = .text(Text(uuid).bytes) }

  /// The text, which is not validated because this program wrote it; nil for other kinds.
  var asText: Text? {
    guard case .text(let bytes) = self else { return nil }
    return Text(trusted: bytes)
  }

  var number: Int64? {
    guard case .integer(let number) = self else { return nil }
    return number
  }

  var uuid: UUID? { asText.flatMap { UUID($0) } }

  var time: Timestamp? { asText.flatMap { Timestamp(parsing: $0) } }
}

extension [Value] {
  /// Appends the values to a row.
  func append(to row: inout RowBytes) { for value in self { row.append(value) } }
}

extension RowBytes {
  /// Begins a new row of a table.
  mutating func begin(_ table: Table) { begin(behind: table.head) }

  mutating func append(_ value: Value) {
    switch value {
    case .null: appendNull()
    case .integer(let number): append(number)
    case .text(let value): append(.text, value)
    case .blob(let value): append(.blob, value)
    }
  }

  mutating func append(_ proof: Proof) { unsafe proof.withBytes { unsafe append(.blob, $0) } }

  /// The values, without the name of the table.
  var values: [Value] {
    var values: [Value] = []
    var offset = start
    while offset < bytes.count {
      let column = RowColumn(at: offset, in: bytes)
      offset = column.range.upperBound
      values.append(value(in: column))
    }
    return values
  }

  /// The first value, which is the key of a row; nil if there is no value.
  var key: Value? { bytes.count > start ? value(in: RowColumn(at: start, in: bytes)) : nil }

  private func value(in column: RowColumn) -> Value {
    switch column.kind {
    case .integer: .integer(Int64(bitPattern: RowColumn.number(at: column.range.lowerBound, in: bytes)))
    case .text: .text(Array(bytes[column.range]))
    case .blob: .blob(Array(bytes[column.range]))
    case .null, .table, nil: .null
    }
  }

  /// Returns whether both rows are of the same table and begin with the same values.
  func begins(like other: RowBytes, columns: Int) -> Bool {
    let end = end(ofColumns: columns)
    guard end <= other.bytes.count else { return false }
    return unsafe memcmp(bytes, other.bytes, end) == 0
  }
}
