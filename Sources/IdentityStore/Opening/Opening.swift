import Glibc
package import IdentityCore
import LinuxSystem

extension Store {
  /// Opens the store of a state directory, or creates it at a first start.
  ///
  /// A first start finds neither a database nor a witness. Anything else that is missing or cannot be verified is
  /// damage: it is reported and kept, and nothing is made up in its place. A sealed store leads to a first start too:
  /// it is removed.
  ///
  /// - Parameters:
  ///   - now: the time at which a new store is created.
  ///   - identity: a random UUID for a new store.
  ///   - machine: the marks of the machine. Only their hashes are kept.
  ///   - credentials: the master keys that the service manager handed over.
  /// - Throws: a ``StoreFailure`` if a later version wrote the store, or if the disk fails before anything
  ///   can be served.
  package static func open(
    _ directory: consuming StateDirectory, options: Options, now: Timestamp, identity: UUID, machine: MachineMarks,
    credentials: consuming KeyCredentials = KeyCredentials()
  ) throws(StoreFailure) -> Store {
    let handedOver = KeyRing(&credentials)
    let path = "\(directory.folder.path)/\(fileName)"
    var directory = directory
    do {
      let start = StoreStart(path, options, at: now, identity: identity, machine, handedOver, in: directory)
      let opening = try start.open(in: &directory)
      let openCommit = opening.openCommit
      var store = try opening.opened(directory)
      try store.settleOpenCommit(after: openCommit)
      return store
    } catch let failure as StoreFailure {
      throw failure
    } catch {
      throw .unusable(path: path, reason: "\(error)")
    }
  }

  /// Opens a connection and configures how it writes.
  ///
  /// - Parameters:
  ///   - readOnly: whether the files are only read.
  ///   - logLength: the number of bytes of the WAL to read; nil for all of it.
  static func connect(_ path: String, _ options: Options, readOnly: Bool, logLength: Int64? = nil)
    throws(DatabaseError) -> Database
  {
    let database = try Database(path: path, create: false, readOnly: readOnly, logLength: logLength)
    try database.execute(
      "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA secure_delete = ON")
    guard try database.text("PRAGMA journal_mode = WAL") == "wal" else {
      throw DatabaseError(action: "switch to a write-ahead log", code: 8)
    }
    // Syncs each commit before it is acknowledged. With `synchronous = NORMAL`, only a checkpoint would sync.
    try database.execute("PRAGMA synchronous = FULL")
    // SQLite would ignore the failure of an automatic checkpoint. The writer checkpoints instead, see Store.commit.
    try database.execute("PRAGMA wal_autocheckpoint = 0")
    // Commits overwrite the WAL from its beginning. If a large commit or a reader in the way made the WAL longer than
    // this limit, SQLite truncates it. The limit exceeds the usual length at a checkpoint, so that the WAL does not
    // shrink and grow each time.
    let limit = max(Options().checkpointSize, options.checkpointSize / 4 * 5)
    try database.execute("PRAGMA journal_size_limit = \(limit)")
    // SQLite falls back to a read-only descriptor silently (SQLITE_READONLY is 8).
    guard readOnly || !database.isReadOnly else { throw DatabaseError(action: "open for writing", code: 8) }
    return database
  }

  /// Renames the master keys of a store that is gone, because a file that was set aside may need them.
  ///
  /// The new store gets keys of its own. The keys are renamed only once: if a first start makes a key and then fails,
  /// the next first start uses that key.
  static func setMasterKeysAside(in directory: borrowing StateDirectory, _ now: Timestamp) throws
    -> [StoreNotice]
  {
    let names = try ConfigurationAccess.names(in: directory.folder.path) ?? []
    guard !names.contains(where: { $0.hasPrefix(asidePrefix(MasterKey.fileName)) }) else { return [] }
    var notices: [StoreNotice] = []
    for name in [MasterKey.fileName, MasterKey.nextFileName] where try directory.folder.status(of: name) != nil {
      let aside = asideName(name, now)
      try directory.folder.rename(name, to: aside)
      notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
    }
    // Before a new key takes the name.
    if !notices.isEmpty { try directory.folder.synchronize() }
    return notices
  }

  private static func asidePrefix(_ name: String) -> String { "\(name).damaged-" }

  static func asideName(_ name: String, _ now: Timestamp) -> String { asidePrefix(name) + "\(now.milliseconds)" }

  /// Refuses a database of a later version or from before the first release, before SQLite may touch the file.
  ///
  /// Reads the version and the application ID from the header of the file (sqlite.org/fileformat.html, offsets 60
  /// and 68).
  static func refuseOtherVersions(in directory: borrowing StateDirectory, path: String) throws {
    guard let status = try directory.folder.status(of: fileName) else { return }
    guard status.isRegular else { throw StoreFailure.unusable(path: path, reason: "it is not a regular file") }
    var header = [UInt8](repeating: 0, count: 100)
    let file = try directory.folder.open(fileName, flags: O_RDONLY)
    guard try file.read(into: &header) == 100, header.starts(with: "SQLite format 3".utf8) else { return }
    func number(at offset: Int) -> Int64 { header[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int64($1) } }
    guard number(at: 68) != Schema.unreleasedID else { throw StoreFailure.unreleased(path: path) }
    try refuseNewer(version: number(at: 60), path: path)
  }

  static func refuseNewer(version: Int64, path: String) throws(StoreFailure) {
    guard version <= Schema.version else { throw .newer(path: path, found: version, supported: Schema.version) }
  }
}

/// One attempt to open the store, completed step by step.
struct Opening: ~Copyable {
  let start: StoreStart
  let key: StoreKey
  var keys: StoreKeys
  let disk: DiskCheck
  var isSealedHere = false
  /// Whether the store key verified a witness.
  ///
  /// Identifiers are derived only if the key verified a witness or the row of `store`, because the key may belong to
  /// another store.
  private(set) var isWitnessed = false
  /// The part of the start that is left undone.
  var undone = UndoneStart.nothing
  /// The length of the WAL before its last commit, if that commit was never acknowledged; nil if it was.
  private(set) var openCommit: Int64?
  var files: OpenFiles?
  var reading = Reading()
  var condition = StoreCondition.writable
  var notices: [StoreNotice]

  init(
    _ start: StoreStart, key: consuming StoreKey, keys: StoreKeys, _ disk: DiskCheck, _ notices: [StoreNotice]
  ) {
    self.start = start
    self.key = key
    self.keys = keys
    self.disk = disk
    self.notices = notices
  }

  /// The fingerprint of the machine; without any mark if the store's key is unknown.
  var fingerprint: MachineFingerprint {
    key.isKnown
      ? key.authenticator.fingerprint(of: start.machine) : MachineFingerprint(machine: nil, hardware: nil)
  }

  /// Returns the store that was found or created.
  consuming func opened(_ directory: consuming StateDirectory) throws(SystemError) -> Store {
    let latest = openLatest(in: directory)
    // Everything was read, and little of it is written again soon.
    files?.database.releaseMemory()
    var registry = reading.registry
    if let refusal = condition.refusal { registry.explain(refusal) }
    if files == nil {
      registry.itemFault = "items are unavailable because of the condition of the store: \(condition.name)"
    }
    let resumption = key.isKnown ? directory.resumption(key.authenticator, at: start.now, &notices) : .none
    let row = reading.ledger.row
    let isProven = row.identity != .zero
    let content = StoreContent(
      registry: registry, store: isProven ? row.identity : nil, events: reading.events, epoch: row.epoch,
      fingerprint: fingerprint, isSealedHere: isSealedHere, condition: condition, notices: notices, source: disk.source,
      derivation: isWitnessed || isProven ? try key.derivation() : nil, resumption: resumption,
      lacksItems: reading.lacksItems && files != nil)
    keys.dataKey = reading.unwrapped?.key
    return Store(
      directory: directory, authenticator: key.authenticator, options: start.options, marks: start.machine, keys: keys,
      files: files, ledger: reading.ledger, latest: latest, found: content, condition: condition, undone: undone)
  }

  /// Opens `witness.latest`; nil if nothing can be written, because there are no commits to record then.
  private mutating func openLatest(in directory: borrowing StateDirectory) -> LatestWitness? {
    guard condition == .writable else { return nil }
    do {
      return try LatestWitness(reading.ledger.row.witness, key.authenticator, in: directory.folder)
    } catch {
      cannotWrite("\(error)")
      return nil
    }
  }

  // MARK: Later starts

  /// Reads an existing store and reports its damage. A sealed store is only read.
  mutating func load(_ found: Found, in directory: borrowing StateDirectory) throws {
    guard key.isKnown else {
      return reject("its key, \(StoreKey.fileName), is missing or damaged, so nothing in it can be proven")
    }
    let latest = found.newest(key.authenticator)
    let witness = found.witness.flatMap { Witness($0, key.authenticator) }
    isWitnessed = latest != nil || witness != nil
    guard let database = found.database else {
      return reject("the database is gone, but the file \(Witness.fileName) records that there was one")
    }
    guard database.size > 0 else {
      return try setAside(in: directory, found, "the database is empty")
    }
    let examination = try LogExamination(of: Store.logName, in: directory.folder, LogFrame(in: directory.folder))
    guard !examination.isDamaged else {
      return reject(
        """
        \(Store.logName) is damaged in its middle, before acknowledged changes: restore a backup, \
        or remove \(Store.logName), \(Witness.fileName) and \(LatestWitness.fileName) from \(directory.folder.path) to \
        go back to the changes before the damage
        """)
    }
    do {
      try readTwice(in: directory)
    } catch let error as DatabaseError where error.saysDamaged || error.isAboutContent {
      // For SQLite a failed read looks like damage. The content is judged only after all files were read
      // from end to end.
      if let reason = try DiskCheck(in: directory).failure { return cannotRead(reason) }
      return try setAside(in: directory, found, "\(error)")
    }
    if let reason = reading.damageReason { return damaged(reason) }
    try compare(with: found, witness, latest, in: directory)
    if condition == .writable {
      // Each commit is recorded before it is acknowledged. If the record of the commit before is current, the last commit
      // was not. In another boot, the content comes from the disk, and the record may have missed it.
      if latest?.revision == reading.ledger.row.revision - 1, directory.isOfThisBoot {
        openCommit = examination.lengthBeforeLastCommit
      }
      if directory.isReadOnly {
        try onlyRead(in: directory, isWitnessed: isWitnessed || found.unread != nil, hasOpenCommit: openCommit != nil)
      } else if let lost = disk.lostWrite {
        cannotWrite("data that was written before this start is not on the disk (\(lost))")
      }
    }
    guard condition == .writable, !isSealed else { return }
    try migrate(in: directory)
    if condition == .writable { try makeWritable(found, in: directory) }
  }

  /// Migrates a store of an earlier version to this version. If the disk refuses, the store is served as it was read.
  private mutating func migrate(in directory: borrowing StateDirectory) throws {
    let version = reading.version
    guard version < Schema.version else { return }
    do {
      reading = try Store.migrated(reading, &files, in: directory, key.authenticator, keys, start.options)
      notices.append(.migrated(from: version))
    } catch {
      // If there is no connection, the migration succeeded, but the store could not be opened again.
      guard files != nil else { throw error }
      condition = StoreCondition(after: error)
      notices.append(.condition(condition))
    }
  }

  /// Reads the store, and if that reports damage, once more on a new connection: one failed read can look like damage.
  private mutating func readTwice(in directory: borrowing StateDirectory) throws {
    do {
      try read(in: directory)
    } catch let error as DatabaseError where error.saysDamaged || error.isAboutContent {
      reading = Reading()
      try read(in: directory)
    }
  }

  /// Reads the store on a new connection, and keeps the connection open.
  mutating func read(in directory: borrowing StateDirectory) throws {
    let database = try Store.connect(start.path, start.options, readOnly: directory.isReadOnly)
    try Store.refuseNewer(version: try database.integer("PRAGMA user_version") ?? 0, path: start.path)
    reading = try Reading(database, key.authenticator, keys, path: directory.isReadOnly ? nil : start.path)
    files = try OpenFiles(database, in: directory)
  }

  private mutating func compare(
    with found: Found, _ witness: Witness?, _ latest: Witness?, in directory: borrowing StateDirectory
  ) throws {
    if let latest { compare(with: latest, in: directory) }
    if let witness { return compare(with: witness, in: directory) }
    guard found.unread == nil else { return }
    guard found.witness != nil else {
      notices.append(.witnessRenewed(reason: "it was missing"))
      return
    }
    guard !directory.isReadOnly else { return }
    let aside = Store.asideName(Witness.fileName, start.now)
    try directory.folder.rename(Witness.fileName, to: aside)
    notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
    notices.append(.witnessRenewed(reason: "it was not authentic"))
  }

  private mutating func compare(with known: Witness, in directory: borrowing StateDirectory) {
    guard condition == .writable else { return }
    let names = "\(Witness.fileName) and \(LatestWitness.fileName)"
    let remedy = "restore the latest copy, or remove \(names) from \(directory.folder.path) to accept this one"
    if known.store != .zero, known.store != reading.ledger.row.identity {
      reject("it is not the store that was here before; \(remedy)")
    } else if known.revision > reading.ledger.row.revision {
      reject(
        "it is an older copy: it has revision \(reading.ledger.row.revision), "
          + "but revision \(known.revision) was reached; \(remedy)"
      )
    }
  }

  /// Prepares the store for its first commit: checkpoints the WAL, and renews witness and keys if necessary.
  ///
  /// The checkpoint is necessary because a write that failed before a crash may have left blocks in the WAL that a
  /// power cut would lose. Without a witness the store may be an older copy, whose next event numbers may have been
  /// given out before, so a new epoch begins.
  ///
  /// - Throws: the error of a connection that can only read, because SQLite could not open the WAL for writing.
  private mutating func makeWritable(_ found: Found, in directory: borrowing StateDirectory) throws {
    do {
      try files?.database.checkpoint()
      if !isWitnessed { try beginEpoch() }
      if found.witness != witness { try writeWitness(in: directory) }
      try forgetSealed(in: directory)
      if let master = reading.unwrapped?.master {
        try KeyRing.completeRotation(to: master, in: directory.folder)
      }
    } catch let error as DatabaseError where error.saysReadOnly {
      throw error
    } catch {
      condition = StoreCondition(after: error)
      notices.append(.condition(condition))
    }
  }

  private mutating func beginEpoch() throws {
    let epoch = try UUID.fresh()
    let next = try files?.commit(after: reading.ledger, nil, key.authenticator) { $0.begin(epoch) }
    if let next { reading.ledger = next }
  }

  /// The content of the witness file.
  private var witness: [UInt8] { reading.ledger.row.witness.bytes(key.authenticator) }

  func writeWitness(in directory: borrowing StateDirectory, isDurable: Bool = true) throws(SystemError) {
    try directory.folder.replace(Witness.fileName, with: witness, mode: 0o600, isDurable: isDurable)
  }
}
