import IdentityCore

/// A store of schema version 4: nothing says when an app was used.
enum VersionFour {
  static let version: Int64 = 4
}

extension Database {
  /// Makes a proven store of version 4 one of this version, in one transaction.
  func addUses(to reading: Reading, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try extend(reading, by: Schema.useTable, authenticator) { (_) throws(DatabaseError) in }
  }
}
