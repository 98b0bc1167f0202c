import IdentityCore
import LinuxSystem

/// The committed state that the next commit needs to know beforehand.
///
/// Rows are not looked up by an index: a damaged index could hide a row, and that would not be noticed.
struct Ledger: Sendable {
  var row = StoreRow()
  /// The content of the row of `setting`.
  var settings = StoredSettings()
  /// The wrapped data key of items; nil in a store of an earlier version.
  var wrappedKey: WrappedKey?
  /// The data key as wrapped in the recovery key; nil if there is none.
  var recovery: RecoveryRecord?
  /// The number of identifiers ever stored, which is the row number of the last one.
  var identifiers: Int64 = 0
  /// The row number of each identifier in force.
  var inForce = ScopeNumbers()
  /// The row number of each device of the account.
  var devices: [UUID: Int64] = [:]
  /// The highest row number of a device.
  var lastDevice: Int64 = 0
  /// The sequence number from which on all events are kept. The batch that contains the event may begin before it.
  var firstEvent: Int64 = 1
  /// The digests of the events that are kept.
  var eventBlocks = EventBlocks()
}

/// The row of `store`, which every transaction replaces.
struct StoreRow: Sendable {
  /// The ID of the store; ``UUID/zero`` before a row was verified.
  private(set) var identity = UUID.zero
  private var created = Timestamp(milliseconds: 0)
  /// The number of the last transaction; 0 in a new store.
  var revision: Int64 = 0
  /// The digests of all tables except `store`.
  var digests = TableDigests()
  /// The sequence number of the last event; 0 before the first.
  var lastEvent: Int64 = 0
  /// Distinguishes event numbers from those given out before the store was set back to an older copy, or restored.
  private(set) var epoch = UUID.zero
  /// The epoch as it is written. Kept, because each commit writes it.
  private var epochText = Text(UUID.zero)
  /// The row with its proof, as the last commit wrote it; nil if it was only read.
  var written: RowBytes?

  init() {}

  /// The row of a new store.
  init(identity: UUID, created: Timestamp) throws(DatabaseError) {
    self.init()
    self.identity = identity
    self.created = created
    begin(try .fresh())
  }

  /// Decodes the columns; nil if this program would not write them.
  init?(_ values: [Value]) {
    self.init()
    guard let identity = values[1].uuid, let created = values[2].time, let revision = values[3].number,
      case .blob(let bytes) = values[4], let digests = TableDigests(bytes), let lastEvent = values[5].number,
      let epoch = values[6].uuid
    else { return nil }
    self.identity = identity
    self.created = created
    self.revision = revision
    self.digests = digests
    self.lastEvent = lastEvent
    begin(epoch)
  }

  /// Begins an epoch.
  mutating func begin(_ epoch: UUID) {
    self.epoch = epoch
    epochText = Text(epoch)
  }

  /// The record of the store and its revision outside the database.
  var witness: Witness { Witness(store: identity, revision: revision) }

  /// Appends the columns.
  func append(to row: inout RowBytes) {
    if let written {
      // Copied, to avoid formatting the values again.
      row.append(values: written.bytes[written.start..<written.end(ofColumns: Table.store.lasting)])
    } else {
      row.append(1)
      row.append(identity)
      row.append(created)
    }
    row.append(revision)
    digests.append(to: &row)
    row.append(lastEvent)
    row.append(.text, epochText.bytes)
  }
}

extension UUID {
  /// Draws a random version 4 UUID.
  static func fresh() throws(DatabaseError) -> UUID {
    var bytes = [UInt8](repeating: 0, count: 16)
    do {
      try Entropy.fill(&bytes)
    } catch {
      // SQLITE_IOERR: the kernel returned no random bytes.
      throw DatabaseError(action: "draw an epoch: \(error)", code: 10)
    }
    return UUID(
      high: RowColumn.number(at: 0, in: bytes), low: RowColumn.number(at: 8, in: bytes)
    ).stamped(version: 4)
  }
}

/// A digest for each table, so that damage to one table leaves the others trustworthy.
struct TableDigests: Sendable {
  private var digests = InlineArray<20, Digest>(repeating: Digest())
  /// The number of digests to encode. A store of an earlier schema version has fewer tables.
  private var count = Schema.records.count

  init() {}

  /// The encoded length of a digest in bytes: the number of rows of its table and the exclusive or of their proofs.
  private static let length = 8 + Authenticator.length

  /// Decodes digests; nil if the number of bytes is wrong.
  init?(_ bytes: [UInt8]) {
    count = bytes.count / Self.length
    guard bytes.count == count * Self.length, count <= digests.count else { return nil }
    for index in 0..<count {
      let start = index * Self.length
      guard
        let digest = Digest(
          count: Int64(bitPattern: RowColumn.number(at: start, in: bytes)),
          bytes: Array(bytes[(start + 8)..<(start + Self.length)]))
      else { return nil }
      digests[index] = digest
    }
  }

  /// Encodes the digests of all tables from now on.
  mutating func includeAllTables() { count = digests.count }

  func append(to row: inout RowBytes) {
    row.append(.blob, count: count * Self.length) { bytes in
      // Through a span, because an element of the array itself is read from a copy of the array.
      let digests = digests.span
      for index in 0..<count { digests[index].append(to: &bytes) }
    }
  }

  /// The digest of the table with an index.
  subscript(_ index: Int) -> Digest {
    get { digests[index] }
    set { digests[index] = newValue }
  }

  /// Adds a row of the table with an index.
  mutating func add(_ proof: Proof, at index: Int) { digests[index].add(proof) }

  /// Removes a row of the table with an index.
  mutating func remove(_ proof: Proof, at index: Int) { digests[index].remove(proof) }

  /// Adds the rows of other digests.
  mutating func add(_ other: TableDigests) {
    for index in digests.indices { digests[index].add(other.digests[index]) }
  }
}

/// The digests of blocks of events with consecutive numbers.
///
/// The events of a block are removed together, without being read again.
struct EventBlocks: Sendable {
  /// The number of sequence numbers in a block.
  static let size = Int64(Bound.spareEvents)
  /// The digest of each block by its number, without the events counted in `latest`. Block 0 holds the first events.
  private var digests: [Int64: Digest] = [:]
  /// The block of the event added last, and the digest of the events added to it in a row.
  ///
  /// Both are kept outside the dictionary: the committed ledger shares the dictionary during a commit, so changing the
  /// dictionary would copy it in every commit.
  private var last: Int64 = 0
  private var latest = Digest()

  /// Adds an event.
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

  /// Adds the blocks of another collection.
  mutating func add(_ other: EventBlocks) {
    for (block, digest) in other.digests { digests[block, default: Digest()].add(digest) }
    if other.latest.count > 0 { digests[other.last, default: Digest()].add(other.latest) }
  }

  /// Returns the first sequence number of the block of an event.
  static func start(of sequence: Int64) -> Int64 { sequence / size * size }

  /// Removes the blocks before the one that begins with a sequence number.
  ///
  /// - Returns: the digest of each removed block.
  mutating func remove(before start: Int64) -> [Digest] {
    keepLatest()
    let old = digests.keys.filter { $0 < start / Self.size }
    return old.compactMap { digests.removeValue(forKey: $0) }
  }
}
