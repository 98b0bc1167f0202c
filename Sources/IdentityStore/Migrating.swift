import Glibc
import IdentityCore
import LinuxSystem

extension Store {
  /// Makes a proven store of an earlier version one of this version, and reads it back.
  ///
  /// - Parameters:
  ///   - reading: what it holds.
  ///   - files: the connection to it. Another takes its place.
  ///   - keys: where a master key has to be made, it comes in here.
  /// - Throws: where the disk refuses; either nothing was changed then, or all is there for the next start.
  static func migrated(
    _ reading: Reading, _ files: inout OpenFiles?, in directory: borrowing StateDirectory,
    _ authenticator: borrowing Authenticator, _ keys: inout StoreKeys, _ options: Options, at now: Timestamp
  ) throws -> Reading {
    try migrate(reading, &files, in: directory, authenticator, &keys, at: now)
    files = nil
    let database = try connect("\(directory.folder.path)/\(fileName)", options, readOnly: false)
    let migrated = try Reading(database, authenticator, keys)
    guard migrated.damage.isEmpty, migrated.ledger.revision == reading.ledger.revision + 1 else {
      throw SystemError(call: "the migrated store reads back differently", code: EIO)
    }
    files = try OpenFiles(database, version: migrated.version, in: directory)
    return migrated
  }

  private static func migrate(
    _ reading: Reading, _ files: inout OpenFiles?, in directory: borrowing StateDirectory,
    _ authenticator: borrowing Authenticator, _ keys: inout StoreKeys, at now: Timestamp
  ) throws {
    guard files != nil else { throw DatabaseError.noConnection }
    switch reading.version {
    case VersionEight.version:
      try files?.database.addDigests(to: reading, authenticator)
      return
    case VersionFour.version:
      try files?.database.addUses(to: reading, authenticator)
      return
    case VersionThree.version:
      try files?.database.addVersions(to: reading, authenticator)
      return
    default: break
    }
    let key = try keys.freshDataKey(of: reading.store, at: now, in: directory.folder)
    if reading.version == VersionOne.version {
      try files?.database.migrate(reading, key: key, authenticator)
    } else {
      try files?.database.addItems(to: reading, key: key, authenticator)
    }
  }
}

extension Database {
  /// Adds tables to a proven store of an earlier version and brings it to this one, in one transaction.
  func extend(
    _ reading: Reading, by tables: String, _ authenticator: borrowing Authenticator,
    _ body: (inout Edit) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    try transaction { () throws(DatabaseError) in
      // What stands in the store's own row was proven when it was read.
      try execute(
        "DROP TABLE store; \(Schema.storeTable) \(tables) PRAGMA user_version = \(Schema.version);",
        as: "make the tables of this version")
      var next = reading.ledger
      next.revision += 1
      next.epoch = try .fresh()
      var edit = Edit(try Tables(self), next, nil)
      try body(&edit)
      try edit.finish(identity: reading.store, created: reading.created, after: nil, authenticator)
    }
  }
}
