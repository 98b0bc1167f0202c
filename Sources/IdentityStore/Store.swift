import Glibc
package import IdentityCore
import LinuxSystem

/// The durable state: one SQLite file in the state directory, written by one thread.
///
/// A change is acknowledged only after its transaction is synced. After any commit that failed nothing is acknowledged
/// until the whole store was written anew (see ``heal()``): on ext4 a block that failed once can read back as
/// zeros after a power cut although later writes to it succeeded.
package struct Store: ~Copyable, Sendable {
  let directory: StateDirectory
  let authenticator: Authenticator
  let identity: UUID
  let created: Timestamp
  let options: Options
  /// The machine under the daemon.
  let marks: MachineMarks
  var keys: StoreKeys
  /// What seals items; nil where no master key opens it.
  var dataKey: DataKey?
  /// The open connection and the file it writes; nil while there is none to use.
  var files: OpenFiles?
  /// What is on disk.
  var ledger: Ledger
  /// Computes identifiers with a key of its own, on any thread; nil where the store's key is not known, because nothing
  /// may be derived then.
  package let derivation: IdentifierDerivation?
  /// The witness of the last commit; nil where nothing can be written.
  let latest: LatestWitness?
  /// The files of the keys.
  var keyFiles: KeyFiles
  /// What was found at start, until somebody takes it.
  var found: StoreContent?
  /// What can be done now.
  package internal(set) var condition: StoreCondition
  /// Whether the last commit failed, and a start could find it on the disk all the same; see ``UncertainCommit``.
  package private(set) var isLastCommitUncertain = false
  /// How long the database and its log were when they were looked at last, in bytes.
  private(set) var lengths = (file: Int64(0), log: Int64(0))
  /// How large both were together, in bytes.
  package var size: Int64 { lengths.file + lengths.log }

  /// What an administrator can set in `[Store]`.
  package struct Options: Equatable, Sendable {
    /// The log is written back into the database when it has grown to this many bytes.
    package var checkpointSize = 4_194_304
    /// The options as shipped.
    package init() {}
  }

  static let fileName = "identityd.db"
  static let logName = "identityd.db-wal"

  var path: String { "\(directory.folder.path)/\(Self.fileName)" }
  /// The path of the state directory, as it was opened by.
  package var folderPath: String { directory.folder.path }
}

// MARK: - Commit

extension Store {
  /// Writes changes and their events in one transaction and returns once they are on disk for good.
  ///
  /// - Returns: nil when they are; else what the store can do from now on. Nothing of the batch is then in force, and nothing
  ///   of it will be unless ``isLastCommitUncertain``.
  package mutating func commit(_ changes: [RecordedChange]) -> StoreCondition? {
    isLastCommitUncertain = false
    guard !changes.isEmpty else { return nil }
    guard condition == .writable else { return condition }
    do {
      try commit { (edit, authenticator) throws(DatabaseError) in
        try edit.apply(changes, authenticator)
        try edit.trimEvents()
      }
      return nil
    } catch {
      isLastCommitUncertain = error is UncertainCommit
      condition = StoreCondition(after: error)
      return condition
    }
  }

  /// Writes in one transaction. What it throws has to become the ``condition``.
  mutating func commit(
    _ body: (inout Edit, borrowing Authenticator) throws(DatabaseError) -> Void
  ) throws {
    try requireOwnKeys()
    try requireOwnFiles(behind: lengths)
    let next = try files?.commit(identity: identity, created: created, after: ledger, sealing, authenticator) {
      (edit) throws(DatabaseError) in try body(&edit, authenticator)
    }
    guard let next else { throw DatabaseError.noConnection }
    ledger = next
    do {
      try requireOwnFiles()
      maintain()
    } catch {
      // What is committed is on disk, so this is a failure of the next commit, as long as the files are not gone.
      guard error.code != ESTALE else { throw UncertainCommit(cause: error) }
      condition = StoreCondition(after: error)
    }
  }

  /// What keeps the store in order behind a commit: the log written back, the witnesses told.
  private mutating func maintain() {
    do {
      try latest?.take(Witness(store: identity, revision: ledger.revision), authenticator)
      if files?.database.logSize ?? 0 > Int64(options.checkpointSize) {
        try files?.database.writeBackLog()
        try latest?.synchronize()
      }
      if ledger.revision % Self.witnessInterval == 0 { try writeWitness() }
    } catch {
      condition = StoreCondition(after: error)
    }
  }

  /// How many transactions may pass before the witness is told: it costs two syncs of its own.
  private static var witnessInterval: Int64 { 1_024 }

  /// Fails when a file was deleted, replaced or cut short under the daemon: what is committed to it would be gone at the
  /// next start.
  ///
  /// - Parameter lengths: how long the files have to be at least: nobody else writes to them.
  private mutating func requireOwnFiles(behind lengths: (file: Int64, log: Int64) = (0, 0)) throws(SystemError) {
    guard let file = try directory.folder.status(of: Self.fileName),
      let log = try directory.folder.status(of: Self.logName),
      files?.writes(to: file, log: log) == true
    else { throw SystemError(call: "\(path) or its log was replaced or deleted under the daemon", code: ESTALE) }
    guard file.size >= lengths.file, log.size >= lengths.log else {
      throw SystemError(call: "\(path) or its log was cut short under the daemon", code: ESTALE)
    }
    self.lengths = (file.size, log.size)
  }

  /// Fails when what the next start needs besides was taken away under the daemon: a key, or the state directory itself.
  private func requireOwnKeys() throws(SystemError) {
    guard try directory.folder.isInPlace() else { throw moved }
    let found = try KeyFiles(in: directory.folder)
    guard found.store == keyFiles.store, !needsMasterFile || found.master == keyFiles.master else {
      throw SystemError(
        call: "\(StoreKey.fileName) or \(MasterKey.fileName) in \(folderPath) was replaced or deleted under the daemon",
        code: ESTALE)
    }
  }

  /// Whether the next start opens items by a master key in a file that is there. One that is missing may come at any time.
  var needsMasterFile: Bool { dataKey != nil && ledger.wrappedKey?.source == .file }

  var moved: SystemError {
    SystemError(call: "\(folderPath) was moved away under the daemon: move it back", code: ESTALE)
  }

  /// Gives back what is kept of the file to have it at hand.
  package mutating func releaseMemory() { files?.database.releaseMemory() }

  /// Looks how large the database and its log are, which each commit does by itself.
  package mutating func measure() {
    func length(_ name: String) -> Int64 { ((try? directory.folder.status(of: name)) ?? nil)?.size ?? 0 }
    lengths = (length(Self.fileName), length(Self.logName))
  }

  func writeWitness() throws(SystemError) {
    let witness = Witness(store: identity, revision: ledger.revision)
    try directory.folder.replace(Witness.fileName, with: witness.bytes(authenticator), mode: 0o600)
  }
}

// MARK: - Begin and end

extension Store {
  /// What was found at start; handed out once, so that it is not kept twice in memory.
  package mutating func takeContent() -> StoreContent {
    let content =
      found
      ?? StoreContent(
        registry: Registry(), events: [], epoch: ledger.epoch,
        fingerprint: MachineFingerprint(machine: nil, hardware: nil),
        isSealedHere: false, condition: condition, notices: [])
    found = nil
    return content
  }

  /// Writes the log back into the database and closes it.
  ///
  /// - Returns: what went wrong; everything acknowledged is on disk all the same.
  package mutating func close() -> String? {
    defer { files = nil }
    guard condition == .writable else { return nil }
    do {
      try requireOwnFiles(behind: lengths)
      try files?.database.checkpoint()
      try writeWitness()
      return nil
    } catch {
      return "\(error)"
    }
  }
}

/// The files of the keys as they are in the state directory: others in their places would open nothing at the next start.
struct KeyFiles: Equatable, Sendable {
  let store: FileStatus?
  /// The master key, and the one that is about to take its place.
  let master: [FileStatus?]

  init(in folder: borrowing Folder) throws(SystemError) {
    store = try folder.status(of: StoreKey.fileName)
    master = [try folder.status(of: MasterKey.fileName), try folder.status(of: MasterKey.nextFileName)]
  }
}
