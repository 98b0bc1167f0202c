package import IdentityCore
import LinuxSystem

/// The data key, wrapped in the recovery key: the only row of its table (Decisions/0073).
struct RecoveryRecord: StoredRecord, Equatable {
  static let table = RecordTable("recovery_key", of: Self.self, digestIndex: 17, .recovery, since: 4)

  /// The time at which the recovery key was set.
  private(set) var created = Timestamp(milliseconds: 0)
  private(set) var ciphertext: [UInt8] = []

  init() {}

  /// Wraps the data key of a store in its recovery key.
  init(_ dataKey: DataKey, in recovery: CipherKey, of store: UUID, created: Timestamp) {
    self.created = created
    ciphertext = unsafe dataKey.key.withBytes {
      unsafe recovery.encrypt($0, count: CipherKey.length, with: Self.associated(store))
    }
  }

  mutating func visit(_ fields: inout some FieldVisitor) {
    fields.only()
    fields.field("created", &created)
    fields.field("sealed", &ciphertext)
  }

  /// Unwraps the data key; nil if another recovery key wrapped it.
  func unwrap(with recovery: CipherKey, of store: UUID) -> DataKey? {
    guard ciphertext.count == CipherKey.length + CipherKey.overhead else { return nil }
    var bytes = [UInt8](repeating: 0, count: CipherKey.length)
    guard unsafe recovery.decrypt(ciphertext[...], with: Self.associated(store), into: &bytes) != nil else {
      return nil
    }
    return DataKey(consuming: &bytes)
  }

  /// Returns the associated data, which binds the wrapped data key to its store, and to this use.
  private static func associated(_ store: UUID) -> [UInt8] { Array("identityd recovery of data key \(store)".utf8) }
}

extension Store {
  /// The time at which the recovery key was set; nil if there is none.
  package var recoveryKeyTime: Timestamp? { ledger.recovery?.created }

  /// Wraps the data key in a recovery key, in addition to the master key, and forgets an earlier recovery key.
  ///
  /// - Throws: `badArgument` for a key of another length, `unavailable` if the master key of the items is missing or the
  ///   store is sealed, `unknown` if the outcome of the commit is unknown, or the refusal of the ``condition``.
  package mutating func protectKey(with key: SealedSecret, at now: Timestamp) throws(Refusal) {
    if let refusal = condition.refusal { throw refusal }
    guard !ledger.settings.isSealed else { throw .unavailable("the store is sealed") }
    guard let dataKey = keys.dataKey else { throw .unavailable("the master key of the items is missing") }
    guard let recovery = keys.memory.cipherKey(in: key) else { throw .badRecoveryKey(verb: "key protect") }
    let record = RecoveryRecord(dataKey, in: recovery, of: identity, created: now)
    try change { (edit, authenticator) throws(DatabaseError) in try edit.protect(with: record, authenticator) }
    // After the checkpoint no file contains the data key as wrapped in an earlier recovery key.
    _ = try? files?.database.checkpointIfFree()
    measure()
  }

  /// Opens the data key with the recovery key, and wraps it in the present master key: the credential if there is one,
  /// else the key in the file, which is made if it is missing. The items can be used after the next start.
  ///
  /// - Parameter isTrial: whether only the recovery key is tested.
  /// - Returns: the source of the master key; nil for a trial.
  /// - Throws: `conflict` if a master key opens the data key, `badArgument` for a wrong recovery key, `unavailable` if
  ///   there is none, `unknown` if the outcome of the commit is unknown, or the refusal of the ``condition``.
  package mutating func recoverKey(
    with key: SealedSecret, isTrial: Bool, at now: Timestamp
  ) throws(Refusal) -> KeySource? {
    if let refusal = condition.refusal { throw refusal }
    guard keys.dataKey == nil, !isStartDue else {
      throw .conflict("a master key opens the data key already, so nothing is to be recovered")
    }
    guard let record = ledger.recovery else { throw .unavailable("the store has no recovery key") }
    guard let recovery = keys.memory.cipherKey(in: key) else { throw .badRecoveryKey(verb: "key recover") }
    guard let opened = record.unwrap(with: recovery, of: identity) else {
      throw .badArgument(verb: "key recover", .combination("this is not the recovery key of the store"))
    }
    guard !isTrial else { return nil }
    let master: MasterKey
    do {
      master = try keys.ring.preferred(in: directory.folder)
      try directory.folder.synchronize()
      // Includes the file of a key that was just made.
      try keys.noteFiles(in: directory.folder)
    } catch {
      throw fail(after: error)
    }
    let wrapped = opened.wrapped(in: master, of: identity, created: now)
    try change { (edit, authenticator) throws(DatabaseError) in try edit.wrap(wrapped, authenticator) }
    // The items in memory lack what is encrypted of them, so a start reads them anew.
    isStartDue = true
    return master.source
  }

  /// Runs a closure in one transaction.
  private mutating func change(
    _ body: (inout Edit, borrowing Authenticator) throws(DatabaseError) -> Void
  ) throws(Refusal) {
    do {
      try commit(body)
    } catch {
      throw fail(after: error)
    }
  }
}

extension Refusal {
  fileprivate static func badRecoveryKey(verb: String) -> Refusal {
    .badArgument(verb: verb, .combination("a recovery key must have \(CipherKey.length) bytes"))
  }
}
