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
    _ authenticator: borrowing Authenticator, _ keys: inout StoreKeys, at now: Timestamp
  ) throws -> Reading {
    let key = try keys.freshDataKey(of: reading.store, at: now, in: directory.folder)
    if reading.version == VersionOne.version {
      guard try files?.database.migrate(reading, key: key, authenticator) != nil else {
        throw DatabaseError.noConnection
      }
    } else {
      guard try files?.database.addItems(to: reading, key: key, authenticator) != nil else {
        throw DatabaseError.noConnection
      }
    }
    files = nil
    let database = try connect("\(directory.folder.path)/\(fileName)")
    let migrated = try Reading(database, authenticator, keys)
    guard migrated.damage.isEmpty, migrated.ledger.revision == reading.ledger.revision + 1 else {
      throw SystemError(call: "the migrated store reads back differently", code: EIO)
    }
    files = try OpenFiles(database, version: migrated.version, in: directory)
    return migrated
  }
}
