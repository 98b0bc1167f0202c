import IdentityCore

/// A store of schema version 2: no items yet.
enum VersionTwo {
  static let version: Int64 = 2
}

extension Database {
  /// Makes a proven store of version 2 one of this version, in one transaction.
  func addItems(to reading: Reading, key: WrappedKey, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      try execute("\(Schema.itemTables) PRAGMA user_version = \(Schema.version);", as: "make the tables of items")
      var next = reading.ledger
      next.revision += 1
      var edit = Edit(try Tables(self), next, nil)
      try edit.wrap(key, authenticator)
      try edit.finish(identity: reading.store, created: reading.created, after: reading.ledger, authenticator)
    }
  }
}
