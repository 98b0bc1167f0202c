import IdentityCore

/// A store of schema version 3: no versions and no push tokens yet.
enum VersionThree {
  static let version: Int64 = 3
}

extension Database {
  /// Makes a proven store of version 3 one of this version, in one transaction.
  func addVersions(to reading: Reading, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try extend(reading, by: Schema.versionTables + Schema.useTable, authenticator) { (_) throws(DatabaseError) in }
  }
}
