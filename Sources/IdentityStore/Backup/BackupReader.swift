package import IdentityCore
import LinuxSystem

/// A backup that a client uploads piece by piece. The backup is used only after all of it was received and verified.
package struct BackupUpload: Sendable {
  /// The key that the backup is encrypted with. The key itself is encrypted with the transit key.
  let key: SealedSecret
  /// The pieces received so far. They stay apart, because a long array takes long to grow.
  fileprivate var pieces: [[UInt8]] = []
  /// The number of bytes received so far.
  private(set) var count = 0

  /// Starts an upload.
  ///
  /// - Throws: `badArgument` if the key does not have the length of a backup key.
  package init(key: SealedSecret) throws(Refusal) {
    guard key.length == CipherKey.length else { throw .badBackupKey(verb: "restore begin") }
    self.key = key
  }

  /// Takes a whole backup.
  init(key: SealedSecret, whole: [UInt8]) throws(Refusal) {
    try self.init(key: key)
    pieces = whole.isEmpty ? [] : [whole]
    count = whole.count
  }

  /// Appends a piece of the backup, given as Base64 text.
  ///
  /// - Returns: the number of bytes received so far.
  /// - Throws: `badArgument` for invalid Base64, `limit` beyond ``Bound/backupLength``.
  package mutating func add(_ text: Text) throws(Refusal) -> Int {
    guard let piece = Base64.bytes(text.bytes) else {
      throw .badArgument(verb: "restore add", .notBase64(name: "data"))
    }
    guard count + piece.count <= Bound.backupLength else {
      throw .limit("a backup has at most \(Bound.backupLength) bytes")
    }
    if !piece.isEmpty { pieces.append(piece) }
    count += piece.count
    return count
  }
}

extension Store {
  /// Begins to read a backup.
  ///
  /// - Throws: `badArgument` if the key has the wrong length, `broken` if guarded memory cannot be allocated.
  package func beginReading(_ upload: BackupUpload) throws(Refusal) -> BackupReader {
    guard let key = keys.memory.cipherKey(in: upload.key) else { throw .badBackupKey(verb: "restore end") }
    guard let workspace = SecretWorkspace(size: BackupFormat.longestRecord) else {
      throw .broken("guarded memory cannot be allocated")
    }
    return BackupReader(upload, key, workspace, keys.memory, marks)
  }
}

/// The verification of an uploaded backup, record by record.
package final class BackupReader {
  /// The pieces that are not read to their end.
  private var pieces: ArraySlice<[UInt8]>
  /// The number of bytes read from the first of these pieces.
  private var position = 0
  /// The number of bytes that are not read.
  private var left: Int
  /// The number of records read.
  private var records: Int64 = 0
  /// The last record in encrypted form.
  private var previous: [UInt8] = []
  private let key: CipherKey
  private let workspace: SecretWorkspace
  private let memory: SecretMemory
  private let marks: MachineMarks
  private var backup: Backup?
  /// The schema version whose columns the records have.
  private var schema = Schema.version

  fileprivate init(
    _ upload: BackupUpload, _ key: CipherKey, _ workspace: consuming SecretWorkspace, _ memory: SecretMemory,
    _ marks: MachineMarks
  ) {
    pieces = upload.pieces[...]
    left = upload.count
    self.key = key
    self.workspace = workspace
    self.memory = memory
    self.marks = marks
  }

  /// Reads the next record.
  ///
  /// - Returns: the whole backup once its last record is read, else nil.
  /// - Throws: `conflict` if the upload is not a backup, is damaged, is encrypted with another key, or was made by a later
  ///   version. Nothing of the backup is used after an error.
  package func readRecord() throws(Refusal) -> Backup? {
    guard left > 0 else {
      guard let backup, isEnded else { throw Self.damaged("it is empty or truncated") }
      return backup
    }
    let length = try next(BackupFormat.lengthSize).reversed().reduce(0) { $0 << 8 | Int($1) }
    guard length <= BackupFormat.longestRecord else { throw Self.damaged("record \(records) is too long") }
    let record = try next(length)
    try read(record)
    previous = record
    records += 1
    return nil
  }

  /// Returns the next bytes.
  private func next(_ count: Int) throws(Refusal) -> [UInt8] {
    guard count <= left else { throw Self.damaged("it is truncated") }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count, let piece = pieces.first {
      let part = piece[position...].prefix(count - bytes.count)
      bytes += part
      position = part.endIndex
      if position == piece.count {
        pieces.removeFirst()
        position = 0
      }
    }
    left -= count
    return bytes
  }

  private var isEnded = false

  /// Decrypts a record, and adds its content to the backup.
  private func read(_ ciphertext: [UInt8]) throws(Refusal) {
    let index = records
    let associated = BackupFormat.associated(index: index, isLast: left == 0, behind: previous[...])
    let memory = memory
    let key = key
    let read = unsafe workspace.use { start, _ -> (BackupFormat.Kind, [Value], SealedSecret?)? in
      guard let length = unsafe key.decrypt(ciphertext[...], with: associated, into: start) else { return nil }
      let content = unsafe UnsafeBufferPointer(start: start, count: length)
      guard let (kind, values, secret) = unsafe BackupFormat.read(content) else { return nil }
      guard let secret else { return (kind, values, nil) }
      guard secret.count <= Bound.secretLength else { return nil }
      return unsafe (kind, values, memory.encrypted(start + secret.lowerBound, count: secret.count))
    }
    guard let (kind, values, secret) = read else {
      throw index == 0
        ? .conflict("the passphrase is wrong, or this is not a backup of identityd")
        : Self.damaged("record \(index) cannot be decrypted")
    }
    try add(kind, values, secret, index)
  }

  private func add(
    _ kind: BackupFormat.Kind, _ values: [Value], _ secret: SealedSecret?, _ index: Int64
  ) throws(Refusal) {
    guard (kind == .head) == (index == 0), (kind == .item) == (secret != nil), !isEnded else {
      throw Self.damaged("record \(index) is out of order")
    }
    let isUnderstood: Bool
    switch kind {
    case .head: isUnderstood = try addHead(values)
    case .account:
      let name = values.count == 1 ? values[0].asText : nil
      isUnderstood = add(name.flatMap { $0.isEmpty ? nil : $0 }) { $0.account = $1 }
    case .app: isUnderstood = add(AppRecord.self, values) { $0.apps[$1.id] = $1.app }
    case .identifier:
      isUnderstood = add(NumberedIdentifier.self, values, if: { !$0.identifier.value.isPlaceholder }) {
        $0.identifiers.append($1.identifier)
      }
    case .device:
      isUnderstood = add(DeviceRecord.self, values, if: { !$0.device.value.isPlaceholder }) {
        $0.devices.append($1.device)
      }
    case .fleet, .record: isUnderstood = addFleet(kind, values)
    case .release:
      isUnderstood = add(ReleaseRecord.self, values) { $0.versions.apply(.installed($1.subject, $1.installed)) }
    case .report:
      isUnderstood = add(ReportRecord.self, values) { $0.versions.apply(.reported($1.subject, $1.report)) }
    case .claim: isUnderstood = add(ClaimRecord.self, values) { $0.versions.apply(.claimed($1.subject, $1.claim)) }
    case .token: isUnderstood = add(TokenRecord.self, values) { $0.tokens.append(Token($1)) }
    case .item:
      isUnderstood = add(Item.self, values) { backup, item in
        if let secret { backup.items.append(Backup.StoredItem(item, secret)) }
      }
    case .end:
      isUnderstood = values == [.integer(index)]
      isEnded = true
    }
    guard isUnderstood else { throw Self.notUnderstood(index) }
  }

  /// Adds the standing of the device, or the message about a device.
  private func addFleet(_ kind: BackupFormat.Kind, _ values: [Value]) -> Bool {
    if schema < FleetRecord.table.since {
      func isFit(_ row: EarlierFleetRow) -> Bool {
        kind == .fleet ? row.standing?.isFit == true : row.record?.isFit == true
      }
      return add(EarlierFleetRow.self, values, if: isFit) { backup, row in
        if let standing = row.standing { backup.fleet = standing }
        if let record = row.record { backup.records.append(record) }
      }
    }
    if kind == .fleet { return add(FleetStanding.self, values, if: \.isFit) { $0.fleet = $1 } }
    return add(FleetRecord.self, values, if: \.isFit) { $0.records.append($1) }
  }

  /// Decodes a record, and adds it to the backup if it fits.
  private func add<Record: StoredRecord>(
    _ type: Record.Type, _ values: [Value], if isFit: (Record) -> Bool = { _ in true },
    _ store: (inout Backup, Record) -> Void
  ) -> Bool {
    var reader = RowReader(version: schema, unseal: Self.described)
    var row = RowBytes()
    values.append(to: &row)
    row.pass(to: &reader)
    var record = Record()
    return add(reader.read(&record) && isFit(record) ? record : nil, store)
  }

  /// Decodes label and attributes, which a backup has in the clear, because the whole record is encrypted. A backup can
  /// come from any source, so its text is validated.
  private static func described(
    _ row: [UInt8], _ values: Range<Int>, _ content: Range<Int>, _ texts: inout [Text]
  ) -> Bool {
    String(validating: row[content], as: UTF8.self) != nil && texts.replace(terminated: row[content])
  }

  private func add<Content>(_ content: Content?, _ store: (inout Backup, Content) -> Void) -> Bool {
    guard let content, var backup = backup.take() else { return false }
    store(&backup, content)
    self.backup = backup
    return true
  }

  private func addHead(_ values: [Value]) throws(Refusal) -> Bool {
    guard let version = values.first?.number, version >= 1 else { return false }
    guard version <= BackupFormat.version else {
      throw .conflict(
        "the backup was made by a later identityd: its format is \(version), this one reads format \(BackupFormat.version)"
      )
    }
    guard values.count >= 6, let created = values[2].time, case .blob(let salt) = values[3] else { return false }
    let isHere = marks.isHere(salt: salt, machine: values[4], hardware: values[5])
    backup = Backup(created: created, isFromHere: isHere)
    schema = BackupFormat.schema(of: version)
    return true
  }

  private static func notUnderstood(_ index: Int64) -> Refusal { damaged("record \(index) cannot be decoded") }

  private static func damaged(_ how: String) -> Refusal {
    .conflict("the backup is damaged and nothing was restored: \(how)")
  }
}

extension FleetStanding {
  /// Whether a standing of any source may be restored. The runs belong to the device that made the backup.
  fileprivate var isFit: Bool { runs.isEmpty }
}

extension FleetRecord {
  /// Whether a record of any source may be restored.
  fileprivate var isFit: Bool { !device.isPlaceholder && Self.isMessage(message) }
}
