import IdentityCore
import IdentityWire

/// The verified content of a database, from one pass over it.
struct Reading {
  /// The schema version of the database. An earlier one needs a migration.
  private(set) var version = Schema.version
  var registry = Registry()
  /// The events that are kept, without a gap up to the last one.
  var events: [EventLine] = []
  var ledger = Ledger()
  /// The data key and the master key that opened it; nil if no master key did.
  private(set) var unwrapped: (key: DataKey, master: MasterKey)?
  /// A description of each part that is not as this daemon wrote it; empty if there is no damage.
  var damage: [String] = []
  /// Whether the items are still to be read; see ``readItems(_:_:_:path:)``.
  private(set) var lacksItems = false

  /// The number of items from which on a start leaves them out.
  private static let manyItems: Int64 = 8_192

  init() {}

  /// The damage in words; nil if there is none.
  var damageReason: String? {
    guard let first = damage.first else { return nil }
    return first + (damage.count > 1 ? ", and \(damage.count - 1) more" : "")
  }

  /// Creates a reading that only lacks the items of a registry.
  init(_ registry: Registry, _ ledger: Ledger) {
    (self.registry, self.ledger) = (registry, ledger)
    lacksItems = true
  }

  /// Reads and verifies every row, or every row but those of many items.
  ///
  /// A row without a valid proof is reported and left out. If the rows of a table do not match its digest, some row may
  /// be out of date, and it is unknown which one, so nothing of that table is served. Without the row of `store` there
  /// is no digest, so nothing is served at all (Decisions/0048).
  ///
  /// - Parameters:
  ///   - path: the path of the database, if a second thread may read a part of it, and if many items may be left out.
  init(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ keys: StoreKeys,
    path: String? = nil
  ) throws(DatabaseError) {
    version = try database.integer("PRAGMA user_version") ?? 0
    guard Schema.earliest...Schema.version ~= version else {
      damage = ["it has schema version \(version), which no version of identityd writes"]
      registry.doubt(.all, incomplete: [])
      return
    }
    var found = ProvenRows()
    let isCounted = try readStore(database, authenticator)
    try readDataKey(database, authenticator, &found, keys)
    let cipher = cipher(keys)
    var thread: ReaderThread?
    if let path {
      let items = try Self.lastItem(in: database)
      let count = ledger.row.digests[Item.table.digestIndex].count
      lacksItems = isCounted && version == Schema.version && count >= Self.manyItems
      thread = try ReaderThread(
        path: path, version: version, apps: ledger.row.digests[AppRecord.table.digestIndex].count,
        lastEvent: ledger.row.lastEvent, items: lacksItems ? nil : items, database, authenticator, cipher)
    }
    try read(StoredSettings.self, database, authenticator, &found) { $0.apply($1) }
    try read(FormerMachine.self, database, authenticator, &found) { reading, former in
      reading.registry.apply(.machineLeft(former))
      return true
    }
    try read(LeftDevice.self, database, authenticator, &found) { reading, left in
      reading.registry.apply(.deviceLeft(left))
      return true
    }
    try read(StoredProofKey.self, database, authenticator, &found) { reading, key in
      reading.registry.apply(.proofKeyStored(key))
      return true
    }
    try readApps(database, authenticator, &found)
    try read(DeviceRecord.self, database, authenticator, &found) { $0.apply($1) }
    try readFleet(database, authenticator, &found)
    try read(LastBackup.self, database, authenticator, &found) { reading, backup in
      reading.registry.apply(.backupTaken(backup.made))
      return true
    }
    var part = PartReading(version: version)
    if thread == nil { try part.readEvents(database, authenticator) }
    try part.readIdentifiers(database, authenticator, upTo: thread?.middle.identifier)
    if !lacksItems { try part.readItems(database, authenticator, cipher, upTo: thread?.middle.item) }
    try readVersions(database, authenticator, &found)
    try readUses(database, authenticator, &found)
    if let thread { part.append(try thread.part()) }
    found.merge(part.rows)
    events = part.events
    ledger.eventBlocks = part.eventBlocks
    registry.restore(part.identifiers)
    ledger.identifiers = part.identifiers.last?.number ?? 0
    ledger.inForce = registry.history.inForce
    registry.restore(part.items)
    damage += found.damage
    if let missing = cutEvents(), damage.isEmpty { damage.append(missing) }
    judge(found, Schema.tables.filter { !lacksItems || $0.name != Item.table.name }, isCounted: isCounted)
    // A damaged store is read whole, so that all of its damage is named at once.
    if lacksItems, !damage.isEmpty {
      let unproven = registry.unproven
      try readItems(database, authenticator, cipher)
      registry.doubt([], incomplete: registry.unproven.union(unproven))
    }
  }

  /// Returns the number of the last item. No row is verified yet, so the number may be any.
  private static func lastItem(in database: borrowing Database) throws(DatabaseError) -> Int64 {
    try database.integer("SELECT max(n) FROM \(Item.table.name)") ?? 0
  }

  /// Reads and verifies the items that were left out.
  ///
  /// - Parameter path: the path of the database, if a second thread may read a part of them.
  mutating func readItems(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ cipher: ItemCipher?, path: String? = nil
  ) throws(DatabaseError) {
    var thread: ReaderThread?
    if let path {
      let middle = ReaderThread.Middle(hasEvents: false, item: try Self.lastItem(in: database) / 2)
      thread = ReaderThread(path, version: version, after: middle, authenticator, cipher)
    }
    var part = PartReading(version: version)
    try part.readItems(database, authenticator, cipher, upTo: thread?.middle.item)
    if let thread { part.append(try thread.part()) }
    lacksItems = false
    registry.restore(part.items)
    damage += part.rows.damage
    judge(part.rows, [Schema.tables[Item.table.digestIndex]], isCounted: true)
  }

  /// Drops the content of tables that may be out of date.
  ///
  /// - Parameters:
  ///   - tables: the tables that were read.
  ///   - isCounted: whether the row of `store`, which contains the digests, was verified.
  private mutating func judge(_ found: ProvenRows, _ tables: [Table], isCounted: Bool) {
    var inDoubt: Records = isCounted ? [] : .all
    for table in tables
    where isCounted && !found.isCurrent(table.digestIndex, by: ledger.row.digests[table.digestIndex]) {
      let isEarlier = table.digestIndex == EventBatch.table.digestIndex && version < EventBatch.table.since
      let name = isEarlier ? EarlierEvent.table.name : table.name
      nameWrongRows(of: name, found.digests[table.digestIndex], ledger.row.digests[table.digestIndex])
      inDoubt.formUnion(table.kinds)
    }
    registry.doubt(inDoubt, incomplete: found.incomplete.subtracting(.events))
    if inDoubt.contains(.events) { events = [] }
    if inDoubt.contains(.recovery) { ledger.recovery = nil }
  }

  /// Reads a file that has no open connection. A file that is no database of this schema counts as damaged.
  ///
  /// - Throws: errors that say nothing about the content of the file.
  init(
    path: String, _ authenticator: borrowing Authenticator, _ keys: StoreKeys
  ) throws(DatabaseError) {
    do {
      let database = try Database(path: path, create: false)
      self = try Reading(database, authenticator, keys)
    } catch {
      guard error.saysDamaged || error.isAboutContent else { throw error }
      self.init()
      damage = ["\(error)"]
    }
  }
}

// MARK: - Records

extension Reading {
  /// Reads the records of a type.
  ///
  /// - Parameters:
  ///   - found: receives the digests and the damage of the rows.
  ///   - take: takes in a record; returns false if this program would not write such a row.
  mutating func read<Record: StoredRecord>(
    _ type: Record.Type, _ database: borrowing Database, _ authenticator: borrowing Authenticator,
    _ found: inout ProvenRows, _ take: (inout Reading, Record) -> Bool
  ) throws(DatabaseError) {
    guard Record.table.since <= version else { return }
    var reader = RowReader(version: version)
    try found.read(type, through: &reader, database, authenticator) { record, _ in take(&self, record) }
  }

  /// Reads the row of `store`.
  ///
  /// - Returns: whether there is a row that was verified.
  private mutating func readStore(_ database: borrowing Database, _ authenticator: borrowing Authenticator)
    throws(DatabaseError) -> Bool
  {
    let statement = database.prepare(Table.store.selection)
    guard try statement.step() else {
      damage.append("the row of table store is missing")
      return false
    }
    var row = RowBytes()
    let values = statement.values(Table.store.columns.count)
    guard authenticator.proof(ofRowIn: statement, of: .store, into: &row) != nil, let stored = StoreRow(values) else {
      damage.append("the row of table store is not authentic")
      return false
    }
    ledger.row = stored
    return true
  }

  /// Reports that the verified rows of a table do not match its digest.
  private mutating func nameWrongRows(of table: String, _ found: Digest, _ expected: Digest) {
    damage.append(
      found.count == expected.count
        ? "the \(found.count) rows of \(table) are proven, but not all of them are current"
        : "table \(table) holds \(found.count) proven rows and should hold \(expected.count)")
  }

  /// Reads the data key and the recovery key. If no master key opens it, the items are kept but cannot be used.
  private mutating func readDataKey(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows,
    _ keys: StoreKeys
  ) throws(DatabaseError) {
    try read(WrappedKey.self, database, authenticator, &found) { reading, key in
      reading.ledger.wrappedKey = key
      return true
    }
    try read(RecoveryRecord.self, database, authenticator, &found) { reading, record in
      reading.ledger.recovery = record
      return true
    }
    if let wrapped = ledger.wrappedKey {
      unwrapped = keys.ring.unwrap(wrapped, of: ledger.row.identity)
      registry.itemFault = unwrapped == nil ? keys.ring.fault(wrapped) : nil
    } else {
      registry.itemFault = "items cannot be decrypted: the store has no data key"
    }
  }

  /// Returns the guarded memory and the key to use items; nil if the key is missing.
  func cipher(_ keys: StoreKeys) -> ItemCipher? {
    (unwrapped?.key.key).map { ItemCipher(memory: keys.memory, key: $0, store: ledger.row.identity) }
  }

  /// Reads all apps before building their table, whose size is then known.
  private mutating func readApps(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    var apps: [InstalledApp] = []
    try read(AppRecord.self, database, authenticator, &found) { _, record in
      apps.append(InstalledApp(key: record.id, app: record.app))
      return true
    }
    registry.restore(apps)
  }

  private mutating func readUses(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    try read(AppUseRecord.self, database, authenticator, &found) { reading, record in
      // Until version 2, an empty ID was the daemon itself.
      let isDay = record.id.isEmpty && reading.version < DayRecord.table.since
      reading.registry.apply(isDay ? .dayBegan(record.use) : .appUsed(record.id, record.use))
      return true
    }
    try read(DayRecord.self, database, authenticator, &found) { reading, record in
      reading.registry.apply(.dayBegan(record.use))
      return true
    }
  }

  private mutating func readFleet(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    if version < FleetRecord.table.since {
      try read(EarlierFleetRow.self, database, authenticator, &found) { reading, row in
        if let record = row.record { reading.registry.apply(.fleetRecorded(record)) }
        if let standing = row.standing { reading.registry.apply(.fleetAdvanced(standing)) }
        return true
      }
    }
    try read(FleetRecord.self, database, authenticator, &found) { reading, record in
      reading.registry.apply(.fleetRecorded(record))
      return true
    }
    try read(FleetStanding.self, database, authenticator, &found) { reading, standing in
      reading.registry.apply(.fleetAdvanced(standing))
      return true
    }
  }

  private mutating func readVersions(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    try read(ReleaseRecord.self, database, authenticator, &found) { reading, record in
      guard record.installed.number > reading.registry.versions.lastRelease else { return false }
      reading.registry.apply(.version(.installed(record.subject, record.installed)))
      return true
    }
    try read(ReportRecord.self, database, authenticator, &found) { reading, record in
      guard record.report.number > reading.registry.versions.lastReport else { return false }
      reading.registry.apply(.version(.reported(record.subject, record.report)))
      return true
    }
    try read(ClaimRecord.self, database, authenticator, &found) { reading, record in
      guard record.claim.number > reading.registry.versions.lastClaim else { return false }
      reading.registry.apply(.version(.claimed(record.subject, record.claim)))
      return true
    }
    try read(TokenRecord.self, database, authenticator, &found) { reading, record in
      guard record.number > reading.registry.tokens.lastNumber else { return false }
      reading.registry.apply(.tokenStored(Token(record), .confirmed))
      return true
    }
  }

  private mutating func apply(_ settings: StoredSettings) -> Bool {
    ledger.settings = settings
    if let name = settings.account { registry.apply(.accountSet(name)) }
    if let record = settings.machine { registry.apply(.machineRecorded(record)) }
    if settings.isSealed { registry.apply(.sealed) }
    return true
  }

  private mutating func apply(_ record: DeviceRecord) -> Bool {
    guard record.number > ledger.lastDevice else { return false }
    (ledger.lastDevice, ledger.devices[record.device.value]) = (record.number, record.number)
    registry.apply(.deviceListed(record.device))
    return true
  }
}

// MARK: - Events

extension Reading {
  /// Keeps the events that lead up to the last sequence number without a gap.
  ///
  /// - Returns: a description of the events missing before those kept; nil if none is missing.
  private mutating func cutEvents() -> String? {
    ledger.row.lastEvent = max(ledger.row.lastEvent, events.last?.sequence ?? 0)
    registry.resume(after: ledger.row.lastEvent)
    var first = ledger.row.lastEvent + 1
    var index = events.count
    while index > 0, events[index - 1].sequence == first - 1 {
      index -= 1
      first -= 1
    }
    let before = index > 0 ? events[index - 1].sequence : 0
    let isBroken = index > 0 || events.isEmpty && ledger.row.lastEvent > 0
    if index > 0 { events.removeFirst(index) }
    ledger.firstEvent = first
    guard isBroken else { return nil }
    return before + 1 == first - 1
      ? "event \(first - 1) is missing" : "events \(before + 1) to \(first - 1) are missing"
  }
}
