import IdentityCore
import IdentityWire

/// A transaction under construction: turns changes into edits of rows, and updates the ledger.
///
/// Each row is read and verified before it is replaced or removed. If a row is missing or not as it was written, the
/// whole transaction fails, because the new digest would hide the damage.
struct Edit {
  let tables: Tables
  let cipher: ItemCipher?
  private(set) var ledger: Ledger
  /// Holds the row that is being written.
  private var writer: RowWriter
  /// The stored row that is replaced or removed.
  private var found = RowBytes()

  /// Begins an edit.
  ///
  /// - Parameters:
  ///   - ledger: the committed state, with the revision that the new rows get.
  ///   - cipher: nil if the master key of the items is missing. Items can then be deleted, but not stored.
  init(_ tables: Tables, _ ledger: consuming Ledger, _ cipher: ItemCipher?) {
    self.tables = tables
    self.ledger = ledger
    self.cipher = cipher
    writer = RowWriter(cipher)
  }

  /// Writes changes.
  mutating func apply(_ recorded: [RecordedChange], _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    let passing = recorded.passing
    for index in recorded.indices {
      if passing.isEmpty || !passing[index] { try apply(recorded[index].change, authenticator) }
    }
  }

  private mutating func apply(_ change: Change, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    switch change {
    case .appInstalled(let id, let app): try insert(AppRecord(id: id, app: app), authenticator)
    case .appUpdated(let id, let app): try replace(AppRecord(id: id, app: app), authenticator)
    case .appUninstalled(let id): try remove(.text(id.bytes), AppRecord.self, authenticator)
    case .appReplaced(let replacement): try apply(replacement, authenticator)
    case .appUsed(let id, let use): try put(AppUseRecord(of: id, use), authenticator)
    case .appUseForgotten(let id): try remove(.text(id.bytes), AppUseRecord.self, authenticator)
    case .dayBegan(let use): try put(DayRecord(use), authenticator)
    case .identifierMade(let identifier): try make(identifier, authenticator)
    case .identifierRemembered(let identifier): try append(identifier, authenticator)
    case .identifierEnded(let scope, let end):
      guard ledger.inForce[scope] != nil else { throw .impossible("end an identifier that is not in force") }
      try self.end(scope, end, authenticator)
    case .identifierForgotten(let forgotten): try remove(forgotten, isWhole: true, authenticator)
    case .deviceSuspected, .deviceAcknowledged, .deviceResumed: break
    case .machineRecorded(let record):
      ledger.settings.machine = record
      try replace(ledger.settings, authenticator)
    case .machineLeft(let former): try insert(former, authenticator)
    case .machineAcknowledged(let former): try replace(former, authenticator)
    case .machineForgotten(let number): try remove(.integer(number), FormerMachine.self, authenticator)
    case .deviceLeft(let left): try insert(left, authenticator)
    case .leftDeviceForgotten(let number): try remove(.integer(number), LeftDevice.self, authenticator)
    case .accountSet(let name):
      ledger.settings.account = name
      try replace(ledger.settings, authenticator)
    case .deviceListed(let device):
      ledger.lastDevice += 1
      try insert(DeviceRecord(number: ledger.lastDevice, device: device), authenticator)
      ledger.devices[device.value] = ledger.lastDevice
    case .deviceDescribed(let device): try replace(device.value, with: device, authenticator)
    case .deviceReplaced(let previous, let device): try replace(previous, with: device, authenticator)
    case .deviceUnlisted(let value): try unlist(value, authenticator)
    case .fleetAdvanced(let standing): try put(standing, authenticator)
    case .fleetRecorded(let record): try put(record, authenticator)
    case .fleetForgotten(let device): try remove(Value(device), FleetRecord.self, authenticator)
    case .backupTaken(let made): try put(LastBackup(made: made), authenticator)
    case .itemStored(let item, let secret, let change): try store(item, secret, change, authenticator)
    case .itemDeleted(let item):
      try remove(item, authenticator)
      try tables.secret.remove(item.number)
    case .version(let change): try apply(change, authenticator)
    case .tokenStored(let token, .created): try insert(token.record, authenticator)
    case .tokenStored(_, .copied): break
    case .tokenStored(let token, _): try replace(token.record, authenticator)
    case .tokenDeleted(let token): try remove(token.record, authenticator)
    case .proofKeyStored(let key): try put(key, authenticator)
    case .proofKeyForgotten(let key, _): try remove(.integer(key.number), StoredProofKey.self, authenticator)
    case .proofKeyLocked: break
    case .sealed:
      ledger.settings.isSealed = true
      try replace(ledger.settings, authenticator)
      try protect(with: nil, authenticator)
    // A restore brings items that the holder of the recovery key need not have had.
    case .epochBegan(let epoch):
      begin(epoch)
      try protect(with: nil, authenticator)
    }
  }

  private mutating func apply(_ change: VersionChange, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    switch change {
    case .installed(let subject, let installed): try insert(ReleaseRecord(subject, installed), authenticator)
    case .reinstalled(let subject, let installed): try replace(ReleaseRecord(subject, installed), authenticator)
    case .reported(let subject, let report): try insert(ReportRecord(subject, report), authenticator)
    case .claimed(let subject, let claim): try insert(ClaimRecord(subject, claim), authenticator)
    case .releaseForgotten(let subject, let installed): try remove(ReleaseRecord(subject, installed), authenticator)
    case .reportForgotten(let subject, let report): try remove(ReportRecord(subject, report), authenticator)
    case .claimForgotten(let subject, let claim): try remove(ClaimRecord(subject, claim), authenticator)
    }
  }

  // MARK: Apps

  private mutating func apply(_ replacement: Replacement, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    try remove(.text(replacement.previous.bytes), AppRecord.self, authenticator)
    try insert(AppRecord(id: replacement.id, app: replacement.app), authenticator)
    for moved in replacement.identifiers { try move(moved, authenticator) }
    for moved in replacement.items {
      try remove(moved.before, authenticator)
      try store(moved.item, moved.secret, .added, authenticator)
    }
    for change in replacement.versions { try apply(change, authenticator) }
    for token in replacement.tokens {
      try remove(token.record, authenticator)
      try insert(token.with(app: replacement.id).record, authenticator)
    }
  }

  // MARK: Identifiers

  private mutating func move(_ moved: NumberedIdentifier, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    let key = Value.integer(moved.number)
    try remove(key, NumberedIdentifier.self, authenticator)
    guard let before = found(NumberedIdentifier.self)?.identifier else {
      throw .unproven(NumberedIdentifier.table.name, key)
    }
    if before.end == nil { ledger.inForce[before.scope] = nil }
    if moved.identifier.end == nil { ledger.inForce[moved.identifier.scope] = moved.number }
    try insert(moved, authenticator)
  }

  private mutating func make(_ identifier: Identifier, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if ledger.inForce[identifier.scope] != nil {
      try end(identifier.scope, .init(time: identifier.created, cause: identifier.cause), authenticator)
    }
    try append(identifier, authenticator)
    if identifier.end == nil { ledger.inForce[identifier.scope] = ledger.identifiers }
  }

  private mutating func append(_ identifier: Identifier, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    ledger.identifiers += 1
    try insert(NumberedIdentifier(number: ledger.identifiers, identifier: identifier), authenticator)
  }

  private mutating func end(_ scope: Scope, _ how: Identifier.End, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    guard let number = ledger.inForce.removeValue(forKey: scope) else { return }
    let key = Value.integer(number)
    try remove(key, NumberedIdentifier.self, authenticator)
    guard var identifier = found(NumberedIdentifier.self)?.identifier, identifier.scope == scope, identifier.end == nil
    else { throw .unproven(NumberedIdentifier.table.name, key) }
    identifier.end = how
    try insert(NumberedIdentifier(number: number, identifier: identifier), authenticator)
  }

  // MARK: Devices

  private mutating func replace(_ value: UUID, with device: ListedDevice, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    guard let number = ledger.devices[value] else { throw .impossible("replace a device that is not listed") }
    try replace(DeviceRecord(number: number, device: device), authenticator)
    guard device.value != value else { return }
    ledger.devices[value] = nil
    ledger.devices[device.value] = number
  }

  private mutating func unlist(_ value: UUID, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    guard let number = ledger.devices.removeValue(forKey: value) else {
      throw .impossible("remove a device that is not listed")
    }
    try remove(.integer(number), DeviceRecord.self, authenticator)
  }

  // MARK: Items

  private mutating func store(
    _ item: Item, _ secret: SealedSecret, _ change: ItemChange, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    guard let cipher, let ciphertext = item.encrypted(secret, cipher) else {
      throw .impossible("encrypt a secret without its key")
    }
    if change == .added { try insert(item, authenticator) } else { try replace(item, authenticator) }
    try tables.secret.replace(item, ciphertext)
  }

  /// Writes the data key in its current wrapping.
  mutating func wrap(_ key: WrappedKey, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if ledger.wrappedKey != nil { try remove(.integer(1), WrappedKey.self, authenticator) }
    try insert(key, authenticator)
    ledger.wrappedKey = key
  }

  /// Writes the data key as wrapped in the recovery key, or removes it.
  mutating func protect(with record: RecoveryRecord?, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if ledger.recovery != nil { try remove(.integer(1), RecoveryRecord.self, authenticator) }
    if let record { try insert(record, authenticator) }
    ledger.recovery = record
  }

  // MARK: Events

  /// Writes the events of the transaction, one row for up to ``EventBatch/most`` events.
  mutating func append(_ events: [EventLine], _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    var rest = events[...]
    while !rest.isEmpty {
      let lines = rest.prefix(EventBatch.most)
      guard let batch = EventBatch(lines), batch.first == ledger.row.lastEvent + 1 else {
        throw .impossible("store events from \(lines.first?.sequence ?? 0) behind event \(ledger.row.lastEvent)")
      }
      ledger.eventBlocks.add(try insert(batch, authenticator), of: batch.last)
      ledger.row.lastEvent = batch.last
      rest = rest.dropFirst(EventBatch.most)
    }
  }

  /// Removes the oldest batches of events once ``Bound/spareEvents`` more events than ``Bound/keptEvents`` are stored.
  ///
  /// Removed events are never sent again, so they are not verified again. The digests recorded when the events were
  /// added are removed from the digest of the table.
  mutating func trimEvents() throws(DatabaseError) {
    let kept = ledger.row.lastEvent - ledger.firstEvent + 1
    guard kept > Int64(Bound.keptEvents + Bound.spareEvents) else { return }
    let first = EventBlocks.start(of: ledger.row.lastEvent - Int64(Bound.keptEvents) + 1)
    let old = ledger.eventBlocks.remove(before: first)
    guard try tables.oldEvents.remove(before: first) == old.reduce(0, { $0 + $1.count }) else {
      throw .unproven(EventBatch.table.name, .integer(ledger.firstEvent))
    }
    for block in old { ledger.row.digests[EventBatch.table.digestIndex].remove(block) }
    ledger.firstEvent = first
  }

  // MARK: Rows

  /// Begins a new epoch of event numbers.
  mutating func begin(_ epoch: UUID) { ledger.row.begin(epoch) }

  /// Writes the row of `setting` in a new store.
  mutating func begin(_ settings: StoredSettings, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    ledger.settings = settings
    try insert(settings, authenticator)
  }

  /// Writes the row of `store`, replacing the existing one. Inlined, because a call would copy the ledger, a kilobyte.
  ///
  /// - Parameter previous: the committed ledger; nil if the table `store` is still empty.
  @inline(__always)
  mutating func finish(after previous: Ledger?, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if let own = previous?.row.written {
      try tables.store.find(own, at: 1)
    } else if let previous {
      writer.row.begin(tables.store.table)
      previous.row.append(to: &writer.row)
      guard try tables.store.find(.integer(1), into: &found, authenticator) != nil, writer.row.bytes == found.bytes
      else { throw .unproven(Table.store.name, .integer(1)) }
    }
    writer.row.begin(tables.store.table)
    ledger.row.append(to: &writer.row)
    if previous == nil {
      _ = try tables.store.insert(&writer.row, authenticator)
    } else {
      _ = try tables.store.replace(&writer.row, authenticator)
    }
    ledger.row.written = writer.row
  }

  /// Replaces the row with the same key, or inserts the first one.
  private mutating func put(_ record: consuming some StoredRecord, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    let statements = write(record)
    let removed = try statements.find(writer.row.key ?? .null, into: &found, authenticator)
    try store(statements, replacing: removed, authenticator)
  }

  /// Inserts the row of a record.
  ///
  /// - Returns: its proof.
  @discardableResult
  mutating func insert(_ record: consuming some StoredRecord, _ authenticator: borrowing Authenticator)
    throws(DatabaseError) -> Proof
  {
    let statements = write(record)
    return try store(statements, replacing: nil, authenticator)
  }

  /// Replaces the row with the same key. The first ``Table/lasting`` columns must be unchanged.
  private mutating func replace(_ record: consuming some StoredRecord, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    let statements = write(record)
    let removed = try find(writer.row.key ?? .null, statements, same: statements.table.lasting, authenticator)
    try store(statements, replacing: removed, authenticator)
  }

  /// Stores the row that was written.
  ///
  /// - Parameter removed: the proof of the row with the same key; nil if there is none.
  /// - Returns: the proof.
  @discardableResult
  private mutating func store(
    _ statements: TableStatements, replacing removed: Proof?, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> Proof {
    let added =
      try removed == nil
      ? statements.insert(&writer.row, authenticator) : statements.replace(&writer.row, authenticator)
    if let removed { ledger.row.digests.remove(removed, at: statements.table.digestIndex) }
    ledger.row.digests.add(added, at: statements.table.digestIndex)
    return added
  }

  /// Removes the row of a record. The first ``Table/lasting`` columns must be those of the record, or all of them.
  private mutating func remove<Record: StoredRecord>(
    _ record: consuming Record, isWhole: Bool = false, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let statements = write(record)
    let same = isWhole ? Record.table.columns.count : statements.table.lasting
    try remove(writer.row.key ?? .null, statements, same: same, authenticator)
  }

  /// Removes the row with a key.
  private mutating func remove<Record: StoredRecord>(
    _ key: Value, _ type: Record.Type, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) { try remove(key, tables[Record.self], same: 0, authenticator) }

  private mutating func remove(
    _ key: Value, _ statements: TableStatements, same: Int, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let removed = try find(key, statements, same: same, authenticator)
    try statements.remove(key)
    ledger.row.digests.remove(removed, at: statements.table.digestIndex)
  }

  /// Finds and verifies the stored row with a key.
  ///
  /// - Parameter same: the number of first columns that must be those of the row that is being written.
  private mutating func find(
    _ key: Value, _ statements: TableStatements, same: Int, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> Proof {
    guard let proof = try statements.find(key, into: &found, authenticator),
      same == 0 || writer.row.begins(like: found, columns: same)
    else { throw .unproven(statements.table.name, key) }
    return proof
  }

  /// Returns the record in the stored row that was found last; nil if this program would not write such a row.
  private mutating func found<Record: StoredRecord>(_ type: Record.Type) -> Record? {
    var reader = RowReader()
    found.pass(to: &reader)
    defer { found.fetch(from: reader) }
    var record = Record()
    // The revision follows.
    return reader.read(&record, before: 1) ? record : nil
  }

  /// Writes a record as a row of the present revision.
  ///
  /// - Returns: the statements of its table.
  private mutating func write<Record: StoredRecord>(_ record: consuming Record) -> TableStatements {
    let statements = tables[Record.self]
    writer.row.begin(statements.table)
    writer.append(record)
    writer.row.append(ledger.row.revision)
    return statements
  }
}
