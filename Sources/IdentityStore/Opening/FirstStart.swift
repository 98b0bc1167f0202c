import Glibc
import IdentityCore
import LinuxSystem

// Creation of a store, if there is neither a database nor a witness. If the start is interrupted before the database
// has its final name, the next start is another first start. After that, the next start finds a complete store.
extension Opening {
  /// Creates the store. The file of its key must be written, and its name need not be on disk yet.
  mutating func create(in directory: borrowing StateDirectory) throws {
    isSealedHere = try wasSealedHere(in: directory)
    let dataKey = try keys.freshDataKey(of: start.identity, at: start.now, in: directory.folder)
    try writeDraft(in: directory, dataKey)
    // These files may be left over from a removed database, and would be taken for files of the new one.
    for name in [Store.logName, Store.fileName + "-journal", ResumptionFile.fileName] {
      try directory.folder.remove(name)
    }
    // Both keys are on disk, and those files are not, before the database has its name.
    try directory.folder.synchronize()
    try directory.folder.rename(Store.draftName, to: Store.fileName)
    try directory.folder.synchronize()
    try read(in: directory)
    try files?.database.checkpoint()
    // The sync of the folder with the new file of the latest witness, which follows, makes the name durable.
    try writeWitness(in: directory, isDurable: false)
    try forgetSealed(in: directory)
    notices.append(.created(path: start.path))
  }

  /// Creates the new store under a temporary name.
  ///
  /// An interrupted start leaves a draft, which the next start removes. A partial file under the final name would have
  /// to be taken for a damaged store.
  private func writeDraft(in directory: borrowing StateDirectory, _ dataKey: WrappedKey) throws {
    try directory.folder.create(Store.draftName, mode: 0o600)
    do {
      let database = try Database(path: "\(directory.folder.path)/\(Store.draftName)", create: true)
      // A draft that is not whole is removed, so its transaction needs neither a journal on disk nor syncs.
      try database.execute(
        "PRAGMA page_size = \(LogFrame.pageLength); PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
      try database.create(
        identity: start.identity, created: start.now, settings: firstSettings, key: dataKey, key.authenticator)
      // A later connection would need four syncs for this change.
      try database.execute("PRAGMA journal_mode = WAL")
    }
    let draft = try directory.folder.open(Store.draftName, flags: O_RDWR)
    try draft.synchronize(name: Store.draftName)
    if let lost = try DiskReading.read(Store.draftName, in: directory.folder)?.lostWrite { throw lost }
  }

  /// The first settings: empty, unless a store was sealed on this machine.
  ///
  /// In that case nothing may be derived from the machine-id. The new store must record that from its first revision
  /// on, because the sealed store is gone.
  private var firstSettings: StoredSettings {
    guard isSealedHere else { return StoredSettings() }
    return StoredSettings(machine: MachineRecord(fingerprint: fingerprint, spentMachine: fingerprint.machine))
  }
}
