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

  /// Adds a row, and its proof behind its columns.
  ///
  /// - Returns: the proof.
  func insert(_ row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError) -> Proof {
    let proof = authenticator.proof(of: row)
    row.append(proof)
    try insertion.run(row)
    return proof
  }

  /// Writes a row in the place of the one with its key, which has to be there. What tells one row of the table from another
  /// stays as it is, so no index is touched.
  ///
  /// - Returns: the proof.
  func replace(_ row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError) -> Proof {
    let proof = authenticator.proof(of: row)
    row.append(proof)
    try replacement.run(row)
    return proof
  }

  /// Finds a row that has to be there, as it was written.
  ///
  /// - Parameter row: takes its columns.
  /// - Returns: its proof.
  func find(_ key: Value, into row: inout RowBytes, _ authenticator: borrowing Authenticator) throws(DatabaseError)
    -> Proof
  {
    try finding.bind(key)
    defer { finding.reset() }
    guard try finding.step(), let proof = authenticator.proof(ofRowIn: finding, of: table, into: &row), row.key == key
    else { throw .unproven(table.name, key) }
    return proof
  }

  /// Finds a row that has to be there as this process wrote it: what is the same, its proof included, is proven.
  func find(_ row: borrowing RowBytes, at key: Int64) throws(DatabaseError) {
    try finding.bind(.integer(key))
    defer { finding.reset() }
    guard try finding.step(), finding.holds(row) else { throw .unproven(table.name, .integer(key)) }
  }

  /// Removes a row that was found.
  func remove(_ key: Value) throws(DatabaseError) { try removal.run([key]) }
}

/// The statements of every table.
final class Tables: Sendable {
  let store: TableStatements
  let setting: TableStatements
  let app: TableStatements
  let identifier: TableStatements
  let device: TableStatements
  let event: TableStatements
  let oldEvents: OldEventStatement
  let dataKey: TableStatements
  let item: TableStatements
  let secret: SecretStatements
  let release: TableStatements
  let report: TableStatements
  let claim: TableStatements
  let token: TableStatements
  let use: TableStatements

  init(_ database: borrowing Database) throws(DatabaseError) {
    store = TableStatements(.store, database)
    setting = TableStatements(.setting, database)
    app = TableStatements(.app, database)
    identifier = TableStatements(.identifier, database)
    device = TableStatements(.device, database)
    event = TableStatements(.event, database)
    oldEvents = OldEventStatement(database)
    dataKey = TableStatements(.dataKey, database)
    item = TableStatements(.item, database)
    secret = try SecretStatements(database)
    release = TableStatements(.release, database)
    report = TableStatements(.report, database)
    claim = TableStatements(.claim, database)
    token = TableStatements(.token, database)
    use = TableStatements(.use, database)
  }
}
