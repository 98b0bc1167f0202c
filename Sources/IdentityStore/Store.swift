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
  let options: Options
  /// The marks of the machine.
  let marks: MachineMarks
  var keys: StoreKeys
  /// The open connection and the files that it writes; nil if there is none.
  var files: OpenFiles?
  /// The committed state.
  var ledger: Ledger
  /// The witness of the last commit; nil if nothing could be written so far.
  var latest: LatestWitness?
  /// The content found at start; without its records once they were taken.
  var found: StoreContent
  /// The current condition of the store.
  package internal(set) var condition: StoreCondition
  /// The part of the start that was left undone.
  var undone: UndoneStart
  /// The frames of the log, if the connection is ahead of the ledger by a commit that could not be recorded, and so was
  /// not acknowledged; otherwise nil.
  var frameOfUnrecorded: LogFrame?
  /// Whether the state directory can be read or written again, but only by a new start of the daemon.
  package internal(set) var isStartDue = false
  /// The lengths of the database and its WAL in bytes, when they were last examined.
  private(set) var lengths = (file: Int64(0), log: Int64(0))
  /// The total length of the database and its WAL in bytes, when they were last examined.
  package var size: Int64 { lengths.file + lengths.log }

  /// The options that an admin can set in `[Store]`.
  package struct Options: Equatable, Sendable {
    /// The size of the WAL at which it is checkpointed, in bytes.
    package var checkpointSize = 4_194_304
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
  /// - Returns: nil on success, else the refusal of the changes, for which the ``condition`` has the reason. None of the
  ///   changes is then in effect, and none will be unless the refusal is `unknown`.
  package mutating func commit(_ changes: [RecordedChange], events: [EventLine]) -> Refusal? {
    guard !changes.isEmpty else { return nil }
    if let refusal = condition.refusal { return refusal }
    do {
      try commit { (edit, authenticator) throws(DatabaseError) in
        try edit.apply(changes, authenticator)
        try edit.append(events, authenticator)
        try edit.trimEvents()
      }
      return nil
    } catch {
      return fail(after: error)
    }
  }

  /// Notes that a commit failed, and returns the refusal of its changes.
  mutating func fail(after error: any Error) -> Refusal {
    condition = StoreCondition(after: error)
    return error is UncertainCommit ? .uncertain(condition) : condition.refusal ?? .broken("\(error)")
  }

  /// Runs a closure in one transaction. The caller must turn an error into the ``condition``.
  mutating func commit(
    _ body: (inout Edit, borrowing Authenticator) throws(DatabaseError) -> Void
  ) throws {
    try requireOwnKeys()
    try requireOwnFiles(behind: lengths)
    let next = try files?.commit(after: ledger, cipher, authenticator) {
      (edit) throws(DatabaseError) in try body(&edit, authenticator)
    }
    guard let next else { throw DatabaseError.noConnection }
    do {
      // Before the acknowledgement: a start that cannot write serves only what is recorded.
      try latest?.record(next.row.witness, authenticator)
    } catch {
      frameOfUnrecorded = files?.frame
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
      try latest?.synchronizeIfDue(after: ledger.row.revision)
      if files?.logSize ?? 0 > Int64(options.checkpointSize) {
        try files?.database.writeBackLog()
        try latest?.synchronize()
      }
      if ledger.row.revision % Self.witnessInterval == 0 { try writeWitness() }
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
    // A master key that is missing already may still come at any time.
    guard try keys.files.areInPlace(in: directory.folder, withMaster: keySource == .file) else {
      throw SystemError(
        call:
          "\(StoreKey.fileName) or \(MasterKey.fileName) in \(folderPath) was replaced or deleted while the daemon ran",
        code: ESTALE)
    }
  }

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
    try directory.folder.replace(Witness.fileName, with: ledger.row.witness.bytes(authenticator), mode: 0o600)
  }
}

// MARK: - Start and stop

extension Store {
  /// Whether the items of a large store are still to be read. Until then, nothing is known of them.
  package var lacksItems: Bool { found.lacksItems }

  /// Reads and verifies the items that the start has left out. If some are damaged, the ``condition`` says so.
  ///
  /// - Parameter registry: the registry without items, to which they are added.
  package mutating func readItems(into registry: inout Registry) {
    guard found.lacksItems else { return }
    found.lacksItems = false
    var reading = Reading(registry, ledger)
    do {
      do {
        try read(&reading)
      } catch {
        // One failed read can look like damage.
        reading = Reading(registry, ledger)
        try read(&reading)
      }
      registry = reading.registry
    } catch {
      reading.damage = ["\(error)"]
      registry.doubt(.items, incomplete: [])
    }
    guard let reason = reading.damageReason else { return }
    condition = .damaged("\(path): \(reason)")
    if let refusal = condition.refusal { registry.explain(refusal) }
  }

  private func read(_ reading: inout Reading) throws(DatabaseError) {
    guard files != nil else { throw .noConnection }
    try files?.readItems(of: &reading, authenticator, cipher, path: path)
  }

  /// Returns the content found at start, and releases its records, so that they are not kept twice in memory.
  package mutating func takeContent() -> StoreContent {
    defer { (found.registry, found.events) = (Registry(), []) }
    return found
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

/// The part of a start that was left undone, because nothing could be written.
enum UndoneStart: Sendable {
  case nothing
  /// The witnesses have to be read again before anything is written.
  case check
  /// Only a new start can do the rest, such as creating the store.
  case all
}
