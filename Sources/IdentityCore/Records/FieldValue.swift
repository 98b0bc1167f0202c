/// The kind of the values in a column. The numbers are part of the input of proofs.
///
/// The store decodes a dozen columns for each row, so it inlines this type.
@usableFromInline
package enum ColumnKind: UInt8, Sendable {
  /// The name of the table, which stands before the values.
  case table = 1
  case null
  case integer
  case text
  case blob

  // Other modules can inline these, unlike the members that the compiler makes.

  /// Returns the kind with a raw value.
  @inlinable @inline(__always)
  package init?(code: UInt8) {
    switch code {
    case 1: self = .table
    case 2: self = .null
    case 3: self = .integer
    case 4: self = .text
    case 5: self = .blob
    default: return nil
    }
  }

  /// The raw value.
  @inlinable @inline(__always)
  package var code: UInt8 {
    switch self {
    case .table: 1
    case .null: 2
    case .integer: 3
    case .text: 4
    case .blob: 5
    }
  }
}

/// The content of a column, which a store encodes.
package enum FieldContent: Sendable {
  case null
  case integer(Int64)
  case text(Text)
  case word(String)
  case uuid(UUID)
  case time(Timestamp)
  case blob([UInt8])
  /// Texts that share an encrypted column.
  case sealed([Text])
}

/// A value that fits into a column.
package protocol FieldValue: Sendable {
  /// The kind of the values in the column.
  static var kind: ColumnKind { get }

  /// Decodes the content of a column, which is not NULL; nil if this program would not write such a value.
  init?(_ column: RowColumn, in row: [UInt8])

  /// The value in the form that a store encodes.
  var content: FieldContent { get }
}

extension Int64: FieldValue {
  package static var kind: ColumnKind { .integer }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .integer else { return nil }
    self = Int64(bitPattern: RowColumn.number(at: column.range.lowerBound, in: row))
  }

  package var content: FieldContent { .integer(self) }
}

extension Bool: FieldValue {
  package static var kind: ColumnKind { .integer }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard let number = Int64(column, in: row), number == 0 || number == 1 else { return nil }
    self = number == 1
  }

  package var content: FieldContent { .integer(self ? 1 : 0) }
}

extension Text: FieldValue {
  package static var kind: ColumnKind { .text }

  /// The text is not validated, because this program wrote it, or it was validated before.
  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .text else { return nil }
    self.init(trusted: Array(row[column.range]))
  }

  package var content: FieldContent { .text(self) }
}

extension UUID: FieldValue {
  package static var kind: ColumnKind { .text }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .text else { return nil }
    self.init(parsing: row.span.extracting(column.range))
  }

  package var content: FieldContent { .uuid(self) }
}

extension Timestamp: FieldValue {
  package static var kind: ColumnKind { .text }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .text else { return nil }
    self.init(parsing: row.span.extracting(column.range))
  }

  package var content: FieldContent { .time(self) }
}

extension [UInt8]: FieldValue {
  package static var kind: ColumnKind { .blob }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .blob else { return nil }
    self.init(row[column.range])
  }

  package var content: FieldContent { .blob(self) }
}

/// A value of a closed set, stored as its word.
package protocol StoredWord: FieldValue, RawRepresentable<String> {}

extension StoredWord {
  package static var kind: ColumnKind { .text }

  package init?(_ column: RowColumn, in row: [UInt8]) {
    guard column.kind == .text else { return nil }
    self.init(rawValue: String(decoding: row[column.range], as: UTF8.self))
  }

  package var content: FieldContent { .word(rawValue) }
}
