import Glibc
package import IdentityCore
package import IdentityWire
import LinuxSystem

/// The durable state: one SQLite file in the state directory, written by one thread.
///
/// A change is acknowledged only after its transaction is synced. After a failed commit nothing is acknowledged until
/// the whole store was rewritten (see ``heal()``): on ext4 a block whose write failed once can read back as zeros after
/// a power cut, although later writes to it succeeded.
package struct Store: ~Copyable, Sendable {
  var directory: StateDirectory
  let authenticator: Authenticator
  let identity: UUID
  let created: Timestamp
  let options: Options
  /// The marks of the machine.
  let marks: MachineMarks
  var keys: StoreKeys
  /// The key that encrypts items; nil if no master key opens it.
  var dataKey: DataKey?
  /// The open connection and the files that it writes; nil if there is none.
  var files: OpenFiles?
  /// The committed state.
  var ledger: Ledger
  /// Computes identifiers on any thread, with a key derived from the store's key.
  ///
  /// Nil if the store's key is unknown, because nothing may be derived then.
  package let derivation: IdentifierDerivation?
  /// The last resumption of the machine in this boot, as the start found it.
  package let resumption: Resumption
  /// The witness of the last commit; nil if nothing could be written so far.
  var latest: LatestWitness?
  /// The files of the keys, as they were when they were last read or written.
  var keyFiles: KeyFiles
  /// The content found at start, until it is taken.
  var found: StoreContent?
  /// The current condition of the store.
  package internal(set) var condition: StoreCondition
  /// Whether only a new start can do what the start on a read-only file system left undone, such as creating the store.
  var needsStart: Bool
  /// Whether the witnesses have to be read again before anything is written, because the start could only read.
  var isUnchecked: Bool
  /// The length of the WAL before its last commit, if that commit was never acknowledged; nil if it was.
  var openCommit: Int64?
  /// Whether the connection is ahead of the ledger by a commit that could not be recorded, and so was not acknowledged.
  var holdsUnrecorded = false
  /// Whether the state directory can be read or written again, but only by a new start of the daemon.
  package internal(set) var isStartDue = false
  /// Whether the last commit failed and the next start could still find it on disk; see ``UncertainCommit``.
  package private(set) var isLastCommitUncertain = false
  /// The lengths of the database and its WAL in bytes, when they were last examined.
  private(set) var lengths = (file: Int64(0), log: Int64(0))
  /// The total length of the database and its WAL in bytes, when they were last examined.
  package var size: Int64 { lengths.file + lengths.log }

  /// The options that an admin can set in `[Store]`.
  package struct Options: Equatable, Sendable {
    /// The size of the WAL at which it is checkpointed, in bytes.
    package var checkpointSize = 4_194_304
    /// Creates the options as shipped.
    package init() {}
  }

  static let fileName = "identityd.db"
  static let logName = "identityd.db-wal"

  var path: String { "\(directory.folder.path)/\(Self.fileName)" }
  /// The path by which the state directory was opened.
  package var folderPath: String { directory.folder.path }
}

// MARK: - Commit

extension Store {
  /// Commits changes and their events in one transaction, and returns after the sync.
  ///
  /// - Parameter events: the events of the changes, numbered without a gap behind the last committed event.
  /// - Returns: nil on success, else the condition of the store from now on. None of the changes is then in effect, and
  ///   none will be unless ``isLastCommitUncertain``.
  package mutating func commit(_ changes: [RecordedChange], events: [EventLine]) -> StoreCondition? {
    isLastCommitUncertain = false
    guard !changes.isEmpty else { return nil }
    guard condition == .writable else { return condition }
    do {
      try commit { (edit, authenticator) throws(DatabaseError) in
        try edit.apply(changes, authenticator)
        try edit.append(events, authenticator)
        try edit.trimEvents()
      }
      return nil
    } catch {
      isLastCommitUncertain = error is UncertainCommit
      condition = StoreCondition(after: error)
      return condition
    }
  }

  /// Runs a closure in one transaction. The caller must turn an error into the ``condition``.
  mutating func commit(
    _ body: (inout Edit, borrowing Authenticator) throws(DatabaseError) -> Void
  ) throws {
    try requireOwnKeys()
    try requireOwnFiles(behind: lengths)
    let next = try files?.commit(identity: identity, created: created, after: ledger, cipher, authenticator) {
      (edit) throws(DatabaseError) in try body(&edit, authenticator)
    }
    guard let next else { throw DatabaseError.noConnection }
    do {
      // Before the acknowledgement: a start that cannot write serves only what is recorded.
      try latest?.record(Witness(store: identity, revision: next.revision), authenticator)
    } catch {
      holdsUnrecorded = true
      throw UncertainCommit(cause: error)
    }
    ledger = next
    do {
      try requireOwnFiles()
      maintain()
    } catch {
      // The commit is on disk, so this is a failure of the next commit, unless the files are gone.
      guard error.code != ESTALE else { throw UncertainCommit(cause: error) }
      condition = StoreCondition(after: error)
    }
  }

  /// Maintains the store after a commit: checkpoints the WAL and updates the witnesses.
  private mutating func maintain() {
    do {
      try latest?.synchronizeIfDue(after: ledger.revision)
      if files?.database.logSize ?? 0 > Int64(options.checkpointSize) {
        try files?.database.writeBackLog()
        try latest?.synchronize()
      }
      if ledger.revision % Self.witnessInterval == 0 { try writeWitness() }
    } catch {
      condition = StoreCondition(after: error)
    }
  }

  /// The number of transactions between two updates of the witness: an update costs two syncs of its own.
  private static var witnessInterval: Int64 { 1_024 }

  /// Checks whether another program took a file of the store away, as the next commit would. The ``condition`` tells.
  package mutating func examine() {
    guard condition == .writable else { return }
    do {
      try requireOwnKeys()
      try requireOwnFiles(behind: lengths)
    } catch {
      condition = StoreCondition(after: error)
    }
  }

  /// Whether the store waits for the disk: the file system was read-only at the start, or a file could not be read.
  package var awaitsDisk: Bool {
    switch condition {
    case .unwritable: directory.isReadOnly
    case .unreadable: true
    case .writable, .full, .damaged: false
    }
  }

  /// Fails if a file was deleted, replaced or truncated under the daemon: the next start would not find its commits.
  ///
  /// - Parameter lengths: the minimum lengths of the files. No other process writes to the files.
  private mutating func requireOwnFiles(behind lengths: (file: Int64, log: Int64) = (0, 0)) throws(SystemError) {
    guard let file = try directory.folder.status(of: Self.fileName),
      let log = try directory.folder.status(of: Self.logName),
      files?.writes(to: file, log: log) == true
    else { throw SystemError(call: "\(path) or its log was replaced or deleted while the daemon ran", code: ESTALE) }
    guard file.size >= lengths.file, log.size >= lengths.log else {
      throw SystemError(call: "\(path) or its log was truncated while the daemon ran", code: ESTALE)
    }
    self.lengths = (file.size, log.size)
  }

  /// Fails if a key or the state directory was taken away under the daemon, because the next start needs them.
  private func requireOwnKeys() throws(SystemError) {
    guard try directory.folder.isInPlace() else { throw moved }
    guard try keyFiles.areInPlace(in: directory.folder, withMaster: needsMasterFile) else {
      throw SystemError(
        call:
          "\(StoreKey.fileName) or \(MasterKey.fileName) in \(folderPath) was replaced or deleted while the daemon ran",
        code: ESTALE)
    }
  }

  /// Whether the next start needs a master key in a file that exists now. A missing file may still come at any time.
  var needsMasterFile: Bool { dataKey != nil && ledger.wrappedKey?.source == .file }

  var moved: SystemError {
    SystemError(call: "\(folderPath) was moved away while the daemon ran: move it back", code: ESTALE)
  }

  /// Frees the cache memory of the connection.
  package mutating func releaseMemory() { files?.database.releaseMemory() }

  /// Measures the database and its WAL. Each commit does that by itself.
  package mutating func measure() {
    func length(_ name: String) -> Int64 { ((try? directory.folder.status(of: name)) ?? nil)?.size ?? 0 }
    lengths = (length(Self.fileName), length(Self.logName))
  }

  func writeWitness() throws(SystemError) {
    let witness = Witness(store: identity, revision: ledger.revision)
    try directory.folder.replace(Witness.fileName, with: witness.bytes(authenticator), mode: 0o600)
  }
}

// MARK: - Start and stop

extension Store {
  /// Returns the content found at start, and releases it, so that it is not kept twice in memory.
  package mutating func takeContent() -> StoreContent {
    let content =
      found
      ?? StoreContent(
        registry: Registry(), store: identity, events: [], epoch: ledger.epoch,
        fingerprint: MachineFingerprint(machine: nil, hardware: nil),
        isSealedHere: false, condition: condition, notices: [])
    found = nil
    return content
  }

  /// Checkpoints the WAL and closes the database.
  ///
  /// - Returns: the error, if any. All acknowledged changes are on disk even after an error.
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

/// The key files in the state directory. With other files in their places the next start could open nothing.
struct KeyFiles: Equatable, Sendable {
  let store: FileStatus?
  /// The files of the master key and of its successor.
  let master: [FileStatus?]

  /// Creates the description of files that are not known.
  init() { (store, master) = (nil, []) }

  init(in folder: borrowing Folder) throws(SystemError) {
    store = try folder.status(of: StoreKey.fileName)
    master = try Self.master(in: folder)
  }

  private static func master(in folder: borrowing Folder) throws(SystemError) -> [FileStatus?] {
    [try folder.status(of: MasterKey.fileName), try folder.status(of: MasterKey.nextFileName)]
  }

  /// Returns whether the folder still has these files.
  ///
  /// - Parameter withMaster: whether the files of the master keys count.
  func areInPlace(in folder: borrowing Folder, withMaster: Bool) throws(SystemError) -> Bool {
    guard try folder.status(of: StoreKey.fileName) == store else { return false }
    guard withMaster else { return true }
    return try Self.master(in: folder) == master
  }
}
