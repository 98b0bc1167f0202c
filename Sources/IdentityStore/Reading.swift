import IdentityCore

/// What one pass over a database proved.
struct Reading {
  var registry = Registry()
  var store = UUID.zero
  var created = Timestamp(milliseconds: 0)
  var revision: Int64 = 0
  var digest = Digest()
  /// What is not as this daemon wrote it; empty when everything is.
  var damage: [String] = []
}

extension Reading {
  /// Reads and proves every row.
  ///
  /// A row without a valid proof is named and left out. So is the whole when the store's own row is missing or unproven,
  /// or when the rows are not exactly those it counts.
  init(_ database: borrowing Database, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    var found = Digest()
    for table in Table.all { try read(table, from: database, authenticator, into: &found) }
    try readStore(from: database, authenticator)
    if damage.isEmpty, found != digest {
      damage.append("it holds \(found.count) proven rows and should hold \(digest.count)")
    }
  }

  private mutating func read(
    _ table: Table, from database: borrowing Database, _ authenticator: borrowing Authenticator,
    into found: inout Digest
  ) throws(DatabaseError) {
    let statement = try database.prepare(table.selection)
    while try statement.step() {
      let row = Row(table: table, values: statement.values(table.columns.count))
      let proof = authenticator.proof(table: table.name, row.values)
      guard case .blob(let stored)? = statement.value(Int32(table.columns.count)), Authenticator.matches(proof, stored),
        let change = Change(row)
      else {
        damage.append("a row of \(table.name) (\(row.label)) is not authentic")
        continue
      }
      found.add(proof)
      registry.apply(change)
    }
  }

  private mutating func readStore(from database: borrowing Database, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    let table = Table.store
    let statement = try database.prepare(table.selection)
    guard try statement.step() else {
      damage.append("its own row is missing")
      return
    }
    let values = statement.values(table.columns.count)
    guard case .blob(let stored)? = statement.value(Int32(table.columns.count)),
      Authenticator.matches(authenticator.proof(table: table.name, values), stored),
      case .text(let id) = values[1], let store = UUID(Text(trusted: id)),
      case .text(let time) = values[2], let created = Timestamp(parsing: Text(trusted: time)),
      case .integer(let revision) = values[3], case .integer(let count) = values[4], case .blob(let digest) = values[5]
    else {
      damage.append("its own row is not authentic")
      return
    }
    self.store = store
    self.created = created
    self.revision = revision
    self.digest = Digest(count: count, bytes: digest)
  }
}

extension Statement {
  /// The first columns of the row. A type that the schema does not know counts as NULL, and proves nothing.
  func values(_ count: Int) -> [Value] { (0..<Int32(count)).map { value($0) ?? .null } }
}

extension Row {
  /// Its first columns, for a message; a damaged text is shown as far as it is text.
  fileprivate var label: String {
    values.prefix(2).map { value in
      switch value {
      case .text(let bytes): String(decoding: bytes.prefix(64).filter { $0 >= 0x20 && $0 < 0x7f }, as: UTF8.self)
      case .integer(let number): "\(number)"
      case .null, .blob: "?"
      }
    }.joined(separator: " ")
  }
}
