import CSodium
package import IdentityCore
import LinuxSystem

extension Store {
  /// Returns a backup of the registry and its secrets: the content of a backup file after its first line.
  ///
  /// Items marked for this device only are left out.
  ///
  /// - Parameters:
  ///   - registry: the committed registry.
  ///   - key: the key that encrypts the backup, 32 bytes.
  /// - Throws: `unavailable` if the master key of the items is missing, `broken` if a secret is damaged, naming its item, or
  ///   `limit` if the backup is longer than ``Bound/backupLength``.
  package func backup(of registry: Registry, key: SealedSecret, at now: Timestamp) throws(Refusal) -> [UInt8] {
    if case .damaged = condition, let refusal = condition.refusal { throw refusal }
    guard registry.itemFault == nil, cipher != nil else {
      throw .unavailable(registry.itemFault ?? "the master key of the items is missing")
    }
    guard let cipherKey = keys.memory.cipherKey(in: key) else { throw .badBackupKey(verb: "backup") }
    guard let workspace = SecretWorkspace(size: BackupFormat.longestRecord) else {
      throw .broken("guarded memory cannot be allocated")
    }
    var writer = BackupWriter(cipherKey, workspace)
    try writer.append(.head, try marks.head(at: now))
    if let account = registry.account { try writer.append(.account, [.text(account.bytes)]) }
    for (id, app) in registry.apps.sorted(by: { $0.key < $1.key }) { try writer.append(.app, app.columns(id: id)) }
    for (place, identifier) in registry.history.all.enumerated() {
      try writer.append(.identifier, identifier.columns(number: Int64(place) + 1))
    }
    for (place, device) in registry.devices.enumerated() {
      try writer.append(.device, device.columns(number: Int64(place) + 1))
    }
    if var fleet = registry.fleet {
      fleet.runs = []
      try writer.append(.fleet, fleet.columns)
    }
    for record in registry.records.all { try writer.append(.record, record.columns) }
    for history in registry.versions.all { try writer.append(history) }
    for token in registry.tokens.all { try writer.append(.token, token.columns) }
    for item in registry.items.all.sorted(by: { $0.number < $1.number }) where !item.isThisDeviceOnly {
      try writer.append(item, try secret(of: item), keys.memory)
    }
    return try writer.ended()
  }
}

extension Refusal {
  static func badBackupKey(verb: String) -> Refusal {
    .badArgument(verb: verb, .combination("the key of a backup must have \(CipherKey.length) bytes"))
  }
}

/// A backup under construction.
private struct BackupWriter: ~Copyable {
  private let key: CipherKey
  private let workspace: SecretWorkspace
  private var bytes: [UInt8] = []
  private var place: Int64 = 0

  init(_ key: CipherKey, _ workspace: consuming SecretWorkspace) {
    self.key = key
    self.workspace = workspace
  }

  mutating func append(_ kind: BackupFormat.Kind, _ values: [Value], isLast: Bool = false) throws(Refusal) {
    try append(key.encrypt(Authenticator.message(values, behind: kind.rawValue), with: associated(isLast)))
  }

  /// Appends the installed releases, the last report, and the claims.
  mutating func append(_ history: VersionHistory) throws(Refusal) {
    for installed in history.releases { try append(.release, installed.columns(of: history.subject)) }
    if let report = history.current { try append(.report, report.columns(of: history.subject)) }
    for claim in history.claims { try append(.claim, claim.columns(of: history.subject)) }
  }

  /// Appends an item and its secret. The secret is in the clear in guarded memory only.
  mutating func append(_ item: Item, _ secret: SealedSecret, _ memory: SecretMemory) throws(Refusal) {
    var head = Authenticator.message(item.backupColumns, behind: BackupFormat.Kind.item.rawValue)
    head.append(BackupFormat.secretForm)
    head.append(number: UInt64(secret.length))
    guard head.count + secret.length <= workspace.size else { throw .broken("an item exceeds the limit of its length") }
    let associated = associated(false)
    let ciphertext = unsafe workspace.use { start -> [UInt8]? in
      unsafe start.update(from: head, count: head.count)
      guard unsafe memory.decrypt(secret, into: start + head.count) != nil else { return nil }
      return unsafe key.encrypt(start, count: head.count + secret.length, with: associated)
    }
    guard let ciphertext else { throw Refusal.damagedSecret(item) }
    try append(ciphertext)
  }

  consuming func ended() throws(Refusal) -> [UInt8] {
    try append(.end, [.integer(place)], isLast: true)
    return bytes
  }

  private func associated(_ isLast: Bool) -> [UInt8] {
    BackupFormat.associated(place: place, isLast: isLast, behind: bytes[...])
  }

  private mutating func append(_ ciphertext: [UInt8]) throws(Refusal) {
    guard bytes.count + ciphertext.count + BackupFormat.lengthSize <= Bound.backupLength else {
      throw .limit("a backup has at most \(Bound.backupLength) bytes; copy the state directory instead")
    }
    for shift in stride(from: 0, to: 8 * BackupFormat.lengthSize, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: ciphertext.count >> shift))
    }
    bytes += ciphertext
    place += 1
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

extension Item {
  /// The columns of an item in a backup, with label and attributes in the clear: the whole record is encrypted.
  var backupColumns: [Value] { EncryptedItem(item: self, description: description).columns }

  /// Decodes ``backupColumns``; nil if they are malformed.
  init?(backupColumns columns: [Value]) {
    guard columns.count == 12, case .blob(let description) = columns[11] else { return nil }
    self.init(columns: columns)
    var texts: [Text] = []
    // A backup can come from any source, so its text is validated.
    guard String(validating: description, as: UTF8.self) != nil, texts.replace(terminated: description[...]),
      let described = Self.described(by: texts)
    else { return nil }
    (label, attributes) = described
  }
}
