import Glibc
import IdentityCore
import LinuxSystem

// A sealed store is the one of a golden image: whatever starts from it is to be somebody else, so the store goes, with
// its key and all that was ever set aside. A cut leaves the sealed store, with or without its witnesses, or no database
// and no witness, which is a first start. The database goes before its log: without it the seal itself could be undone.
extension Opening {
  /// Says that the sealed store was sealed on this machine, until the new store says so. Without it a cut between the end
  /// of one and the beginning of the other would let the sealed identifiers come again.
  private static let markName = "sealed-here"

  /// Whether the store that was read is sealed, and proves.
  var isSealed: Bool { condition == .writable && reading.registry.isSealed }

  /// Removes the sealed store, so that a first start can follow.
  mutating func removeSealed(in directory: borrowing StateDirectory) throws {
    files = nil
    let sealed = reading.registry.machine?.fingerprint.machine
    try mark(sealed != nil && sealed == fingerprint.machine, in: directory)
    try removeCopies(in: directory)
    // Before the database: its secrets must not be readable in a second machine that is made of this image.
    try directory.folder.remove(MasterKey.fileName)
    try directory.folder.remove(MasterKey.nextFileName)
    try directory.folder.remove(Witness.fileName)
    try directory.folder.remove(LatestWitness.fileName)
    try directory.folder.synchronize()
    try directory.folder.remove(Store.fileName)
    try directory.folder.synchronize()
    // What is left, the log and the key, goes at every first start.
  }

  /// Whether a store was sealed on this machine and removed, and no other took its place yet.
  func wasSealedHere(in directory: borrowing StateDirectory) throws(SystemError) -> Bool {
    try directory.folder.status(of: Self.markName) != nil
  }

  /// Removes the mark once there is a store, which knows by itself.
  func forgetSealed(in directory: borrowing StateDirectory) throws(SystemError) {
    if try wasSealedHere(in: directory) { try mark(false, in: directory) }
  }

  private func mark(_ isHere: Bool, in directory: borrowing StateDirectory) throws(SystemError) {
    if isHere {
      // There is nothing in it that could be half written.
      _ = try directory.folder.open(Self.markName, flags: O_WRONLY | O_CREAT, mode: 0o600)
    } else {
      try directory.folder.remove(Self.markName)
    }
    try directory.folder.synchronize()
  }

  /// Removes everything that was set aside or left by others beside the files of the store.
  private func removeCopies(in directory: borrowing StateDirectory) throws(SystemError) {
    let own = [
      Store.fileName, Store.logName, StoreKey.fileName, MasterKey.fileName, Witness.fileName, LatestWitness.fileName,
    ]
    for name in try ConfigurationAccess.names(in: directory.folder.path) ?? [] where !own.contains(name) {
      guard own.contains(where: { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "-") }) else { continue }
      try directory.folder.remove(name)
    }
    try directory.folder.synchronize()
  }
}
