import IdentityCore
import IdentityWire
import LinuxSystem

/// Reads and verifies the events, and a part of the identifiers and items, on a thread and a connection of its own.
///
/// The other tables are read meanwhile, so a large store is read in little more than half the time.
final class ReaderThread {
  private var thread: Thread?
  private let work: Work
  /// The last rows that the caller reads. The thread reads the rows after them.
  let middle: Middle

  /// The numbers of an identifier and an item in the middle of their tables; nil for a table that the thread leaves alone.
  struct Middle {
    var hasEvents = true
    var identifier: Int64?
    var item: Int64?
  }

  /// The input of the thread, and its result.
  private final class Work: Sendable {
    let path: String
    let authenticator: Authenticator
    let cipher: ItemCipher?
    let version: Int64
    let middle: Middle
    let outcome = Locked<Result<PartReading, DatabaseError>>(.success(PartReading(version: Schema.version)))

    init(
      _ path: String, _ authenticator: consuming Authenticator, _ cipher: ItemCipher?, version: Int64,
      after middle: Middle
    ) {
      self.path = path
      self.authenticator = authenticator
      self.cipher = cipher
      self.version = version
      self.middle = middle
    }

    func run() {
      let result: Result<PartReading, DatabaseError>
      do throws(DatabaseError) {
        let database = try Database(path: path, create: false)
        try database.execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
        var part = PartReading(version: version)
        if middle.hasEvents { try part.readEvents(database, authenticator) }
        if let number = middle.identifier { try part.readIdentifiers(database, authenticator, after: number) }
        if let number = middle.item { try part.readItems(database, authenticator, cipher, after: number) }
        result = .success(part)
      } catch {
        result = .failure(error)
      }
      outcome.withLock { $0 = result }
    }
  }

  /// The size of a database in bytes from which on a thread is worth its cost.
  private static let databaseLength: Int64 = 1_048_576

  /// Starts the thread of a start.
  ///
  /// Nil if the store is small, or if there is no memory for a thread. The caller then reads everything.
  ///
  /// Both threads have the same work if an app takes 9/8 of the time of an identifier, and an event 1/2.
  ///
  /// - Parameters:
  ///   - version: the schema version of the database.
  ///   - apps: the number of apps, all of which the caller reads.
  ///   - lastEvent: the number of the last event. The thread reads all events that are kept.
  ///   - items: the number of the last item, if the start reads items.
  convenience init?(
    path: String, version: Int64, apps: Int64, lastEvent: Int64, items: Int64?, _ database: borrowing Database,
    _ authenticator: borrowing Authenticator, _ cipher: ItemCipher?
  ) throws(DatabaseError) {
    guard let pages = try database.integer("PRAGMA page_count"), let length = try database.integer("PRAGMA page_size"),
      pages * length >= Self.databaseLength
    else { return nil }
    let identifiers = try database.integer("SELECT max(n) FROM \(NumberedIdentifier.table.name)") ?? 0
    let kept = min(lastEvent, Int64(Bound.keptEvents))
    // No row is verified yet, so the number may be any.
    let middle = Middle(
      identifier: max(0, min(identifiers, identifiers / 2 + (4 * kept - 9 * apps) / 16)), item: items.map { $0 / 2 })
    self.init(path, version: version, after: middle, authenticator, cipher)
  }

  /// Starts a thread that reads the rows after these; nil if there is no memory for it.
  init?(
    _ path: String, version: Int64, after middle: Middle, _ authenticator: borrowing Authenticator,
    _ cipher: ItemCipher?
  ) {
    guard let own = authenticator.copy() else { return nil }
    self.middle = middle
    let work = Work(path, own, cipher, version: version, after: middle)
    self.work = work
    do {
      thread = try Thread(named: "reader") { work.run() }
    } catch {
      return nil
    }
  }

  deinit { if let thread = thread.take() { thread.join() } }

  /// Waits for the end of the thread and returns its result.
  func part() throws(DatabaseError) -> PartReading {
    if let thread = thread.take() { thread.join() }
    // Moved out: a second reference would cause another copy.
    let result = work.outcome.withLock { outcome in
      let result = outcome
      outcome = .success(PartReading(version: Schema.version))
      return result
    }
    return try result.get()
  }
}

/// Events, identifiers and items that were read, with the result of their verification.
struct PartReading: Sendable {
  /// The schema version of the database.
  private let version: Int64
  var rows = ProvenRows()
  /// The verified events in ascending order.
  private(set) var events: [EventLine] = []
  private(set) var eventBlocks = EventBlocks()
  /// The verified identifiers in ascending order of their numbers.
  private(set) var identifiers: [NumberedIdentifier] = []
  /// The verified items in ascending order of their numbers.
  private(set) var items: [HeldItem] = []

  init(version: Int64) { self.version = version }

  /// Reads the events.
  mutating func readEvents(_ database: borrowing Database, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    var read = (events: [EventLine](), blocks: EventBlocks())
    var reader = RowReader(version: version)
    if EventBatch.table.since > version {
      try rows.read(EarlierEvent.self, through: &reader, database, authenticator) { event, proof in
        Self.add(event.line.map { [$0] }, proof, to: &read)
      }
    } else {
      var decoder = EventDecoder()
      try rows.read(EventBatch.self, through: &reader, database, authenticator) { batch, proof in
        Self.add(decoder.lines(of: batch), proof, to: &read)
      }
    }
    (events, eventBlocks) = read
  }

  /// Adds the events of a row; returns false if they do not follow those before.
  private static func add(
    _ lines: [EventLine]?, _ proof: Proof, to read: inout (events: [EventLine], blocks: EventBlocks)
  ) -> Bool {
    guard let lines, let first = lines.first, let last = lines.last, first.sequence > read.events.last?.sequence ?? 0
    else { return false }
    read.events += lines
    read.blocks.add(proof, of: last.sequence)
    return true
  }

  /// Reads identifiers, with bounds like those of items.
  mutating func readIdentifiers(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, after number: Int64 = 0,
    upTo end: Int64? = nil
  ) throws(DatabaseError) {
    var identifiers: [NumberedIdentifier] = []
    var last = number
    var reader = RowReader(version: version)
    try rows.read(
      NumberedIdentifier.self, through: &reader, where: Self.condition(after: number, upTo: end), database,
      authenticator
    ) { identifier, _ in
      guard identifier.number > last else { return false }
      last = identifier.number
      identifiers.append(identifier)
      return true
    }
    self.identifiers = identifiers
  }

  /// Reads items. One of the two bounds at most is used.
  ///
  /// - Parameters:
  ///   - number: the number after which the items begin.
  ///   - end: the number of the last item; nil for no upper bound.
  mutating func readItems(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ cipher: ItemCipher?,
    after number: Int64 = 0, upTo end: Int64? = nil
  ) throws(DatabaseError) {
    var items: [HeldItem] = []
    var last = number
    let opener = DescriptionOpener(cipher)
    var reader = RowReader(version: version, unseal: opener.open)
    try rows.read(
      Item.self, through: &reader, where: Self.condition(after: number, upTo: end), database, authenticator
    ) { item, _ in
      guard item.number > last else { return false }
      last = item.number
      items.append(HeldItem(item))
      return true
    }
    self.items = items
  }

  private static func condition(after number: Int64, upTo end: Int64?) -> String {
    if let end { return "WHERE n <= \(end)" }
    return number > 0 ? "WHERE n > \(number)" : ""
  }

  /// Appends the part that follows this one.
  mutating func append(_ other: consuming PartReading) {
    rows.merge(other.rows)
    if events.isEmpty { events = other.events } else { events += other.events }
    eventBlocks.add(other.eventBlocks)
    identifiers += other.identifiers
    items += other.items
  }
}

/// The result of reading rows, whether they were verified or not.
struct ProvenRows: Sendable {
  /// The digests of the verified rows.
  private(set) var digests = TableDigests()
  /// The digests of the other rows: `stored` of the proofs in the rows, `computed` of proofs computed from
  /// their columns.
  private var stored = TableDigests()
  private var computed = TableDigests()
  /// The kinds of records that have rows without a valid proof.
  private(set) var incomplete: Records = []
  /// A description of each row that is not as this daemon wrote it.
  private(set) var damage: [String] = []

  /// Returns whether the verified rows of the table with an index are current: none of them is from an earlier time.
  ///
  /// The digest must match the verified rows, alone or together with the other rows. If only columns are damaged, the
  /// stored proofs of all rows match. If only proofs are damaged, the proofs computed from the columns match. If rows
  /// were only added, the verified rows match alone.
  func isCurrent(_ index: Int, by digest: Digest) -> Bool {
    [Digest(), stored[index], computed[index]].contains { others in
      var all = digests[index]
      all.add(others)
      return all == digest
    }
  }

  /// Reads and verifies the records of a type.
  ///
  /// - Parameters:
  ///   - reader: decodes the rows.
  ///   - condition: a WHERE clause; empty for all rows.
  ///   - take: takes in a record, given with its proof; returns false if this program would not write such a row.
  mutating func read<Record: StoredRecord>(
    _ type: Record.Type, through reader: inout RowReader, where condition: String = "",
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ take: (Record, Proof) -> Bool
  ) throws(DatabaseError) {
    let table = Schema.table(of: type, in: reader.version)
    let statement = database.prepare("\(table.selecting) \(condition) ORDER BY 1")
    var record = Record()
    var row = RowBytes()
    while try statement.step() {
      let proof = authenticator.proof(ofRowIn: statement, of: table, into: &row)
      if let proof {
        row.pass(to: &reader)
        // The revision follows the fields.
        if reader.read(&record, before: 1), take(record, proof) {
          digests[table.digestIndex].add(proof)
          continue
        }
        row.fetch(from: reader)
      }
      note(row, table, authenticator)
      if let proof = statement.blob(Int32(table.columns.count)).flatMap({ Proof($0) }) {
        stored[table.digestIndex].add(proof)
      }
    }
  }

  /// Notes a row that is not as this daemon wrote it.
  private mutating func note(_ row: borrowing RowBytes, _ table: Table, _ authenticator: borrowing Authenticator) {
    let label = table.name == EventBatch.table.name ? EventBatch.label(row.values) : Self.label(row.values)
    damage.append("a row of \(table.name) (\(label)) is not authentic")
    incomplete.formUnion(table.kinds)
    computed[table.digestIndex].add(authenticator.proof(of: row))
  }

  /// Adds the rows of another reading.
  mutating func merge(_ other: ProvenRows) {
    digests.add(other.digests)
    stored.add(other.stored)
    computed.add(other.computed)
    incomplete.formUnion(other.incomplete)
    damage += other.damage
  }

  /// Returns the first columns of a row for a message. Only printable ASCII of a text is shown, because it
  /// may be damaged.
  private static func label(_ columns: [Value]) -> String {
    columns.prefix(4).compactMap { value in
      switch value {
      case .text(let bytes): String(decoding: bytes.prefix(64).filter { $0 >= 0x20 && $0 < 0x7f }, as: UTF8.self)
      case .integer(let number): "\(number)"
      case .blob: "?"
      case .null: nil
      }
    }.joined(separator: " ")
  }
}
