import Glibc
package import IdentityCore
import LinuxSystem

// The store is written anew into a second file, which then takes the first one's place. A cut at any moment leaves
// either the old file with its log, or a whole new file: "rewritten" is the name that only a synced and proven one gets.
extension Store {
  static let draftName = "identityd.db.draft"
  static let rewrittenName = "identityd.db.rewritten"

  /// Writes the store anew after a commit failed, so that changes are possible again.
  ///
  /// The writer's own registry may be ahead of the disk after a failure: the one returned takes its place.
  /// - Returns: what the store holds now, or nil when it still cannot be written; ``condition`` then says why.
  package mutating func heal() -> Registry? {
    switch condition {
    case .damaged, .unreadable: return nil
    case .writable, .full, .unwritable: break
    }
    do {
      // Nothing that is written elsewhere, or without the lock, would last.
      guard !directory.isReadOnly else { throw Self.readOnly }
      guard try directory.folder.isInPlace() else { throw moved }
      let registry = try rewrite()
      try restoreKeys()
      return registry
    } catch {
      condition = StoreCondition(after: error)
      return nil
    }
  }

  static let readOnly = SystemError(
    call: "write to the file system of the store, which is mounted read-only: remount it, then restart identityd",
    code: EROFS)

  /// Writes the keys anew that are not there any more as they were. What is in their places is set aside.
  private mutating func restoreKeys() throws {
    condition = .writable
    defer { measure() }
    let found = try KeyFiles(in: directory.folder)
    let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
    if found.store != keyFiles.store {
      try setAside(StoreKey.fileName, now)
      try StoreKey.write(authenticator, in: directory.folder)
    }
    if needsMasterFile, found.master != keyFiles.master {
      try setAside(MasterKey.fileName, now)
      keyFiles = try KeyFiles(in: directory.folder)
      // What was in the file is not known any more, only what it opened.
      _ = try rotateKey(at: now)
    }
    keyFiles = try KeyFiles(in: directory.folder)
  }

  private func setAside(_ name: String, _ now: Timestamp) throws(SystemError) {
    guard try directory.folder.status(of: name) != nil else { return }
    try directory.folder.rename(name, to: Self.asideName(name, now))
    try directory.folder.synchronize()
  }

  private mutating func rewrite() throws -> Registry {
    // Without a connection an earlier attempt got beyond this step.
    if files != nil, try directory.folder.status(of: Self.rewrittenName) == nil {
      do {
        try writeDraft()
        // One that only the page cache has would be believed here, and be gone after a power cut.
        if let lost = try DiskReading.read(Self.draftName, in: directory.folder)?.lostWrite { throw lost }
      } catch {
        // What it took of a full disk is everybody's.
        try? Self.removeDraft(in: directory)
        throw error
      }
      try requireAcknowledged(
        try Reading(path: "\(directory.folder.path)/\(Self.draftName)", authenticator, keys), "the draft of the store")
      try directory.folder.rename(Self.draftName, to: Self.rewrittenName)
      try directory.folder.synchronize()
    }
    // From here on the old file must not be written: the new one is the store.
    files = nil
    try Self.finishRewrite(in: directory)
    let database = try Self.connect(path, options, readOnly: false)
    var reading = try Reading(database, authenticator, keys)
    try requireAcknowledged(reading, "the rewritten store")
    try database.checkpoint()
    files = try OpenFiles(database, version: reading.version, in: directory)
    measure()
    // One that could not be migrated at the start.
    if reading.version < Schema.version {
      reading = try Self.migrated(
        reading, &files, in: directory, authenticator, &keys, options,
        at: Timestamp(milliseconds: Clock.realtimeMilliseconds))
    }
    ledger = reading.ledger
    dataKey = reading.unwrapped?.key
    try writeWitness()
    return reading.registry
  }

  /// Only what was acknowledged may be in a file that is to be the store, and all of it.
  private func requireAcknowledged(_ reading: Reading, _ name: String) throws(SystemError) {
    guard reading.damage.isEmpty, reading.ledger.revision == ledger.revision else {
      throw SystemError(
        call: "\(name) is not what was acknowledged (\(reading.damage.first ?? "another revision"))", code: EIO)
    }
  }

  private func writeDraft() throws {
    try Self.removeDraft(in: directory)
    try directory.folder.create(Self.draftName, mode: 0o600)
    guard try files?.copy(into: "\(directory.folder.path)/\(Self.draftName)") != nil else {
      throw DatabaseError.noConnection
    }
    let draft = try directory.folder.open(Self.draftName, flags: O_RDWR)
    try draft.synchronize(name: Self.draftName)
  }

  /// Brings a rewrite that was interrupted to its end, at a start.
  ///
  /// The file was proven before it got its name. It is proven once more, because the one it replaces is whole too: a
  /// damaged one is set aside, and the old store stays. Without the key nothing is proven, and nothing touched.
  static func finishRewrite(
    in directory: borrowing StateDirectory, _ key: borrowing StoreKey, _ keys: StoreKeys, now: Timestamp,
    _ notices: inout [StoreNotice]
  ) throws {
    try removeDraft(in: directory)
    guard try directory.folder.status(of: rewrittenName) != nil, key.isKnown else { return }
    let path = "\(directory.folder.path)/\(rewrittenName)"
    if try Reading(path: path, key.authenticator, keys).damage.isEmpty {
      try finishRewrite(in: directory)
      notices.append(.finishedRewrite)
    } else {
      let aside = asideName(rewrittenName, now)
      try directory.folder.rename(rewrittenName, to: aside)
      try directory.folder.synchronize()
      notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
    }
  }

  static func removeDraft(in directory: borrowing StateDirectory) throws(SystemError) {
    try directory.folder.remove(draftName)
    try directory.folder.remove(draftName + "-journal")
  }

  /// Puts a whole rewritten store in the place of the old one. Repeating it after a cut does no harm.
  ///
  /// The old log goes first, and durably: beside the new file SQLite would take it for the new file's own.
  private static func finishRewrite(in directory: borrowing StateDirectory) throws(SystemError) {
    guard try directory.folder.status(of: rewrittenName) != nil else { return }
    try directory.folder.remove(logName)
    try directory.folder.synchronize()
    try directory.folder.rename(rewrittenName, to: fileName)
    try directory.folder.synchronize()
  }
}

extension StoreCondition {
  /// What a failure leaves possible: a full disk is a condition of its own, because an operator can mend it.
  init(after error: any Error) {
    switch error {
    case let error as UncertainCommit: self.init(after: error.cause)
    case let error as DatabaseError where error.isFull: self = .full
    case let error as SystemError where error.code == ENOSPC || error.code == EDQUOT: self = .full
    default: self = .unwritable("\(error)")
    }
  }
}
