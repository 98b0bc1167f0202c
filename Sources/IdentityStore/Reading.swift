import IdentityCore

/// What one pass over a database proved.
struct Reading {
  /// Its schema version.
  private(set) var version = Schema.version
  var registry = Registry()
  /// The events that are kept, without a gap up to the last one.
  var events: [Event] = []
  var store = UUID.zero
  var created = Timestamp(milliseconds: 0)
  var ledger = Ledger()
  /// The data key, and which master key opened it; nil where none did.
  private(set) var unwrapped: (key: DataKey, master: MasterKey)?
  /// What is not as this daemon wrote it; empty when everything is.
  var damage: [String] = []
  /// Of all rows, in a store of an earlier version, which has no digest for each table.
  private var total: Digest?

  /// Nothing was read.
  init() {}

  /// Reads and proves every row.
  ///
  /// A row without a valid proof is named and left out. Where the rows of a table are not those that its digest counts, one
  /// may be of an earlier time, and nobody can say which: nothing of that table is then served. Without the store's own row
  /// there is no digest, and nothing is served at all (Decisions/0048).
  ///
  /// - Parameter path: that of the database, where some of it may be read on another thread.
  init(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ keys: StoreKeys, path: String? = nil
  ) throws(DatabaseError) {
    version = try database.integer("PRAGMA user_version") ?? 0
    if version == VersionOne.version {
      try readVersionOne(database, authenticator)
      return
    }
    var found = ProvenRows()
    let isCounted = try readStore(
      version == Schema.version ? .store : VersionEight.store, database, authenticator)
    if version > VersionTwo.version { try readDataKey(database, authenticator, &found, keys) }
    let sealing = sealing(keys)
    var thread: ReadingThread?
    if let path, version > VersionTwo.version {
      thread = try ReadingThread(path: path, database, authenticator, sealing)
    }
    try read(.setting, database, authenticator, &found) { $0.take(setting: $1) }
    try readApps(database, authenticator, &found)
    try readIdentifiers(database, authenticator, &found)
    try read(.device, database, authenticator, &found) { $0.take(device: $1) }
    var part = PartReading()
    if thread == nil { try part.readEvents(database, authenticator) }
    if version > VersionTwo.version {
      try part.readItems(database, authenticator, sealing, upTo: thread?.lastBefore)
    }
    if version > VersionThree.version { try readVersions(database, authenticator, &found) }
    if version > VersionFour.version { try readUses(database, authenticator, &found) }
    if let thread { part.append(try thread.part()) }
    found.take(part.rows)
    events = part.events
    ledger.eventBlocks = part.eventBlocks
    registry.restore(part.items)
    damage += found.damage
    if let missing = cutEvents(), damage.isEmpty { damage.append(missing) }
    judge(found, isCounted: isCounted)
  }

  /// Lets go of what may be of an earlier time.
  mutating func judge(_ found: ProvenRows, isCounted: Bool) {
    var inDoubt: Records = isCounted ? [] : .all
    if let total, !found.isCurrent(by: total) {
      nameWrongRows(of: nil, found.digests.total, total)
      inDoubt = .all
    } else if total == nil, isCounted {
      for table in Table.proven where !found.isCurrent(table, by: ledger.digests[table]) {
        nameWrongRows(of: table.name, found.digests[table], ledger.digests[table])
        inDoubt.formUnion(table.records)
      }
    }
    if total != nil { ledger.digests = found.digests }
    registry.doubt(inDoubt, incomplete: found.incomplete.subtracting(.events))
    if inDoubt.contains(.events) { events = [] }
  }

  /// Reads a closed file. One that is no database of this schema is damaged, too.
  ///
  /// - Throws: what says nothing of the content of the file.
  init(path: String, _ authenticator: borrowing Authenticator, _ keys: StoreKeys) throws(DatabaseError) {
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

// MARK: - Rows

extension Reading {
  /// Reads a table row by row.
  ///
  /// - Parameters:
  ///   - found: counts the rows in.
  ///   - take: takes a proven row in; false where it is none that this program writes.
  mutating func read(
    _ table: Table, _ database: borrowing Database, _ authenticator: borrowing Authenticator,
    _ found: inout ProvenRows, _ take: (inout Reading, borrowing RowBytes) -> Bool
  ) throws(DatabaseError) {
    try found.read(table, database, authenticator) { row, _ in take(&self, row) }
  }

  /// Reads the store's own row.
  ///
  /// - Returns: whether there is one that proves.
  mutating func readStore(_ table: Table, _ database: borrowing Database, _ authenticator: borrowing Authenticator)
    throws(DatabaseError) -> Bool
  {
    let statement = database.prepare(table.selection)
    guard try statement.step() else {
      damage.append("its own row is missing")
      return false
    }
    var row = RowBytes()
    let values = statement.values(table.columns.count)
    guard authenticator.proof(ofRowIn: statement, of: table, into: &row) != nil,
      let store = values[1].uuid, let created = values[2].time, let revision = values[3].number,
      take(digests: values)
    else {
      damage.append("its own row is not authentic")
      return false
    }
    self.store = store
    self.created = created
    ledger.revision = revision
    ledger.lastEvent = values.dropFirst(6).first?.number ?? 0
    ledger.epoch = values.dropFirst(7).first?.uuid ?? .zero
    return true
  }

  private mutating func take(digests values: [Value]) -> Bool {
    guard let count = values[4].number, case .blob(let bytes) = values[5] else { return false }
    if version == Schema.version {
      guard let digests = TableDigests(bytes) else { return false }
      ledger.digests = digests
    } else {
      guard let digest = Digest(count: count, bytes: bytes) else { return false }
      total = digest
    }
    return true
  }

  /// Says that the proven rows of a table, or of all, are not those that the digest counts.
  private mutating func nameWrongRows(of table: String?, _ found: Digest, _ expected: Digest) {
    let (holder, rows) =
      table.map { ("table \($0)", "the \(found.count) rows of \($0)") } ?? ("it", "its \(found.count) rows")
    damage.append(
      found.count == expected.count
        ? "\(rows) are proven, and some are not those it should hold"
        : "\(holder) holds \(found.count) proven rows and should hold \(expected.count)")
  }

  /// Reads the data key. Where no master key opens it the items are there all the same, and not to be used.
  private mutating func readDataKey(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows,
    _ keys: StoreKeys
  ) throws(DatabaseError) {
    try read(.dataKey, database, authenticator, &found) { reading, row in
      reading.ledger.wrappedKey = WrappedKey(columns: row.values)
      return reading.ledger.wrappedKey != nil
    }
    if let wrapped = ledger.wrappedKey {
      unwrapped = keys.ring.unwrap(wrapped, of: store)
      registry.itemFault = unwrapped == nil ? keys.ring.fault(wrapped) : nil
    } else {
      registry.itemFault = "items cannot be opened: the store has no data key"
    }
  }

  /// What it takes to use items; nil where their key is missing.
  func sealing(_ keys: StoreKeys) -> ItemSealing? {
    (unwrapped?.key.sealing).map { ItemSealing(memory: keys.memory, key: $0, store: store) }
  }

  /// Apps and identifiers are put into their tables once it is known how many there are.
  private mutating func readApps(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    var apps: [(Text, App)] = []
    try read(.app, database, authenticator, &found) { _, row in
      var columns = RowReader(row)
      guard let id = columns.text() else { return false }
      columns = RowReader(row)
      guard let app = App(reading: &columns) else { return false }
      apps.append((id, app))
      return true
    }
    registry.restore(apps)
  }

  private mutating func readIdentifiers(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    var identifiers: [NumberedIdentifier] = []
    try read(.identifier, database, authenticator, &found) { _, row in
      var columns = RowReader(row)
      guard let number = columns.number(), number > identifiers.last?.number ?? 0 else { return false }
      columns = RowReader(row)
      guard let identifier = Identifier(reading: &columns) else { return false }
      identifiers.append(NumberedIdentifier(number: number, identifier: identifier))
      return true
    }
    registry.restore(identifiers)
    ledger.identifiers = identifiers.last?.number ?? 0
    ledger.inForce = ScopeNumbers(inForce: identifiers)
  }

  private mutating func readUses(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    try read(.use, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let id = columns[0].asText, let use = AppUse(columns: columns) else { return false }
      if id == AppUse.daemon {
        reading.registry.apply(.dayBegan(use, isFirst: true))
      } else {
        reading.registry.apply(.appUsed(id, use, isFirst: true))
      }
      return true
    }
  }

  private mutating func take(setting row: borrowing RowBytes) -> Bool {
    guard let settings = Settings(columns: row.values) else { return false }
    ledger.settings = settings
    if let name = settings.account { registry.apply(.accountSet(name)) }
    if let record = settings.machine { registry.apply(.machineRecorded(record)) }
    if settings.isSealed { registry.apply(.sealed) }
    return true
  }

  private mutating func take(device row: borrowing RowBytes) -> Bool {
    let columns = row.values
    guard let number = columns[0].number, number > ledger.devices.last?.number ?? 0,
      let device = ListedDevice(columns: columns)
    else { return false }
    ledger.devices.append(.init(number: number, value: device.value))
    registry.apply(.deviceListed(device))
    return true
  }
}

// MARK: - Events

extension Reading {
  /// Keeps the events that follow each other without a gap up to the last one there was.
  ///
  /// - Returns: what is missing before them, in words.
  private mutating func cutEvents() -> String? {
    ledger.lastEvent = max(ledger.lastEvent, events.last?.sequence ?? 0)
    registry.resume(after: ledger.lastEvent)
    var first = ledger.lastEvent + 1
    var place = events.count
    while place > 0, events[place - 1].sequence == first - 1 {
      place -= 1
      first -= 1
    }
    let before = place > 0 ? events[place - 1].sequence : 0
    let isBroken = place > 0 || events.isEmpty && ledger.lastEvent > 0
    if place > 0 { events.removeFirst(place) }
    ledger.firstEvent = first
    guard isBroken else { return nil }
    return before + 1 == first - 1
      ? "event \(first - 1) is missing" : "events \(before + 1) to \(first - 1) are missing"
  }
}
