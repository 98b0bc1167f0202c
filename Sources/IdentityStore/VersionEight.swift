import IdentityCore

/// A store of a schema version from 2 to 8: one digest for all tables, and event numbers without an epoch.
enum VersionEight {
  static let version: Int64 = 8

  static let store = Table(
    name: "store", columns: ["only", "id", "created", "revision", "row_count", "digest", "last_event"],
    place: Table.noPlace,
    of: .all)
}

extension Database {
  /// Makes a proven store of version 8 one of this version, in one transaction.
  func addDigests(to reading: Reading, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    try extend(reading, by: "", authenticator) { (_) throws(DatabaseError) in }
  }
}
