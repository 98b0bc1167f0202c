import IdentityCore

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
  var digest = Digest()
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

  /// The columns of the store's own row.
  func storeRow(identity: UUID, created: Timestamp) -> [Value] {
    [
      .integer(1), Value(identity), Value(created), .integer(revision), .integer(digest.count),
      .blob(digest.bytes), .integer(lastEvent),
    ]
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
  /// By the place of the block among all there ever were.
  private var digests: [Int64: Digest] = [:]

  /// Counts an event in.
  mutating func add(_ proof: [UInt8], of sequence: Int64) {
    digests[sequence / Self.size, default: Digest()].add(proof)
  }

  /// Counts others in.
  mutating func add(_ other: EventBlocks) {
    for (block, digest) in other.digests { digests[block, default: Digest()].add(digest) }
  }

  /// The number with which the block of an event begins.
  static func start(of sequence: Int64) -> Int64 { sequence / size * size }

  /// Lets go of the blocks before the one that begins with a number.
  ///
  /// - Returns: the digest of each.
  mutating func remove(before start: Int64) -> [Digest] {
    let old = digests.keys.filter { $0 < start / Self.size }
    return old.compactMap { digests.removeValue(forKey: $0) }
  }
}
