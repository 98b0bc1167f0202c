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
  /// The row that is being written.
  private var row = RowBytes()
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
  }

  /// Writes changes.
  mutating func apply(_ recorded: [RecordedChange], _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    let passing = Self.passing(recorded)
    for place in recorded.indices {
      if passing.isEmpty || !passing[place] { try apply(recorded[place].change, authenticator) }
    }
  }

  /// Finds the changes whose row a later change of the same transaction replaces: those rows are not written.
  ///
  /// - Returns: a flag for each change; empty if there are fewer than two changes.
  private static func passing(_ recorded: [RecordedChange]) -> [Bool] {
    guard recorded.count > 1 else { return [] }
    var passing = [Bool](repeating: false, count: recorded.count)
    var tokens = RepeatedNumbers()
    var items = RepeatedNumbers()
    // In reverse order, so that the last change of a row is written. An added row is always written, and replaces none.
    for place in recorded.indices.reversed() {
      switch recorded[place].change {
      case .tokenStored(_, .created), .itemStored(_, _, .added): break
      case .tokenStored(let token, _): passing[place] = tokens.isRepeated(token.number)
      case .itemStored(let item, _, _): passing[place] = items.isRepeated(item.number)
      default: break
      }
    }
    return passing
  }

  /// A set of numbers seen before. The last number is compared first, because most often it repeats.
  private struct RepeatedNumbers {
    private var numbers: Set<Int64> = []
    private var last: Int64?

    mutating func isRepeated(_ number: Int64) -> Bool {
      if number == last { return true }
      last = number
      return !numbers.insert(number).inserted
    }
  }

  private mutating func apply(_ change: Change, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    switch change {
    case .appInstalled(let id, let app): try insert(app.columns(id: id), tables.app, authenticator)
    case .appUpdated(let id, let app): try replace(app.columns(id: id), tables.app, authenticator)
    case .appUninstalled(let id): try remove(.text(id.bytes), tables.app, authenticator)
    case .appUsed(let id, let use, let isFirst): try store(use, of: id, isFirst: isFirst, authenticator)
    case .appUseForgotten(let id): try remove(.text(id.bytes), tables.use, authenticator)
    case .dayBegan(let use, let isFirst): try store(use, of: AppUse.daemon, isFirst: isFirst, authenticator)
    case .identifierMade(let identifier): try make(identifier, authenticator)
    case .identifierRemembered(let identifier):
      ledger.identifiers += 1
      try insert(identifier.columns(number: ledger.identifiers), tables.identifier, authenticator)
    case .identifierEnded(let scope, let end):
      guard ledger.inForce[scope] != nil else { throw .impossible("end an identifier that is not in force") }
      try self.end(scope, end, authenticator)
    case .identifierForgotten(let forgotten): try forget(forgotten, authenticator)
    case .deviceSuspected: break
    case .machineRecorded(let record):
      ledger.settings.machine = record
      try replace(ledger.settings.columns, tables.setting, authenticator)
    case .machineLeft(let former): try insert(former.columns, tables.formerMachine, authenticator)
    case .machineAcknowledged(let former): try replace(former.columns, tables.formerMachine, authenticator)
    case .machineForgotten(let number): try remove(.integer(number), tables.formerMachine, authenticator)
    case .accountSet(let name):
      ledger.settings.account = name
      try replace(ledger.settings.columns, tables.setting, authenticator)
    case .deviceListed(let device):
      ledger.lastDevice += 1
      try insert(device.columns(number: ledger.lastDevice), tables.device, authenticator)
      ledger.devices[device.value] = ledger.lastDevice
    case .deviceDescribed(let device): try replace(device.value, with: device, authenticator)
    case .deviceReplaced(let previous, let device): try replace(previous, with: device, authenticator)
    case .deviceUnlisted(let value): try unlist(value, authenticator)
    case .fleetAdvanced(let standing, isFirst: true): try insert(standing.columns, tables.fleet, authenticator)
    case .fleetAdvanced(let standing, isFirst: false): try replace(standing.columns, tables.fleet, authenticator)
    case .fleetRecorded(let record, isFirst: true): try insert(record.columns, tables.fleet, authenticator)
    case .fleetRecorded(let record, isFirst: false): try replace(record.columns, tables.fleet, authenticator)
    case .fleetForgotten(let device): try remove(Value(device), tables.fleet, authenticator)
    case .backupTaken(let made, isFirst: true): try insert(made.backupColumns, tables.backup, authenticator)
    case .backupTaken(let made, isFirst: false): try replace(made.backupColumns, tables.backup, authenticator)
    case .itemStored(let item, let secret, let change): try store(item, secret, change, authenticator)
    case .itemDeleted(let item): try delete(item, authenticator)
    case .version(let change): try apply(change, authenticator)
    case .tokenStored(let token, let change): try store(token, change, authenticator)
    case .tokenDeleted(let token): try remove(token, authenticator)
    case .sealed:
      ledger.settings.isSealed = true
      try replace(ledger.settings.columns, tables.setting, authenticator)
    case .epochBegan(let epoch): begin(epoch)
    }
  }

  // MARK: Identifiers

  private mutating func make(_ identifier: Identifier, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if ledger.inForce[identifier.scope] != nil {
      try end(identifier.scope, .init(time: identifier.created, cause: identifier.cause), authenticator)
    }
    ledger.identifiers += 1
    try insert(identifier.columns(number: ledger.identifiers), tables.identifier, authenticator)
    if identifier.end == nil { ledger.inForce[identifier.scope] = ledger.identifiers }
  }

  private mutating func end(_ scope: Scope, _ how: Identifier.End, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    guard let number = ledger.inForce.removeValue(forKey: scope) else { return }
    let key = Value.integer(number)
    guard var identifier = Identifier(columns: try remove(key, tables.identifier, authenticator)),
      identifier.scope == scope, identifier.end == nil
    else { throw .unproven(Table.identifier.name, key) }
    identifier.end = how
    try insert(identifier.columns(number: number), tables.identifier, authenticator)
  }

  private mutating func forget(_ forgotten: NumberedIdentifier, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    let key = Value.integer(forgotten.number)
    guard Identifier(columns: try remove(key, tables.identifier, authenticator)) == forgotten.identifier else {
      throw .unproven(Table.identifier.name, key)
    }
  }

  // MARK: Uses

  private mutating func store(
    _ use: AppUse, of id: Text, isFirst: Bool, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    if isFirst {
      try insert(use.columns(of: id), tables.use, authenticator)
    } else {
      try replace(use.columns(of: id), tables.use, authenticator)
    }
  }

  // MARK: Devices

  private mutating func replace(_ value: UUID, with device: ListedDevice, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    guard let number = ledger.devices[value] else { throw .impossible("replace a device that is not listed") }
    try replace(device.columns(number: number), tables.device, authenticator)
    guard device.value != value else { return }
    ledger.devices[value] = nil
    ledger.devices[device.value] = number
  }

  private mutating func unlist(_ value: UUID, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    guard let number = ledger.devices.removeValue(forKey: value) else {
      throw .impossible("remove a device that is not listed")
    }
    try remove(.integer(number), tables.device, authenticator)
  }

  // MARK: Items

  private mutating func store(
    _ item: Item, _ secret: SealedSecret, _ change: ItemChange, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    guard let cipher, let (row, ciphertext) = item.encrypted(with: secret, cipher) else {
      throw .impossible("encrypt a secret without its key")
    }
    if change == .added {
      try insert(row, tables.item, authenticator)
    } else {
      try replace(row, tables.item, authenticator)
    }
    try tables.secret.replace(item, ciphertext)
  }

  private mutating func delete(_ item: Item, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    let number = Value.integer(item.number)
    guard Item(columns: try remove(number, tables.item, authenticator))?.key == item.key else {
      throw .unproven(Table.item.name, number)
    }
    try tables.secret.remove(item.number)
  }

  /// Writes the data key in its current wrapping.
  mutating func wrap(_ key: WrappedKey, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    if ledger.wrappedKey != nil { try remove(.integer(1), tables.dataKey, authenticator) }
    try insert(key.columns, tables.dataKey, authenticator)
    ledger.wrappedKey = key
  }

  // MARK: Events

  /// Writes the events of the transaction, one row for up to ``EventBatch/most`` events.
  mutating func append(_ events: [EventLine], _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    var rest = events[...]
    while !rest.isEmpty {
      let batch = EventBatch(rest.prefix(EventBatch.most))
      guard batch.first == ledger.lastEvent + 1, batch.isWithoutGap else {
        throw .impossible("store events \(batch.first) to \(batch.last) behind event \(ledger.lastEvent)")
      }
      ledger.eventBlocks.add(try insert(batch, tables.event, authenticator), of: batch.last)
      ledger.lastEvent = batch.last
      rest = rest.dropFirst(EventBatch.most)
    }
  }

  /// Removes the oldest batches of events once ``Bound/spareEvents`` more events than ``Bound/keptEvents`` are stored.
  ///
  /// Removed events are never sent again, so they are not verified again. The digests recorded when the events were
  /// added are removed from the digest of the table.
  mutating func trimEvents() throws(DatabaseError) {
    let kept = ledger.lastEvent - ledger.firstEvent + 1
    guard kept > Int64(Bound.keptEvents + Bound.spareEvents) else { return }
    let first = EventBlocks.start(of: ledger.lastEvent - Int64(Bound.keptEvents) + 1)
    let old = ledger.eventBlocks.remove(before: first)
    guard try tables.oldEvents.remove(before: first) == old.reduce(0, { $0 + $1.count }) else {
      throw .unproven(Table.event.name, .integer(ledger.firstEvent))
    }
    for block in old { ledger.digests[.event].remove(block) }
    ledger.firstEvent = first
  }

  // MARK: Rows

  /// Begins a new epoch of event numbers.
  mutating func begin(_ epoch: UUID) { ledger.epoch = epoch }

  /// Writes the row of `setting` in a new store.
  mutating func begin(_ settings: Settings, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    ledger.settings = settings
    try insert(settings.columns, tables.setting, authenticator)
  }

  /// Writes the row of `store`, replacing the existing one.
  ///
  /// - Parameter previous: the committed ledger; nil if the table `store` is still empty.
  mutating func finish(
    identity: UUID, created: Timestamp, after previous: Ledger?, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    if let own = previous?.ownRow {
      try tables.store.find(own, at: 1)
    } else if let previous {
      _ = try tables.store.find(.integer(1), into: &found, authenticator)
      write(previous, identity: identity, created: created)
      guard row.bytes == found.bytes else { throw .unproven(Table.store.name, .integer(1)) }
    }
    write(ledger, identity: identity, created: created)
    if previous == nil {
      _ = try tables.store.insert(&row, authenticator)
    } else {
      _ = try tables.store.replace(&row, authenticator)
    }
    ledger.ownRow = row
  }

  private mutating func write(_ ledger: Ledger, identity: UUID, created: Timestamp) {
    row.begin(tables.store.table)
    ledger.append(to: &row, identity: identity, created: created)
  }

  @discardableResult
  mutating func insert(
    _ content: some StoredRow, _ table: TableStatements, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) -> Proof {
    write(content, table)
    row.append(ledger.revision)
    let proof = try table.insert(&row, authenticator)
    ledger.digests.add(proof, at: table.table.place)
    return proof
  }

  @discardableResult
  mutating func remove(_ key: Value, _ table: TableStatements, _ authenticator: borrowing Authenticator)
    throws(DatabaseError) -> [Value]
  {
    ledger.digests.remove(try table.find(key, into: &found, authenticator), at: table.table.place)
    try table.remove(key)
    return found.values
  }

  /// Replaces the row with the same key. The first ``Table/lasting`` columns must be unchanged.
  mutating func replace(
    _ content: some StoredRow, _ table: TableStatements, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    let proof = try table.find(content.key, into: &found, authenticator)
    write(content, table)
    row.append(ledger.revision)
    guard row.begins(like: found, columns: table.table.lasting) else { throw .unproven(table.table.name, content.key) }
    ledger.digests.remove(proof, at: table.table.place)
    ledger.digests.add(try table.replace(&row, authenticator), at: table.table.place)
  }

  private mutating func write(_ content: some StoredRow, _ table: TableStatements) {
    row.begin(table.table)
    content.append(to: &row)
  }
}
