/// A record that the store keeps as a row of a table (Decisions/0072).
///
/// The declaration is all that the store knows about the record: its tables, statements, proofs, backups and migrations
/// follow from it.
package protocol StoredRecord: Sendable {
  /// The table of the records.
  static var table: RecordTable { get }

  /// Creates an empty record, whose fields a reader fills in.
  init()

  /// Passes each field to a visitor, in the order of the columns. The first field is the key of the row.
  ///
  /// A reader assigns the fields. The record may be that of the row before, so that a field with the role
  /// ``FieldRole/repeats`` can keep its value: an implementation sets all of the record. Other visitors leave the fields as
  /// they are.
  mutating func visit(_ fields: inout some FieldVisitor)

  // Requirements of their own, so that the compiler specializes `visit` in this module, for the two frequent visitors.

  /// Reads all fields.
  mutating func read(from reader: inout RowReader)

  /// Appends the content of all fields to a list.
  consuming func list(in fields: inout FieldList)
}

extension StoredRecord {
  package mutating func read(from reader: inout RowReader) { visit(&reader) }

  package consuming func list(in fields: inout FieldList) {
    var record = self
    record.visit(&fields)
  }
}

/// A visitor of the fields of a record: the encoder and the decoder of rows, and the list of the columns.
package protocol FieldVisitor {
  /// Whether the visitor assigns the fields.
  static var isReading: Bool { get }
  /// The schema version of the row. Columns of later versions are left out.
  var version: Int64 { get }

  /// Visits a field with a column of its own.
  ///
  /// - Parameters:
  ///   - name: the name of the column.
  ///   - since: the schema version that brought the column.
  mutating func visit<Value: FieldValue>(_ name: StaticString, _ value: inout Value, _ role: FieldRole, since: Int64)

  /// Visits a field that may be NULL. Not a conditional conformance of `Optional`, which other modules cannot specialize.
  mutating func visit<Value: FieldValue>(_ name: StaticString, _ value: inout Value?, _ role: FieldRole, since: Int64)

  /// Visits texts that share an encrypted column.
  mutating func visitSealed(_ name: StaticString, _ texts: inout [Text])

  /// Refuses the row, because its values do not belong together.
  mutating func refuse()
}

extension FieldVisitor {
  /// Whether the visitor assigns the fields.
  @inline(__always)
  package var isReading: Bool { Self.isReading }
  /// The schema version that this program writes.
  @inline(__always)
  package var version: Int64 { .max }

  /// Visits a field with a column of its own; see ``visit(_:_:_:since:)``.
  @inline(__always)
  package mutating func field(
    _ name: StaticString, _ value: inout some FieldValue, _ role: FieldRole = [], since: Int64 = 1
  ) { visit(name, &value, role, since: since) }

  /// Visits a field that may be NULL.
  @inline(__always)
  package mutating func field(
    _ name: StaticString, _ value: inout (some FieldValue)?, _ role: FieldRole = [], since: Int64 = 1
  ) { visit(name, &value, role, since: since) }
}

/// The role of a field.
package struct FieldRole: OptionSet, Sendable {
  /// One bit for each role.
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The field does not change during the life of the row. It follows the key or another such field.
  package static let lasting = FieldRole(rawValue: 1 << 0)
  /// Many rows have the value of the row before, so a reader does not decode it again.
  package static let repeats = FieldRole(rawValue: 1 << 1)
}

/// A column of a table.
package struct RecordColumn: Equatable, Sendable {
  /// The name of the column.
  package let name: String
  /// The kind of the values.
  package let kind: ColumnKind
  /// Whether a row may have NULL in place of a value.
  package let isOptional: Bool
  /// The schema version that brought the column.
  package let since: Int64
}

/// A table with one row for each record of a type.
package final class RecordTable: Sendable {
  /// The name of the table.
  package let name: String
  /// The index of the table's digest in the row of `store`. It never changes.
  package let digestIndex: Int
  /// The kinds of records that are in doubt if rows of the table are not verified.
  package let kinds: Records
  /// The schema version that brought the table.
  package let since: Int64
  /// The columns of the record, without its revision and its proof.
  package let columns: [RecordColumn]
  /// The number of leading columns that do not change during the life of a row.
  package let lasting: Int
  /// The SQL of each unique index, from its name on.
  package let indexes: [String]

  /// Declares the table of a type of records.
  package init<Record: StoredRecord>(
    _ name: String, of record: Record.Type, digestIndex: Int, _ kinds: Records, since: Int64 = 1,
    indexes: [String] = []
  ) {
    self.name = name
    self.digestIndex = digestIndex
    self.kinds = kinds
    self.since = since
    self.indexes = indexes
    var list = ColumnList()
    var empty = Record()
    empty.visit(&list)
    columns = list.columns
    lasting = list.lasting
  }
}

/// The content of the fields of a record, in the order of the columns.
package struct FieldList: FieldVisitor {
  package static var isReading: Bool { false }

  /// The content of each field.
  package private(set) var contents: [FieldContent] = []

  /// Creates a list without fields, with room for those of most records.
  package init() { contents.reserveCapacity(16) }

  /// Removes all fields, and keeps the room for others.
  package mutating func removeAll() { contents.removeAll(keepingCapacity: true) }

  @inline(__always)
  package mutating func visit<Value: FieldValue>(
    _ name: StaticString, _ value: inout Value, _ role: FieldRole, since: Int64
  ) { contents.append(value.content) }

  @inline(__always)
  package mutating func visit<Value: FieldValue>(
    _ name: StaticString, _ value: inout Value?, _ role: FieldRole, since: Int64
  ) { contents.append(value?.content ?? .null) }

  package mutating func visitSealed(_ name: StaticString, _ texts: inout [Text]) { contents.append(.sealed(texts)) }

  package mutating func refuse() {}
}

/// Lists the columns of a record.
private struct ColumnList: FieldVisitor {
  static var isReading: Bool { false }

  var columns: [RecordColumn] = []
  var lasting = 1

  mutating func visit<Value: FieldValue>(_ name: StaticString, _ value: inout Value, _ role: FieldRole, since: Int64) {
    add(name, Value.kind, isOptional: false, role, since)
  }

  mutating func visit<Value: FieldValue>(_ name: StaticString, _ value: inout Value?, _ role: FieldRole, since: Int64) {
    add(name, Value.kind, isOptional: true, role, since)
  }

  private mutating func add(
    _ name: StaticString, _ kind: ColumnKind, isOptional: Bool, _ role: FieldRole, _ since: Int64
  ) {
    if role.contains(.lasting), lasting == columns.count { lasting += 1 }
    columns.append(RecordColumn(name: "\(name)", kind: kind, isOptional: isOptional, since: since))
  }

  mutating func visitSealed(_ name: StaticString, _ texts: inout [Text]) {
    columns.append(RecordColumn(name: "\(name)", kind: .blob, isOptional: false, since: 1))
  }

  mutating func refuse() {}
}
