import Glibc
package import IdentityCore
import LinuxSystem

extension Store {
  /// Opens the store of a state directory, or makes it at a first start.
  ///
  /// A first start is one where neither the database nor its witness is there. Anything else that is missing or does not
  /// prove is damage: it is named, kept, and nothing is made up in its place.
  ///
  /// - Parameters:
  ///   - now: the time that a new store is marked with.
  ///   - identity: a fresh random UUID, for a new store.
  /// - Throws: where it was written by a later version, or the disk refuses so early that nothing can be served.
  package static func open(
    _ directory: consuming StateDirectory, options: Options, now: Timestamp, identity: UUID
  ) throws(StoreFailure) -> Store {
    let path = "\(directory.folder.path)/\(fileName)"
    do {
      try refuseNewer(in: directory, path: path)
      var notices: [StoreNotice] = []
      var key = try StoreKey.read(in: directory.folder)
      try finishRewrite(in: directory, key, now: now, &notices)
      let found = try Found(in: directory)
      if found.isFirstStart, !key.isKnown {
        key = try StoreKey.create(in: directory.folder, aside: asideName(StoreKey.fileName, now))
      }
      let isKnown = key.isKnown
      var opening = Opening(path: path, options: options, now: now, authenticator: key.authenticator, notices: notices)
      if found.isFirstStart {
        try opening.create(in: directory, identity: identity)
      } else {
        try opening.load(found, hasKey: isKnown, in: directory)
      }
      return try opening.opened(directory)
    } catch let failure as StoreFailure {
      throw failure
    } catch {
      throw .unusable(path: path, reason: "\(error)")
    }
  }

  /// Opens a connection and settles how it writes.
  static func connect(_ path: String) throws(DatabaseError) -> Database {
    let database = try Database(path: path, create: false)
    try database.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
    guard try database.text("PRAGMA journal_mode = WAL") == "wal" else {
      throw DatabaseError(action: "switch to a write-ahead log", code: 8)
    }
    // A commit is synced before it is acknowledged; the default of WAL would sync only at a checkpoint.
    try database.execute("PRAGMA synchronous = FULL")
    // SQLite would swallow the failure of a checkpoint of its own: the writer makes them, see Store.commit.
    try database.execute("PRAGMA wal_autocheckpoint = 0")
    // SQLite falls back to a read-only descriptor without a word (SQLITE_READONLY is 8).
    guard !database.isReadOnly else { throw DatabaseError(action: "open for writing", code: 8) }
    return database
  }

  static func asideName(_ name: String, _ now: Timestamp) -> String { "\(name).damaged-\(now.milliseconds)" }

  /// Reads the version from the file's header before SQLite may touch the file (sqlite.org/fileformat.html, offset 60).
  private static func refuseNewer(in directory: borrowing StateDirectory, path: String) throws {
    guard let status = try directory.folder.status(of: fileName) else { return }
    guard status.isRegular else { throw StoreFailure.unusable(path: path, reason: "it is not a regular file") }
    var header = [UInt8](repeating: 0, count: 100)
    let file = try directory.folder.open(fileName, flags: O_RDONLY)
    guard try file.read(into: &header) == 100, header.starts(with: "SQLite format 3".utf8) else { return }
    try refuse(version: header[60..<64].reduce(Int64(0)) { $0 << 8 | Int64($1) }, path: path)
  }

  fileprivate static func refuse(version: Int64, path: String) throws(StoreFailure) {
    guard version <= Schema.version else { throw .newer(path: path, found: version, supported: Schema.version) }
    guard version >= 0 else { throw .unusable(path: path, reason: "its schema version is \(version)") }
  }
}

/// What stands in the state directory.
private struct Found {
  let database: FileStatus?
  let witness: [UInt8]?
  let latest: [UInt8]?

  init(in directory: borrowing StateDirectory) throws {
    database = try directory.folder.status(of: Store.fileName)
    witness = try Witness.read(Witness.fileName, in: directory.folder)
    latest = try Witness.read(Witness.latestFileName, in: directory.folder)
  }

  /// Neither a database nor a witness.
  var isFirstStart: Bool { database == nil && witness == nil && latest == nil }
}

/// One start: what is found, step by step.
private struct Opening: ~Copyable {
  let path: String
  let options: Store.Options
  let now: Timestamp
  let authenticator: Authenticator
  var files: OpenFiles?
  var reading = Reading()
  var condition = StoreCondition.writable
  var notices: [StoreNotice]

  init(
    path: String, options: Store.Options, now: Timestamp, authenticator: consuming Authenticator,
    notices: [StoreNotice]
  ) {
    self.notices = notices
    self.path = path
    self.options = options
    self.now = now
    self.authenticator = authenticator
  }

  consuming func opened(_ directory: consuming StateDirectory) throws(SystemError) -> Store {
    let latest = try directory.folder.open(Witness.latestFileName, flags: O_RDWR | O_CREAT, mode: 0o600)
    let content = StoreContent(registry: reading.registry, condition: condition, notices: notices)
    return Store(
      directory: directory, authenticator: authenticator, identity: reading.store, created: reading.created,
      options: options, files: files, revision: reading.revision, digest: reading.digest, latest: latest,
      found: content,
      condition: condition)
  }

  // MARK: First start

  mutating func create(in directory: borrowing StateDirectory, identity: UUID) throws {
    try writeDraft(in: directory, identity: identity)
    try directory.folder.rename(Store.draftName, to: Store.fileName)
    try directory.folder.synchronize()
    try read(in: directory)
    try files?.database.checkpoint()
    try writeWitness(in: directory)
    notices.append(.created(path: path))
  }

  /// Makes the new store under another name: a start that is cut leaves a draft, which the next start removes, and never
  /// half a store, which it would have to take for a damaged one.
  private func writeDraft(in directory: borrowing StateDirectory, identity: UUID) throws {
    let values = Store.storeRow(identity: identity, created: now, revision: 0, Digest())
    let proof = authenticator.proof(table: Table.store.name, values)
    try directory.folder.create(Store.draftName, mode: 0o600)
    do {
      let database = try Database(path: "\(directory.folder.path)/\(Store.draftName)", create: true)
      try Schema.migrate(database, from: 0)
      try database.prepare(Table.store.insertion).run(values + [.blob(proof)])
    }
    let draft = try directory.folder.open(Store.draftName, flags: O_RDWR)
    try draft.synchronize(name: Store.draftName)
  }

  // MARK: Later starts

  mutating func load(_ found: Found, hasKey: Bool, in directory: borrowing StateDirectory) throws {
    guard hasKey else {
      return damaged("its key, \(StoreKey.fileName), is missing or damaged: nothing in it can be proven")
    }
    guard let database = found.database else {
      return damaged("the database is gone, though \(Witness.fileName) says that there was one")
    }
    guard database.size > 0 else {
      return try setAside(
        in: directory, found, "the database is empty")
    }
    do {
      try readTwice(in: directory)
    } catch let error as DatabaseError where error.saysDamaged {
      return try setAside(in: directory, found, "\(error)")
    }
    if let first = reading.damage.first {
      let rest = reading.damage.count - 1
      return damaged(first + (rest > 0 ? ", and \(rest) more" : ""))
    }
    try compare(with: found, in: directory)
    if condition == .writable { settle(in: directory) }
  }

  /// One failed read can look like damage: only a second connection that says the same is believed.
  private mutating func readTwice(in directory: borrowing StateDirectory) throws {
    do {
      try read(in: directory)
    } catch let error as DatabaseError where error.saysDamaged {
      reading = Reading()
      try read(in: directory)
    }
  }

  private mutating func read(in directory: borrowing StateDirectory) throws {
    let database = try Store.connect(path)
    let version = try database.integer("PRAGMA user_version") ?? 0
    try Store.refuse(version: version, path: path)
    try Schema.migrate(database, from: version)
    reading = try Reading(database, authenticator)
    files = try OpenFiles(database, in: directory)
  }

  private mutating func compare(with found: Found, in directory: borrowing StateDirectory) throws {
    // A power cut may have torn the latest one: then it says nothing.
    if let latest = found.latest, let known = Witness(latest, authenticator) { compare(with: known, in: directory) }
    guard let content = found.witness else {
      notices.append(.witnessRenewed(reason: "it was missing"))
      return
    }
    guard let known = Witness(content, authenticator) else {
      let aside = Store.asideName(Witness.fileName, now)
      try directory.folder.rename(Witness.fileName, to: aside)
      notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
      notices.append(.witnessRenewed(reason: "it was not authentic"))
      return
    }
    compare(with: known, in: directory)
  }

  private mutating func compare(with known: Witness, in directory: borrowing StateDirectory) {
    guard condition == .writable else { return }
    let names = "\(Witness.fileName) and \(Witness.latestFileName)"
    let remedy = "restore the latest copy, or remove \(names) from \(directory.folder.path) to accept this one"
    if known.store != .zero, known.store != reading.store {
      reject("it is not the store that was here before; \(remedy)")
    } else if known.revision > reading.revision {
      reject("it is an older copy: revision \(reading.revision), and revision \(known.revision) was reached; \(remedy)")
    }
  }

  /// Writes the log back: a failed write before a crash may have left blocks in it that do not survive a power cut.
  private mutating func settle(in directory: borrowing StateDirectory) {
    do {
      try files?.database.checkpoint()
      try writeWitness(in: directory)
    } catch {
      condition = StoreCondition(after: error)
      notices.append(.condition(condition))
    }
  }

  private func writeWitness(in directory: borrowing StateDirectory) throws(SystemError) {
    let witness = Witness(store: reading.store, revision: reading.revision)
    try directory.folder.replace(Witness.fileName, with: witness.bytes(authenticator), mode: 0o600)
  }

  // MARK: Damage

  private mutating func damaged(_ reason: String) {
    condition = .damaged("\(path): \(reason)")
    notices.append(.condition(condition))
  }

  /// An authentic store that must not pass for the current one: nothing in it is served.
  private mutating func reject(_ reason: String) {
    files = nil
    reading.registry = Registry()
    damaged(reason)
  }

  /// Renames a database that SQLite cannot read, with its log, for somebody to look at.
  private mutating func setAside(in directory: borrowing StateDirectory, _ found: Found, _ reason: String) throws {
    files = nil
    reading = Reading()
    // Without a witness the next start would take the empty place for a first start.
    if found.witness == nil { try writeWitness(in: directory) }
    let aside = Store.asideName(Store.fileName, now)
    if try directory.folder.status(of: Store.logName) != nil {
      try directory.folder.rename(Store.logName, to: aside + "-wal")
    }
    try directory.folder.rename(Store.fileName, to: aside)
    try directory.folder.synchronize()
    notices.append(.setAside(path: "\(directory.folder.path)/\(aside)"))
    damaged("\(reason); it was set aside as \(aside)")
  }
}
