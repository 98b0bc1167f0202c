import IdentityCore

/// A store of schema version 2: no items yet.
enum VersionTwo {
  static let version: Int64 = 2
}

extension Database {
  /// Makes a proven store of version 2 one of this version, in one transaction.
  func addItems(to reading: Reading, key: WrappedKey, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try extend(reading, by: Schema.itemTables + Schema.versionTables + Schema.useTable, authenticator) {
      (edit) throws(DatabaseError) in
      try edit.wrap(key, authenticator)
    }
  }
}
