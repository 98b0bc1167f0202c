import Glibc
import IdentityCore
import LinuxSystem

// A sealed store belongs to a golden image. A machine that starts from the image must get a new identity. So a start
// removes the sealed store with its key, and every file that was ever set aside. An interruption leaves either the
// sealed store, with or without its witnesses, or neither a database nor a witness, which is a first start. The
// database is removed before its WAL, because without the WAL the seal itself could be undone.
extension Opening {
  /// A file with the machine-id under which a store was sealed, until the new store records that. The file of a release
  /// that wrote an empty one means the present machine.
  ///
  /// Without the file, an interruption between the end of one store and the beginning of the next could bring the
  /// sealed identifiers back. `identityctl --root=DIR seal` writes the file, too.
  private static let markName = "sealed-here"

  /// Whether the store that was read is sealed and verified.
  var isSealed: Bool { condition == .writable && reading.registry.isSealed }

  /// Removes the sealed store, so that a first start can follow.
  mutating func removeSealed(in directory: borrowing StateDirectory) throws {
    files = nil
    let sealed = reading.registry.machine?.fingerprint.machine
    try mark(sealed != nil && sealed == fingerprint.machine, in: directory)
    try removeCopies(in: directory)
    // Before the database: a second machine made from this image must not be able to read the secrets.
    try directory.folder.remove(MasterKey.fileName)
    try directory.folder.remove(MasterKey.nextFileName)
    try directory.folder.remove(Witness.fileName)
    try directory.folder.remove(LatestWitness.fileName)
    try directory.folder.synchronize()
    try directory.folder.remove(Store.fileName)
    try directory.folder.synchronize()
    // The WAL and the key remain. Every first start removes or replaces them.
  }

  /// Returns whether a store was sealed on this machine and removed, and has no successor yet.
  func wasSealedHere(in directory: borrowing StateDirectory) throws(SystemError) -> Bool {
    guard let mark = try directory.folder.read(Self.markName, limit: 64) else { return false }
    return mark.isEmpty || start.machine.machineID.map { mark.starts(with: hexadecimal($0)) } ?? false
  }

  /// Removes the mark once there is a new store, which records the sealing itself.
  func forgetSealed(in directory: borrowing StateDirectory) throws(SystemError) {
    if try directory.folder.status(of: Self.markName) != nil { try mark(false, in: directory) }
  }

  private func mark(_ isHere: Bool, in directory: borrowing StateDirectory) throws(SystemError) {
    if isHere, let machine = start.machine.machineID {
      return try directory.folder.replace(Self.markName, with: hexadecimal(machine), mode: 0o600)
    }
    try directory.folder.remove(Self.markName)
    try directory.folder.synchronize()
  }

  /// Removes all files beside those of the store that were set aside, or that others left.
  private func removeCopies(in directory: borrowing StateDirectory) throws(SystemError) {
    let own = [
      Store.fileName, Store.logName, StoreKey.fileName, MasterKey.fileName, Witness.fileName, LatestWitness.fileName,
      ResumptionFile.fileName,
    ]
    for name in try ConfigurationAccess.names(in: directory.folder.path) ?? [] where !own.contains(name) {
      guard own.contains(where: { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "-") }) else { continue }
      try directory.folder.remove(name)
    }
    try directory.folder.synchronize()
  }
}
