import IdentityCore
import LinuxSystem

/// What is committed, as far as the next commit has to know it beforehand.
///
/// No row is looked for by an index: one that is damaged could hide a row, and nobody would notice.
struct Ledger: Sendable {
  /// A device of the account: the number of its row, and its identifier.
  struct Device: Equatable, Sendable {
    let number: Int64
    var value: UUID
  }

  /// The number of the transaction; a new store has 0.
  var revision: Int64 = 0
  /// Of all rows but the store's own.
  var digests = TableDigests()
  /// Tells event numbers of this store from those that it gave out before it was set back, or restored.
  var epoch = UUID.zero { didSet { epochText = Text(epoch) } }
  /// The same as it stands in the store's own row.
  private var epochText = Text(UUID.zero)
  /// What stands in the one row of `setting`.
  var settings = Settings()
  /// The data key of items; nil in a store of an earlier version.
  var wrappedKey: WrappedKey?
  /// How many identifiers there ever were, which is the number of the last one's row.
  var identifiers: Int64 = 0
  /// The number of the row of each identifier that is in force.
  var inForce = ScopeNumbers()
  /// In the order they were added.
  var devices: [Device] = []
  /// The number of the oldest event that is kept.
  var firstEvent: Int64 = 1
  /// The number of the last event; 0 before the first.
  var lastEvent: Int64 = 0
  /// Of the events that are kept.
  var eventBlocks = EventBlocks()

  /// The store's own row, with its proof, as it was written with this; nil where it was only read.
  var ownRow: RowBytes?

  /// Appends the columns of the store's own row.
  func append(to row: inout RowBytes, identity: UUID, created: Timestamp) {
    if let ownRow {
      // As they were, without being formatted again.
      row.append(valuesOf: ownRow, upTo: ownRow.end(ofColumns: Table.store.lasting))
    } else {
      row.append(1)
      row.append(identity)
      row.append(created)
    }
    row.append(revision)
    row.append(digests.count)
    digests.append(to: &row)
    row.append(lastEvent)
    row.append(epochText)
  }
}

extension UUID {
  /// Draws a random one.
  static func fresh() throws(DatabaseError) -> UUID {
    var bytes = [UInt8](repeating: 0, count: 16)
    do {
      try Entropy.fill(&bytes)
    } catch {
      // SQLITE_IOERR: the kernel refused.
      throw DatabaseError(action: "draw an epoch: \(error)", code: 10)
    }
    return UUID(
      high: RowBytes.number(at: 0, in: bytes), low: RowBytes.number(at: 8, in: bytes)
    ).stamped(version: 4)
  }
}

/// A digest for each table, so that damage to one leaves no doubt about the others.
struct TableDigests: Sendable {
  private var digests = InlineArray<12, Digest>(repeating: Digest())

  /// Of no row.
  init() {}

  /// How many bytes they are in the store's own row: of each table the number of its rows and their proof.
  private static let length = 12 * (8 + Authenticator.length)

  /// Reads them back; nil for bytes that are none.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    for place in digests.indices {
      let start = place * (8 + Authenticator.length)
      guard
        let digest = Digest(
          count: Int64(bitPattern: RowBytes.number(at: start, in: bytes)),
          bytes: Array(bytes[(start + 8)..<(start + 8 + Authenticator.length)]))
      else { return nil }
      digests[place] = digest
    }
  }

  func append(to row: inout RowBytes) {
    row.append(.blob, count: Self.length) { bytes in
      for place in digests.indices { digests[place].append(to: &bytes) }
    }
  }

  /// The digest of one of the ``Table/proven`` tables.
  subscript(_ table: Table) -> Digest {
    get { digests[table.place] }
    set { digests[table.place] = newValue }
  }

  /// Counts a row of a table in.
  mutating func add(_ proof: Proof, at place: Int) { digests[place].add(proof) }

  /// Takes a row of a table out.
  mutating func remove(_ proof: Proof, at place: Int) { digests[place].remove(proof) }

  /// Of all tables together.
  var total: Digest {
    var total = Digest()
    for place in digests.indices { total.add(digests[place]) }
    return total
  }

  /// How many rows there are in all tables.
  var count: Int64 {
    var count: Int64 = 0
    for place in digests.indices { count += digests[place].count }
    return count
  }

  /// Counts rows in that were counted elsewhere.
  mutating func add(_ other: TableDigests) {
    for place in digests.indices { digests[place].add(other.digests[place]) }
  }
}

/// What there is only one of.
struct Settings: Equatable, Sendable {
  /// The account's name.
  var account: Text?
  /// The machine under the daemon; nil before it was recorded.
  var machine: MachineRecord?
  /// The store was sealed.
  var isSealed = false
}

/// The digests of events whose numbers are neighbours: they go together, and none of them is read once more for it.
struct EventBlocks: Sendable {
  /// How many numbers a block has.
  static let size = Int64(Bound.spareEvents)
  /// By the place of the block among all there ever were; without what is counted in ``latest``.
  private var digests: [Int64: Digest] = [:]
  /// The block of the event that was counted in last, and those of it that were so one after the other. They are known
  /// by themselves: what was committed is kept during a commit, so a dictionary would be copied by each.
  private var last: Int64 = 0
  private var latest = Digest()

  /// Counts an event in.
  mutating func add(_ proof: Proof, of sequence: Int64) {
    let block = sequence / Self.size
    if block != last {
      keepLatest()
      last = block
    }
    latest.add(proof)
  }

  private mutating func keepLatest() {
    if latest.count > 0 { digests[last, default: Digest()].add(latest) }
    latest = Digest()
  }

  /// Counts others in.
  mutating func add(_ other: EventBlocks) {
    for (block, digest) in other.digests { digests[block, default: Digest()].add(digest) }
    if other.latest.count > 0 { digests[other.last, default: Digest()].add(other.latest) }
  }

  /// The number with which the block of an event begins.
  static func start(of sequence: Int64) -> Int64 { sequence / size * size }

  /// Lets go of the blocks before the one that begins with a number.
  ///
  /// - Returns: the digest of each.
  mutating func remove(before start: Int64) -> [Digest] {
    keepLatest()
    let old = digests.keys.filter { $0 < start / Self.size }
    return old.compactMap { digests.removeValue(forKey: $0) }
  }
}
