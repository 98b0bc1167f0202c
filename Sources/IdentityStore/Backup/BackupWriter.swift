import CSodium
package import IdentityCore
import LinuxSystem

extension Store {
  /// Begins a backup of the registry and its secrets: the content of a backup file after its first line.
  ///
  /// Items marked for this device only are left out.
  ///
  /// - Parameters:
  ///   - registry: the committed registry.
  ///   - key: the key that encrypts the backup, 32 bytes.
  /// - Throws: `unavailable` if the master key of the items is missing, `broken` if the store is damaged or guarded memory
  ///   cannot be allocated.
  package func beginBackup(of registry: Registry, key: SealedSecret, at now: Timestamp) throws(Refusal) -> BackupWriter
  {
    if case .damaged = condition, let refusal = condition.refusal { throw refusal }
    guard registry.itemFault == nil, cipher != nil else {
      throw .unavailable(registry.itemFault ?? "the master key of the items is missing")
    }
    guard let cipherKey = keys.memory.cipherKey(in: key) else { throw .badBackupKey(verb: "backup") }
    guard let workspace = SecretWorkspace(size: BackupFormat.longestRecord) else {
      throw .broken("guarded memory cannot be allocated")
    }
    return BackupWriter(registry, head: try marks.head(at: now), cipherKey, workspace, keys.memory)
  }
}

extension Refusal {
  static func badBackupKey(verb: String) -> Refusal {
    .badArgument(verb: verb, .combination("the key of a backup must have \(CipherKey.length) bytes"))
  }
}

/// A backup that is made record by record. It has the registry of its beginning: the secret of an item that changes
/// before the item's turn is written ahead of the change.
package final class BackupWriter {
  /// A record that is encoded when it is written.
  private enum Record {
    /// The bytes of any other record, in the clear.
    case row([UInt8])
    case item(Item)
  }

  private let registry: Registry
  private let key: CipherKey
  private let workspace: SecretWorkspace
  private let memory: SecretMemory
  /// The records that are not written yet, kind by kind.
  private var rest: ArraySlice<AnyIterator<Record>>
  /// The last item whose turn came. Items come in the order of their keys.
  private var reached: ItemKey?
  /// The numbers of the items that were written ahead of their turn.
  private var ahead: Set<Int64> = []
  /// The reason why an item could not be written ahead of a change.
  private var failure: Refusal?
  /// The backup so far, in pieces of ``Bound/backupPiece`` bytes: a long array takes long to grow.
  private var pieces: [[UInt8]] = []
  private var last: [UInt8] = []
  /// The last record in encrypted form.
  private var previous: [UInt8] = []
  private var index: Int64 = 0

  fileprivate init(
    _ registry: Registry, head: [Value], _ key: CipherKey, _ workspace: consuming SecretWorkspace,
    _ memory: SecretMemory
  ) {
    self.registry = registry
    self.key = key
    self.workspace = workspace
    self.memory = memory
    rest = Self.records(of: registry, head: head)[...]
  }

  /// Writes the next record.
  ///
  /// - Parameter store: the store of the registry, with all changes since.
  /// - Returns: the whole backup once its last record is written, in pieces of ``Bound/backupPiece`` bytes, the last of
  ///   which may be shorter; else nil.
  /// - Throws: `broken` if a secret is damaged, naming its item, `unavailable` while no secret can be read, or `limit` if
  ///   the backup is longer than ``Bound/backupLength``. The backup has failed then.
  package func writeRecord(from store: borrowing Store) throws(Refusal) -> [[UInt8]]? {
    if let failure { throw failure }
    guard let records = rest.first else {
      let end = Authenticator.message([.integer(index)], behind: BackupFormat.Kind.end.rawValue)
      try append(key.encrypt(end, with: associated(true)))
      return last.isEmpty ? pieces : pieces + [last]
    }
    switch records.next() {
    case .row(let bytes): try append(key.encrypt(bytes, with: associated(false)))
    case .item(let item):
      reached = item.key
      if !item.isThisDeviceOnly, ahead.remove(item.number) == nil { try append(item, from: store) }
    case nil: rest.removeFirst()
    }
    return nil
  }

  /// Writes the items that changes are about to replace or remove, as far as their turn has not come.
  ///
  /// - Parameter store: the store without the changes.
  package func writeAhead(of changes: [RecordedChange], from store: borrowing Store) {
    let keys = changes.lazy.flatMap { recorded -> [ItemKey] in
      switch recorded.change {
      case .itemStored(let item, _, _), .itemDeleted(let item): [item.key]
      case .appReplaced(let replacement): replacement.items.map(\.before.key)
      default: []
      }
    }
    for key in keys {
      let hadTurn = reached.map { key <= $0 } ?? false
      guard failure == nil, !hadTurn, let item = registry.items[key], !item.isThisDeviceOnly,
        !ahead.contains(item.number)
      else { continue }
      do throws(Refusal) {
        try append(item, from: store)
        ahead.insert(item.number)
      } catch {
        failure = error
      }
    }
  }

  // MARK: Records

  /// Returns the records of a backup except the last, kind by kind.
  private static func records(of registry: Registry, head: [Value]) -> [AnyIterator<Record>] {
    var fleet = registry.fleet
    fleet?.runs = []
    return [
      iterator([head], row(.head)),
      iterator(registry.account.map { [[.text($0.bytes)]] } ?? [], row(.account)),
      iterator(registry.apps) { row(AppRecord(id: $0, app: $1), .app) },
      iterator(registry.history.enumerated()) {
        row(NumberedIdentifier(number: Int64($0) + 1, identifier: $1), .identifier)
      },
      iterator(registry.devices.enumerated()) { row(DeviceRecord(number: Int64($0) + 1, device: $1), .device) },
      iterator(fleet.map { [$0] } ?? []) { row($0, .fleet) },
      iterator(registry.records.all) { row($0, .record) },
      AnyIterator(registry.versions.all.lazy.flatMap(records).makeIterator()),
      iterator(registry.tokens.all.filter { !registry.isLeft($0) }) { row($0.record, .token) },
      iterator(registry.items.all, Record.item),
    ]
  }

  private static func iterator<Elements: Sequence>(
    _ elements: Elements, _ record: @escaping (Elements.Element) -> Record
  ) -> AnyIterator<Record> { AnyIterator(elements.lazy.map(record).makeIterator()) }

  private static func row(_ kind: BackupFormat.Kind) -> ([Value]) -> Record {
    { .row(Authenticator.message($0, behind: kind.rawValue)) }
  }

  private static func row(_ record: some StoredRecord, _ kind: BackupFormat.Kind) -> Record {
    .row(bytes(of: record, kind))
  }

  /// Returns a record in the clear: its kind, and the columns of its row without revision and proof.
  private static func bytes(of record: some StoredRecord, _ kind: BackupFormat.Kind) -> [UInt8] {
    var row = RowBytes(behind: kind.rawValue)
    row.append(record)
    return row.bytes
  }

  /// Returns the installed releases, the last report, and the claims.
  private static func records(of history: VersionHistory) -> [Record] {
    history.releases.map { row(ReleaseRecord(history.subject, $0), .release) }
      + (history.current.map { [row(ReportRecord(history.subject, $0), .report)] } ?? [])
      + history.claims.map { row(ClaimRecord(history.subject, $0), .claim) }
  }

  // MARK: Encryption

  /// Appends an item and its secret. The secret is in the clear in guarded memory only.
  private func append(_ item: Item, from store: borrowing Store) throws(Refusal) {
    let secret = try store.secret(of: item)
    var head = Self.bytes(of: item, .item)
    head.append(BackupFormat.secretForm)
    head.append(number: UInt64(secret.length))
    guard head.count + secret.length <= workspace.size else { throw .broken("an item exceeds the limit of its length") }
    let associated = associated(false)
    let ciphertext = unsafe workspace.use { start, _ -> [UInt8]? in
      unsafe start.update(from: head, count: head.count)
      guard unsafe memory.decrypt(secret, into: start + head.count) != nil else { return nil }
      return unsafe key.encrypt(start, count: head.count + secret.length, with: associated)
    }
    guard let ciphertext else { throw Refusal.damagedSecret(item) }
    try append(ciphertext)
  }

  private func associated(_ isLast: Bool) -> [UInt8] {
    BackupFormat.associated(index: index, isLast: isLast, behind: previous[...])
  }

  private func append(_ ciphertext: [UInt8]) throws(Refusal) {
    let length = pieces.count * Bound.backupPiece + last.count + BackupFormat.lengthSize + ciphertext.count
    guard length <= Bound.backupLength else {
      throw .limit("a backup has at most \(Bound.backupLength) bytes; copy the state directory instead")
    }
    for shift in stride(from: 0, to: 8 * BackupFormat.lengthSize, by: 8) {
      last.append(UInt8(truncatingIfNeeded: ciphertext.count >> shift))
    }
    last += ciphertext
    while last.count >= Bound.backupPiece {
      pieces.append(Array(last.prefix(Bound.backupPiece)))
      last.removeFirst(Bound.backupPiece)
    }
    previous = ciphertext
    index += 1
  }
}

// MARK: - Machine

extension MachineMarks {
  /// Returns the columns of the head record.
  ///
  /// The marks of the machine are hashed with a random salt, so two backups do not reveal that they are from
  /// one machine.
  func head(at now: Timestamp) throws(Refusal) -> [Value] {
    var salt = [UInt8](repeating: 0, count: CipherKey.length)
    do {
      try Entropy.fill(&salt)
    } catch {
      throw .broken("no random bytes from the kernel: \(error)")
    }
    return [
      .integer(BackupFormat.version), .text(Version.program), .text("\(now)"), .blob(salt), hashed(machineID, salt),
      hashed(hardware, salt),
    ]
  }

  /// Returns whether a backup with these marks is from this hardware.
  ///
  /// Compares the machine-ids if the mark of the hardware is missing on either side.
  func isHere(salt: [UInt8], machine: Value, hardware: Value) -> Bool {
    let own = hashed(self.hardware, salt)
    if hardware != .null, own != .null { return hardware == own }
    return machine != .null && machine == hashed(machineID, salt)
  }

  private func hashed(_ mark: [UInt8]?, _ salt: [UInt8]) -> Value {
    mark.map { .blob(keyedHash($0, key: salt)) } ?? .null
  }
}
