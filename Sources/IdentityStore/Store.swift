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
  /// The open connection and the file it writes; nil while there is none to use.
  var files: OpenFiles?
  /// The last transaction that is on disk.
  var revision: Int64
  var digest: Digest
  /// The witness of the last commit; see ``Witness/latestFileName``.
  let latest: Descriptor
  /// What was found at start, until somebody takes it.
  var found: StoreContent?
  /// What can be done now.
  package internal(set) var condition: StoreCondition

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
}

// MARK: - Commit

extension Store {
  /// Writes changes in one transaction and returns once they are on disk for good.
  ///
  /// - Returns: nil when they are; else what the store can do from now on. Nothing of the batch is then in force. Only
  ///   where the file was taken away in the very moment of the commit may the next rewrite bring it into force after all.
  package mutating func commit(_ changes: [Change]) -> StoreCondition? {
    guard condition == .writable else { return condition }
    guard !changes.isEmpty else { return nil }
    do {
      _ = try logSize()
      try write(changes)
      let size = try logSize()
      // What is committed is on disk, so a failure from here on is one of the next commit.
      maintain(logSize: size)
      return nil
    } catch {
      condition = StoreCondition(after: error)
      return condition
    }
  }

  /// What keeps the store in order behind a commit: the log written back, the witnesses told.
  private mutating func maintain(logSize: Int64) {
    do {
      try latest.overwrite(with: Witness(store: identity, revision: revision).bytes(authenticator))
      if logSize > Int64(options.checkpointSize) { try files?.database.checkpoint() }
      if revision % Self.witnessInterval == 0 { try writeWitness() }
    } catch {
      condition = StoreCondition(after: error)
    }
  }

  /// How many transactions may pass before the witness is told: it costs two syncs of its own.
  private static var witnessInterval: Int64 { 1_024 }

  private mutating func write(_ changes: [Change]) throws(DatabaseError) {
    let revision = revision + 1
    var digest = digest
    var rows: [(row: Row, proof: [UInt8])] = []
    for change in changes {
      let row = change.row(revision: revision)
      let proof = authenticator.proof(table: row.table.name, row.values)
      digest.add(proof)
      rows.append((row, proof))
    }
    let own = Self.storeRow(identity: identity, created: created, revision: revision, digest)
    let proof = authenticator.proof(table: Table.store.name, own)
    guard try files?.commit(rows, store: own, proof: proof) != nil else { throw .noConnection }
    self.revision = revision
    self.digest = digest
  }

  /// The columns of the store's own row.
  static func storeRow(identity: UUID, created: Timestamp, revision: Int64, _ digest: Digest) -> [Value] {
    [
      .integer(1), .text("\(identity)"), .text("\(created)"), .integer(revision), .integer(digest.count),
      .blob(digest.bytes),
    ]
  }

  /// The size of the log in bytes. Fails when a file was deleted or replaced under the daemon: what is committed to it
  /// would be gone at the next start.
  private func logSize() throws(SystemError) -> Int64 {
    guard let file = try directory.folder.status(of: Self.fileName),
      let log = try directory.folder.status(of: Self.logName),
      files?.writes(to: file, log: log) == true
    else { throw SystemError(call: "\(path) or its log was replaced or deleted under the daemon", code: ESTALE) }
    return log.size
  }

  func writeWitness() throws(SystemError) {
    let witness = Witness(store: identity, revision: revision)
    try directory.folder.replace(Witness.fileName, with: witness.bytes(authenticator), mode: 0o600)
  }
}

// MARK: - Begin and end

extension Store {
  /// What was found at start; handed out once, so that it is not kept twice in memory.
  package mutating func takeContent() -> StoreContent {
    let content = found ?? StoreContent(registry: Registry(), condition: condition, notices: [])
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
      try files?.database.checkpoint()
      try writeWitness()
      return nil
    } catch {
      return "\(error)"
    }
  }
}
