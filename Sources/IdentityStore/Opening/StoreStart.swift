import IdentityCore
import LinuxSystem

/// The inputs of one start, and the attempts to open the store with them.
struct StoreStart {
  let path: String
  let options: Store.Options
  let now: Timestamp
  /// A random UUID for a new store.
  let identity: UUID
  let machine: MachineMarks
  /// The master keys that the service manager handed over.
  let handedOver: KeyRing
  /// The content of `witness.latest` before the page cache is dropped; nil if it could not be read.
  ///
  /// The file is synced with some commits only, so the page cache may have a later content than a failing disk.
  private let recorded: [UInt8]?

  init(
    _ path: String, _ options: Store.Options, at now: Timestamp, identity: UUID, _ machine: MachineMarks,
    _ handedOver: KeyRing, in directory: borrowing StateDirectory
  ) {
    self.path = path
    self.options = options
    self.now = now
    self.identity = identity
    self.machine = machine
    self.handedOver = handedOver
    recorded = try? LatestWitness.read(in: directory.folder)
  }

  /// Opens the store, and repeats that for a while if the disk refuses a call.
  ///
  /// If the disk goes on refusing, another attempt reads the store without writing anything. If that fails too, nothing
  /// is served.
  ///
  /// - Throws: the failure of a first start, or a failure that has another cause than the disk.
  func open(in directory: inout StateDirectory) throws -> Opening {
    let disk = try DiskCheck(in: directory)
    if let reason = disk.failure { return try unreadable(reason, disk, in: directory) }
    if let reason = disk.lesserFailure { directory.giveUpWriting(reason) }
    var patience = Patience()
    while true {
      do {
        return try attempt(disk, in: directory)
      } catch let failure as StoreFailure {
        throw failure
      } catch {
        if error.saysReadOnly, directory.hasBecomeReadOnly() || patience.waits(after: error) { continue }
        guard error.isOfDisk else { throw error }
        if patience.waits(after: error) { continue }
        if directory.isReadOnly { return try unreadable(error.advised, disk, in: directory) }
        // A new store can only be written.
        if let found = try? Found(in: directory), found.isFirstStart { throw error }
        directory.giveUpWriting(error.advised)
      }
    }
  }

  private func unreadable(_ reason: String, _ disk: DiskCheck, in directory: borrowing StateDirectory) throws -> Opening
  {
    var opening = Opening(self, key: try .unknown(), keys: try StoreKeys(handedOver, in: directory.folder), disk, [])
    opening.cannotRead(reason)
    return opening
  }

  private func attempt(_ disk: DiskCheck, in directory: borrowing StateDirectory) throws -> Opening {
    try Store.refuseOtherVersions(in: directory, path: path)
    var notices: [StoreNotice] = []
    let key = try StoreKey.read(in: directory.folder)
    var keys = try StoreKeys(handedOver, in: directory.folder)
    if !directory.isReadOnly { try Store.finishRewrite(in: directory, key, keys, options, now: now, &notices) }
    let found = try Found(in: directory, recorded: recorded)
    let isKnown = key.isKnown
    var opening = Opening(self, key: key, keys: keys, disk, notices)
    if found.isFirstStart {
      guard !directory.isReadOnly else {
        opening.cannotCreate(in: directory)
        return opening
      }
      notices += try Store.setMasterKeysAside(in: directory, now)
    } else {
      try opening.load(found, in: directory)
      guard opening.isSealed else {
        try opening.keys.noteFiles(in: directory.folder)
        return opening
      }
      try opening.removeSealed(in: directory)
      notices = [.unsealed]
    }
    keys.ring = KeyRing(handedOver, in: directory.folder)
    let aside = isKnown ? nil : Store.asideName(StoreKey.fileName, now)
    let fresh = try StoreKey.create(in: directory.folder, aside: aside)
    opening = Opening(self, key: fresh, keys: keys, disk, notices)
    try opening.create(in: directory)
    try opening.keys.noteFiles(in: directory.folder)
    return opening
  }
}

/// The database and witnesses found in the state directory.
struct Found {
  let database: FileStatus?
  let witness: [UInt8]?
  /// The contents of `witness.latest` now and before the page cache was dropped, as far as each could be read.
  let latest: [[UInt8]]
  /// The reason why a witness could not be read; nil if all could, or are missing.
  let unread: String?
  private let hasLatest: Bool

  /// Reads the witnesses. A witness that cannot be read is left out if the store is only read.
  ///
  /// - Parameter recorded: an earlier content of `witness.latest`.
  init(in directory: borrowing StateDirectory, recorded: [UInt8]? = nil) throws {
    var unread: String?
    func content(_ name: String, _ content: () throws(SystemError) -> [UInt8]?) throws(SystemError) -> [UInt8]? {
      do {
        return try content()
      } catch {
        guard directory.isReadOnly, error.isOfDisk else { throw error }
        unread = "\(error)"
        return nil
      }
    }
    database = try directory.folder.status(of: Store.fileName)
    witness = try content(Witness.fileName) { () throws(SystemError) in
      try Witness.read(Witness.fileName, in: directory.folder)
    }
    let latest = try content(LatestWitness.fileName) { () throws(SystemError) in
      try LatestWitness.read(in: directory.folder)
    }
    hasLatest = latest != nil
    self.latest = [latest, recorded].compactMap(\.self)
    self.unread = unread
  }

  /// Whether there is neither a database nor a witness.
  var isFirstStart: Bool { database == nil && witness == nil && !hasLatest && unread == nil }

  /// Returns the newest content of `witness.latest` that is authentic.
  func newest(_ authenticator: borrowing Authenticator) -> Witness? {
    var newest: Witness?
    for content in latest {
      guard let found = LatestWitness.newest(in: content, authenticator) else { continue }
      if found.revision >= newest?.revision ?? 0 { newest = found }
    }
    return newest
  }
}
