import Foundation
import IdentityCore
import Testing

@testable import IdentityStore

/// A backup that an earlier release made.
struct EarlierBackupTests {
  @Test func `a backup with the columns of schema version 2 is read whole`() throws {
    let workspace = try Workspace()
    let registry = try workspace.commit(EarlierTables.changes, withEvents: true)
    let backup = try workspace.withStore { store, _ in
      let key = try store.makeSecretMemory().encrypt(Array(1...32))
      var upload = try BackupUpload(key: key)
      _ = try upload.add(Text(Data(try Self.bytes(of: registry, key, store)).base64EncodedString()))
      let reader = try store.beginReading(upload)
      var backup: Backup?
      while backup == nil { backup = try reader.readRecord() }
      try store.mustClose()
      return backup
    }
    let apps = Dictionary(uniqueKeysWithValues: registry.apps.map { ($0.key, $0.value) })
    #expect(backup?.apps == apps && apps.values.contains { $0.manifest?.container != nil })
    #expect(backup?.fleet?.counter == registry.fleet?.counter && registry.fleet != nil)
    #expect(backup?.fleet?.generation == registry.fleet?.generation)
    let records = Array(registry.records.all)
    #expect(backup?.records == records && !records.isEmpty)
  }

  /// Returns a backup of the apps and the fleet in format 3.
  private static func bytes(of registry: Registry, _ key: SealedSecret, _ store: borrowing Store) throws -> [UInt8] {
    let cipher = try #require(store.keys.memory.cipherKey(in: key))
    var head = try store.marks.head(at: later(100))
    head[0] = .integer(3)
    var records: [(BackupFormat.Kind, [Value])] = [(.head, head)]
    records += registry.apps.map { (.app, EarlierTables.columns(of: $0.key, $0.value)) }
    var fleet = try #require(registry.fleet)
    fleet.runs = []
    records.append((.fleet, EarlierTables.columns(of: fleet)))
    records += registry.records.all.map { (.record, EarlierTables.columns(of: $0)) }
    records.append((.end, [.integer(Int64(records.count))]))
    var bytes: [UInt8] = []
    var previous: [UInt8] = []
    for (place, (kind, values)) in records.enumerated() {
      let associated = BackupFormat.associated(
        index: Int64(place), isLast: place == records.count - 1, behind: previous[...])
      previous = cipher.encrypt(Authenticator.message(values, behind: kind.rawValue), with: associated)
      bytes += (0..<BackupFormat.lengthSize).map { UInt8(truncatingIfNeeded: previous.count >> (8 * $0)) } + previous
    }
    return bytes
  }
}
