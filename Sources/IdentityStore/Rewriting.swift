import Glibc
package import IdentityCore
import LinuxSystem

// A rewrite copies the store into a second file, which then replaces the first one. An interruption at any
// moment leaves either the old file with its WAL, or a complete new file: only a synced and verified file is
// named "rewritten".
extension Store {
  static let draftName = "identityd.db.draft"
  static let rewrittenName = "identityd.db.rewritten"

  /// Rewrites the store after a failed commit, so that changes are possible again.
  ///
  /// Also makes a store writable whose file system was read-only at the start. Of a store that could not be read, only
  /// finds out whether a new start can read it. The registry of the writer may be ahead of the disk after a failure. The
  /// returned registry replaces it.
  ///
  /// - Returns: the committed registry, or nil if the store still cannot be written. ``condition`` then has the reason.
  package mutating func heal() -> Registry? {
    switch condition {
    case .damaged: return nil
    case .unreadable:
      isStartDue = isStartDue || DiskCheck.succeeds(in: directory)
      return nil
    case .writable, .full, .unwritable: break
    }
    do {
      // Writes would not last under a lock that other readers share, or in a directory that was moved away.
      guard try takeDirectory() else { return nil }
      guard try directory.folder.isInPlace() else { throw moved }
      let registry = try rewrite()
      try restoreKeys()
      try openLatest()
      return registry
    } catch {
      condition = StoreCondition(after: error)
      return nil
    }
  }

  /// Takes a directory for writing whose file system was read-only at the start.
  ///
  /// - Returns: false if the file system is still read-only, or if a new start is necessary.
  private mutating func takeDirectory() throws -> Bool {
    if directory.isReadOnly {
      guard try directory.becomeWritable() else {
        isStartDue = directory.needsNewMount
        return false
      }
    }
    if undone == .check {
      // Another daemon may have written to the store through another mount, and have ended since.
      let found = try Found(in: directory)
      let reached = [found.newest(authenticator), found.witness.flatMap { Witness($0, authenticator) }]
      undone = reached.contains { $0?.revision ?? 0 > ledger.row.revision } ? .all : .nothing
    }
    guard undone == .all, !isStartDue else { return undone == .nothing }
    // The next start could meet the same refusal, and the one after it.
    guard directory.refusal == nil else { return false }
    if files != nil {
      defer { try? Self.removeDraft(in: directory) }
      try writeDraft()
    }
    isStartDue = true
    return false
  }

  /// Opens `witness.latest` after a start that could write nothing.
  private mutating func openLatest() throws(SystemError) {
    guard latest == nil else { return }
    latest = try LatestWitness(ledger.row.witness, authenticator, in: directory.folder)
  }

  /// Replaces key files that were removed or changed: the store key from memory, the master key by a rotation.
  ///
  /// Files in their places are set aside.
  private mutating func restoreKeys() throws {
    condition = .writable
    defer { measure() }
    let found = try KeyFiles(in: directory.folder)
    let now = Timestamp(milliseconds: Clock.realtimeMilliseconds)
    if found.store != keys.files.store {
      try setAside(StoreKey.fileName, now)
      try StoreKey.write(authenticator, in: directory.folder)
    }
    if keySource == .file, found.master != keys.files.master, !holdsMasterKey {
      try setAside(MasterKey.fileName, now)
      try keys.noteFiles(in: directory.folder)
      // The content of the file is not in memory any more, only the data key that it unwrapped.
      _ = try rotateKey(at: now)
    }
    try keys.noteFiles(in: directory.folder)
  }

  /// Whether a key file still holds the master key in use. A rotation that failed leaves other files than before, but
  /// the key in use is among them.
  private var holdsMasterKey: Bool {
    ledger.wrappedKey.flatMap { KeyRing(KeyRing(), in: directory.folder).unwrap($0, of: identity) } != nil
  }

  private func setAside(_ name: String, _ now: Timestamp) throws(SystemError) {
    guard try directory.folder.status(of: name) != nil else { return }
    try directory.folder.rename(name, to: Self.asideName(name, now))
    try directory.folder.synchronize()
  }

  private mutating func rewrite() throws -> Registry {
    if let frame = frameOfUnrecorded {
      let log = try LogExamination(of: Self.logName, in: directory.folder, frame)
      try leaveOutLastCommit(from: log.lengthBeforeLastCommit, after: ledger.row.revision)
      frameOfUnrecorded = nil
    }
    // If there is no connection, an earlier attempt completed this step.
    if files != nil, try directory.folder.status(of: Self.rewrittenName) == nil {
      do {
        try writeDraft()
        // A draft that exists only in the page cache would be verified here, and be lost in a power cut.
        if let lost = try DiskReading.read(Self.draftName, in: directory.folder)?.lostWrite { throw lost }
      } catch {
        // The draft may occupy space on a full disk that others need.
        try? Self.removeDraft(in: directory)
        throw error
      }
      try requireAcknowledged(
        try Reading(path: "\(directory.folder.path)/\(Self.draftName)", authenticator, keys),
        "the draft of the store")
      try directory.folder.rename(Self.draftName, to: Self.rewrittenName)
      try directory.folder.synchronize()
    }
    // From here on the new file is the store, and the old file must not be written.
    files = nil
    try Self.finishRewrite(in: directory)
    let database = try Self.connect(path, options, readOnly: false)
    var reading = try Reading(database, authenticator, keys)
    try requireAcknowledged(reading, "the rewritten store")
    try database.checkpoint()
    files = try OpenFiles(database, in: directory)
    measure()
    // The migration at the start failed, so it is repeated.
    if reading.version < Schema.version {
      reading = try Self.migrated(reading, &files, in: directory, authenticator, keys, options)
    }
    ledger = reading.ledger
    keys.dataKey = reading.unwrapped?.key
    try writeWitness()
    return reading.registry
  }

  /// Fails unless a file that is to become the store has exactly the acknowledged content.
  private func requireAcknowledged(_ reading: Reading, _ name: String) throws(SystemError) {
    guard reading.damage.isEmpty, reading.ledger.row.revision == ledger.row.revision else {
      throw SystemError(
        call: "\(name) differs from the acknowledged content (\(reading.damage.first ?? "another revision"))", code: EIO
      )
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

  /// Completes an interrupted rewrite at a start.
  ///
  /// The file was verified before it got its name. It is verified again, because the store that it replaces is complete
  /// too: if the file is damaged, it is set aside and the old store stays. Without the store key nothing can be
  /// verified, so the file is left alone.
  static func finishRewrite(
    in directory: borrowing StateDirectory, _ key: borrowing StoreKey, _ keys: StoreKeys, _ options: Options,
    now: Timestamp, _ notices: inout [StoreNotice]
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

  /// Replaces the old store with a complete rewritten one. Idempotent, so an interrupted call can be repeated.
  ///
  /// The old WAL is removed first, and durably, because SQLite would take it for the WAL of the new file.
  private static func finishRewrite(in directory: borrowing StateDirectory) throws(SystemError) {
    guard try directory.folder.status(of: rewrittenName) != nil else { return }
    try directory.folder.remove(logName)
    try directory.folder.synchronize()
    try directory.folder.rename(rewrittenName, to: fileName)
    try directory.folder.synchronize()
  }
}

extension StoreCondition {
  /// Maps an error to a condition. A full disk is a condition of its own, because an admin can free space.
  init(after error: any Error) {
    switch error {
    case let error as UncertainCommit: self.init(after: error.cause)
    case let error as DatabaseError where error.isFull: self = .full
    case let error as SystemError where error.code == ENOSPC || error.code == EDQUOT: self = .full
    default: self = .unwritable(error.explained)
    }
  }
}
