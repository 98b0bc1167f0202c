import IdentityCore

/// The statements of one table.
final class TableStatements: Sendable {
  let table: Table
  private let finding: Statement
  private let insertion: Statement
  private let replacement: Statement
  private let removal: Statement

  init(_ table: Table, _ database: borrowing Database) {
    self.table = table
    finding = database.prepare(table.finding)
    insertion = database.prepare(table.insertion)
    replacement = database.prepare(table.replacement)
    removal = database.prepare(table.removal)
  }

  /// Inserts a row and appends its proof.
  ///
  /// - Returns: the proof.
  func insert(_ row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError) -> Proof {
    let proof = authenticator.proof(of: row)
    row.append(proof)
    try insertion.run(row)
    return proof
  }

  /// Replaces the row with the same key, which must exist.
  ///
  /// The columns that identify a row stay as they are, so no index is written.
  ///
  /// - Returns: the proof.
  func replace(_ row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError) -> Proof {
    let proof = authenticator.proof(of: row)
    row.append(proof)
    try replacement.run(row)
    return proof
  }

  /// Finds and verifies a row.
  ///
  /// - Parameter row: receives the columns.
  /// - Returns: the proof; nil if there is no such row.
  func find(_ key: Value, into row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError)
    -> Proof?
  {
    try finding.bind(key)
    defer { finding.reset() }
    guard try finding.step() else { return nil }
    guard let proof = authenticator.proof(ofRowIn: finding, of: table, into: &row), row.key == key else {
      throw .unproven(table.name, key)
    }
    return proof
  }

  /// Finds a row that must be as this process wrote it. A row that is equal, including its proof, counts as verified.
  func find(_ row: borrowing RowBytes, at key: Int64) throws(DatabaseError) {
    try finding.bind(.integer(key))
    defer { finding.reset() }
    guard try finding.step(), finding.holds(row) else { throw .unproven(table.name, .integer(key)) }
  }

  /// Removes a row that was found before.
  func remove(_ key: Value) throws(DatabaseError) { try removal.run([key]) }
}

/// The statements of all tables.
final class Tables: Sendable {
  let store: TableStatements
  let oldEvents: OldEventStatement
  let secret: SecretStatements
  /// The statements of the tables of records, each at the index that is its ``Table/digestIndex``.
  private let ofRecords: [TableStatements]

  init(_ database: borrowing Database) throws(DatabaseError) {
    store = TableStatements(.store, database)
    oldEvents = OldEventStatement(database)
    secret = try SecretStatements(database)
    var ofRecords: [TableStatements] = []
    for table in Schema.tables { ofRecords.append(TableStatements(table, database)) }
    self.ofRecords = ofRecords
  }

  /// The statements of the table of a record.
  subscript<Record: StoredRecord>(_ type: Record.Type) -> TableStatements { ofRecords[Record.table.digestIndex] }
}
