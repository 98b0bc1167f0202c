import Glibc
import IdentityCore
import LinuxSystem

// Making a store where there is none. It begins where neither a database nor a witness is there, so a cut before the
// database has its name is followed by another first start, and one after it by a start with a whole store.
extension Opening {
  /// Makes the store with a key that is on disk already.
  mutating func create(in directory: borrowing StateDirectory, identity: UUID) throws {
    isSealedHere = try wasSealedHere(in: directory)
    // On disk before anything is sealed with what it wraps.
    let dataKey = try keys.freshDataKey(of: identity, at: now, in: directory.folder)
    try writeDraft(in: directory, identity: identity, dataKey)
    // They may be left of a database that was removed: beside the new one SQLite would take them for the new one's own.
    try directory.folder.remove(Store.logName)
    try directory.folder.remove(Store.fileName + "-journal")
    try directory.folder.synchronize()
    try directory.folder.rename(Store.draftName, to: Store.fileName)
    try directory.folder.synchronize()
    try read(in: directory)
    try files?.database.checkpoint()
    try writeWitness(in: directory)
    try forgetSealed(in: directory)
    notices.append(.created(path: path))
  }

  /// Makes the new store under another name: a start that is cut leaves a draft, which the next start removes, and never
  /// half a store, which it would have to take for a damaged one.
  private func writeDraft(in directory: borrowing StateDirectory, identity: UUID, _ dataKey: WrappedKey) throws {
    try directory.folder.create(Store.draftName, mode: 0o600)
    do {
      let database = try Database(path: "\(directory.folder.path)/\(Store.draftName)", create: true)
      try database.create(
        identity: identity, created: now, revision: 0, settings: firstSettings, key: dataKey, changes: [],
        key.authenticator)
    }
    let draft = try directory.folder.open(Store.draftName, flags: O_RDWR)
    try draft.synchronize(name: Store.draftName)
    if let lost = try DiskReading.read(Store.draftName, in: directory.folder)?.lostWrite { throw lost }
  }

  /// Nothing, but on a machine where a store was sealed: that nothing may be derived from its machine-id has to be known
  /// from the very beginning, because the sealed store is gone.
  private var firstSettings: Settings {
    guard isSealedHere else { return Settings() }
    return Settings(machine: MachineRecord(fingerprint: fingerprint, spentMachine: fingerprint.machine))
  }
}
