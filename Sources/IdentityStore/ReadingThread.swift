import IdentityCore
import LinuxSystem

/// Reads and proves the events and some of the items on a thread and a connection of its own, while the others are read:
/// a large store is there in little more than half the time.
final class ReadingThread {
  private var thread: Thread?
  private let work: Work
  /// It reads the items behind this number.
  let lastBefore: Int64

  /// What it reads with, and what came of it.
  private final class Work: Sendable {
    let path: String
    let authenticator: Authenticator
    let sealing: ItemSealing?
    let lastBefore: Int64
    let outcome = Locked<Result<PartReading, DatabaseError>>(.success(PartReading()))

    init(_ path: String, _ authenticator: consuming Authenticator, _ sealing: ItemSealing?, after number: Int64) {
      self.path = path
      self.authenticator = authenticator
      self.sealing = sealing
      lastBefore = number
    }

    func run() {
      let result: Result<PartReading, DatabaseError>
      do throws(DatabaseError) {
        let database = try Database(path: path, create: false)
        try database.execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
        var part = PartReading()
        try part.readEvents(database, authenticator)
        try part.readItems(database, authenticator, sealing, after: lastBefore)
        result = .success(part)
      } catch {
        result = .failure(error)
      }
      outcome.withLock { $0 = result }
    }
  }

  /// Pages of a database from which on it is worth a thread.
  private static let pages: Int64 = 256

  /// Starts it; nil for a small store, and where there is no memory for it: then all is read on one thread.
  init?(
    path: String, _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ sealing: ItemSealing?
  ) throws(DatabaseError) {
    guard try database.integer("PRAGMA page_count") ?? 0 >= Self.pages, let own = authenticator.copy() else {
      return nil
    }
    lastBefore = (try database.integer("SELECT max(n) FROM \(Table.item.name)") ?? 0) / 2
    let work = Work(path, own, sealing, after: lastBefore)
    self.work = work
    do {
      thread = try Thread(named: "reader") { work.run() }
    } catch {
      return nil
    }
  }

  deinit { if let thread = thread.take() { thread.join() } }

  /// Waits for its end.
  func part() throws(DatabaseError) -> PartReading {
    if let thread = thread.take() { thread.join() }
    // Taken out: what two hold is copied once more.
    let result = work.outcome.withLock { outcome in
      let result = outcome
      outcome = .success(PartReading())
      return result
    }
    return try result.get()
  }
}

/// Events and items that were read and proven.
struct PartReading: Sendable {
  var rows = ProvenRows()
  /// In the order of their numbers.
  private(set) var events: [Event] = []
  private(set) var eventBlocks = EventBlocks()
  /// In the order of their numbers.
  private(set) var items: [Item] = []

  mutating func readEvents(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    var events: [Event] = []
    var blocks = EventBlocks()
    try rows.read(.event, database, authenticator) { row, proof in
      var columns = RowReader(row)
      guard let event = Event(reading: &columns), event.sequence > events.last?.sequence ?? 0 else { return false }
      events.append(event)
      blocks.add(proof, of: event.sequence)
      return true
    }
    self.events = events
    eventBlocks = blocks
  }

  /// - Parameter number: only the items behind it are read.
  mutating func readItems(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ sealing: ItemSealing?,
    after number: Int64 = 0, upTo end: Int64? = nil
  ) throws(DatabaseError) {
    var items: [Item] = []
    var last = number
    var reading = ItemReading(sealing)
    var condition = number > 0 ? "WHERE n > \(number)" : ""
    if let end { condition = "WHERE n <= \(end)" }
    try rows.read(.item, where: condition, database, authenticator) { row, _ in
      guard let item = reading.item(in: row), item.number > last else { return false }
      last = item.number
      items.append(item)
      return true
    }
    self.items = items
  }

  /// Takes another part in, which is behind this one.
  mutating func append(_ other: consuming PartReading) {
    rows.take(other.rows)
    if events.isEmpty { events = other.events } else { events += other.events }
    eventBlocks.add(other.eventBlocks)
    items += other.items
  }
}

/// Rows that were read, whether they prove or not.
struct ProvenRows: Sendable {
  /// Of those that do.
  private(set) var digests = TableDigests()
  /// Of those that do not: by the proofs that stand in them, and by those that their columns make.
  private var stored = TableDigests()
  private var computed = TableDigests()
  /// Where there are rows that do not.
  private(set) var incomplete: Records = []
  /// What is not as this daemon wrote it.
  private(set) var damage: [String] = []

  /// Whether the proven rows of a table are those that it should have, and none is of an earlier time.
  ///
  /// Where only columns are damaged, the proofs that stand in all rows are still those that the digest counts. Where only
  /// proofs are, the columns make them. Where rows were only added, those that prove are enough.
  func isCurrent(_ table: Table, by digest: Digest) -> Bool {
    Self.isCurrent(digests[table], stored[table], computed[table], digest)
  }

  /// The same of all tables together.
  func isCurrent(by total: Digest) -> Bool { Self.isCurrent(digests.total, stored.total, computed.total, total) }

  private static func isCurrent(_ proven: Digest, _ stored: Digest, _ computed: Digest, _ digest: Digest) -> Bool {
    [Digest(), stored, computed].contains { others in
      var all = proven
      all.add(others)
      return all == digest
    }
  }

  /// Reads a table row by row.
  ///
  /// - Parameters:
  ///   - condition: which rows; all where it is empty.
  ///   - take: takes a proven row in, and its proof; false where it is none that this program writes.
  mutating func read(
    _ table: Table, where condition: String = "", _ database: borrowing Database,
    _ authenticator: borrowing Authenticator, _ take: (borrowing RowBytes, Proof) -> Bool
  ) throws(DatabaseError) {
    let statement = database.prepare("\(table.selecting) \(condition) ORDER BY 1")
    var row = RowBytes()
    while try statement.step() {
      guard let proof = authenticator.proof(ofRowIn: statement, of: table, into: &row), take(row, proof) else {
        damage.append("a row of \(table.name) (\(Self.label(row.values))) is not authentic")
        incomplete.formUnion(table.records)
        computed[table].add(authenticator.proof(of: row))
        if let proof = statement.blob(Int32(table.columns.count)).flatMap({ Proof($0) }) { stored[table].add(proof) }
        continue
      }
      digests[table].add(proof)
    }
  }

  /// Takes others in.
  mutating func take(_ other: ProvenRows) {
    digests.add(other.digests)
    stored.add(other.stored)
    computed.add(other.computed)
    incomplete.formUnion(other.incomplete)
    damage += other.damage
  }

  /// The first columns of a row, for a message; a damaged text is shown as far as it is text.
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
