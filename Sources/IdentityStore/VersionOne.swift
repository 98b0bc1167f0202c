import Glibc
import IdentityCore
import LinuxSystem

/// A store of schema version 1: the apps, and the identifiers that are in force. Its rows were never changed.
enum VersionOne {
  static let version: Int64 = 1

  fileprivate static let app = Table(
    name: "app", columns: ["id", "vendor", "installed", "revision"], place: 1, of: .apps)
  fileprivate static let identifier = Table(
    name: "identifier", columns: ["level", "app", "value", "created", "origin", "revision"], place: 2,
    of: .identifiers)
  fileprivate static let store = Table(
    name: "store", columns: ["only", "id", "created", "revision", "row_count", "digest"], place: Table.noPlace, of: .all
  )

  /// A row of `identifier`, and what tells when it came into force.
  fileprivate struct Stored {
    let revision: Int64
    let identifier: Identifier

    /// An app's own had no origin then: all of them were random.
    init?(_ columns: [Value]) {
      guard let level = columns[0].named(Level.self), let app = columns[1].asText, let value = columns[2].uuid,
        let created = columns[3].time, let revision = columns[5].number
      else { return nil }
      let origin = columns[4].named(Origin.self)
      switch (level, origin) {
      case (.device, let origin?):
        identifier = Identifier(
          scope: .device, value: value, created: created, origin: origin, cause: .firstUse, author: nil)
      case (.installation, nil) where columns[4] == .null:
        identifier = Identifier(
          scope: .installation(app), value: value, created: created, origin: .random, cause: .firstUse, author: nil)
      default: return nil
      }
      self.revision = revision
    }
  }
}

extension Reading {
  /// Reads and proves every row of a store of version 1, as what it is in this version.
  mutating func readVersionOne(_ database: borrowing Database, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    var found = ProvenRows()
    var identifiers: [VersionOne.Stored] = []
    try read(VersionOne.app, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let id = columns[0].asText, let installed = columns[2].time else { return false }
      // Nobody had a manifest, so every app was a vendor of its own.
      reading.registry.apply(.appInstalled(id, App(installed: installed)))
      return true
    }
    try read(VersionOne.identifier, database, authenticator, &found) { _, row in
      guard let stored = VersionOne.Stored(row.values) else { return false }
      identifiers.append(stored)
      return true
    }
    for stored in identifiers.sorted(by: { $0.revision < $1.revision }) {
      registry.apply(.identifierMade(stored.identifier))
    }
    if let device = registry[.device] {
      registry.apply(.deviceListed(ListedDevice(value: device.value, added: device.created)))
    }
    let isCounted = try readStore(VersionOne.store, database, authenticator)
    damage += found.damage
    judge(found, isCounted: isCounted)
  }
}

extension Database {
  /// Makes a proven store of version 1 one of this version, in one transaction.
  func migrate(_ reading: Reading, key: WrappedKey, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    let registry = reading.registry
    let apps = registry.apps.sorted { $0.key < $1.key }
    try create(
      after: "DROP TABLE app; DROP TABLE identifier; DROP TABLE store;", identity: reading.store,
      created: reading.created, revision: reading.ledger.revision + 1, settings: Settings(), key: key,
      changes: apps.map { .appInstalled($0.key, $0.value) } + registry.history.all.map { .identifierMade($0) }
        + registry.devices.map { .deviceListed($0) }, authenticator)
  }
}
