import IdentityCore
import LinuxSystem

// Starts that cannot serve everything that is in the state directory.
extension Opening {
  /// Serves nothing and changes nothing, because the disk cannot be read.
  mutating func cannotRead(_ reason: String) {
    files = nil
    reading = Reading()
    reading.registry.doubt(.all, incomplete: [])
    condition = .unreadable("\(reason), then restart identityd")
    notices.append(.condition(condition))
  }

  mutating func cannotWrite(_ reason: String) {
    condition = .unwritable(reason)
    notices.append(.condition(condition))
  }

  /// Serves a verified store that cannot be written.
  ///
  /// - Parameters:
  ///   - isWitnessed: whether there is a witness, which may be one that cannot be read.
  ///   - hasOpenCommit: whether the last commit is left out.
  mutating func onlyRead(in directory: borrowing StateDirectory, isWitnessed: Bool, hasOpenCommit: Bool) throws {
    // A start that can write would remove a sealed store, finish a rewrite, or begin an epoch. It would also find out
    // whether the last commit is on the disk.
    let needsStart =
      try !isWitnessed || hasOpenCommit || reading.registry.isSealed
      || directory.folder.status(of: Store.rewrittenName) != nil
    undone = needsStart ? .all : .check
    cannotWrite(remountReason(in: directory))
  }

  /// Serves nothing and creates nothing: a first start on a read-only file system.
  mutating func cannotCreate(in directory: borrowing StateDirectory) {
    undone = .all
    reading.registry.doubt(.all, incomplete: [])
    cannotWrite("there is no store yet, and \(remountReason(in: directory))")
  }

  private func remountReason(in directory: borrowing StateDirectory) -> String {
    let fault =
      directory.refusal
      ?? "\(directory.folder.path) is on a read-only file system: mount it read-write"
    return fault + (undone == .all || directory.hasReadOnlyMount ? ", then restart identityd" : "")
  }

  mutating func damaged(_ reason: String) {
    condition = .damaged("\(start.path): \(reason)")
    notices.append(.condition(condition))
  }

  /// Serves nothing, because the store cannot be verified or must not pass for the current one.
  mutating func reject(_ reason: String) {
    files = nil
    reading.registry = Registry()
    reading.registry.doubt(.all, incomplete: [])
    reading.events = []
    damaged(reason)
  }

  /// Renames a database that SQLite cannot read, with its WAL, so that an admin can examine both.
  ///
  /// Renames nothing on a read-only file system.
  mutating func setAside(in directory: borrowing StateDirectory, _ found: Found, _ reason: String) throws {
    files = nil
    reading = Reading()
    guard !directory.isReadOnly else { return reject(reason) }
    // Without a witness the next start would take the empty directory for a first start.
    if found.witness == nil { try writeWitness(in: directory) }
    let aside = Store.asideName(Store.fileName, start.now)
    if try directory.folder.status(of: Store.logName) != nil {
      try directory.folder.rename(Store.logName, to: aside + "-wal")
    }
    try directory.folder.rename(Store.fileName, to: aside)
    try directory.folder.synchronize()
    notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
    reject("\(reason); it was set aside as \(aside)")
  }
}
