/// The message of the fleet about a device: its record, or its tombstone, which outlasts the device.
///
/// The fleet's service has verified the message. The daemon keeps it for the service, and sees no more of it than a broker
/// does: the number of its epoch.
package struct FleetRecord: OrderedElement, Equatable {
  /// The comparison of a message with the known one about the same device.
  package enum Outcome: Sendable {
    /// The message holds from now on.
    case higher
    /// The message is the known one.
    case same
    /// The known message holds.
    case lower
  }

  /// The device that the message is about.
  package internal(set) var device: UUID
  /// The number of times that the device has joined the account.
  package internal(set) var generation: UInt32
  /// The counter of the author.
  package internal(set) var counter: UInt64
  /// Whether the message is a tombstone.
  package internal(set) var isGone: Bool
  /// Whether another machine may speak for the device, because one is a copy of the other.
  package internal(set) var isSuspect: Bool
  /// The message in Base64 with padding. Equal messages have equal texts.
  package internal(set) var message: Text

  package var key: UUID { device }

  package init(
    device: UUID, generation: UInt32, counter: UInt64, isGone: Bool, isSuspect: Bool = false, message: Text
  ) {
    self.device = device
    self.generation = generation
    self.counter = counter
    self.isGone = isGone
    self.isSuspect = isSuspect
    self.message = message
  }

  /// Whether a text is a message in the only form that is stored: Base64 (RFC 4648, section 4) with padding, whose unused
  /// bits are zero, of at most ``Bound/messageLength`` bytes.
  package static func isMessage(_ text: Text) -> Bool {
    let bytes = text.bytes
    guard !bytes.isEmpty, bytes.count % 4 == 0, length(of: text) <= Bound.messageLength else { return false }
    let padding = padding(of: text)
    var last: UInt8 = 0
    for byte in bytes.dropLast(padding) {
      guard let number = number(of: byte) else { return false }
      last = number
    }
    return last & (1 << UInt8(2 * padding) - 1) == 0
  }

  /// The number that a letter of Base64 stands for; nil for another byte.
  private static func number(of letter: UInt8) -> UInt8? {
    switch letter {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): letter - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): letter - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): letter - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }

  /// The number of the epoch whose key seals the message: bytes 4 to 7, after `69 46`, the version and the kind. All
  /// versions have these eight bytes, so a later service can be ranked by an earlier daemon. 0 for any other message.
  private var epoch: UInt32 {
    let letters = message.bytes.prefix(12)
    guard letters.count == 12, letters.starts(with: "aUY".utf8) else { return 0 }
    // The last eight letters are bytes 3 to 8.
    let bytes = letters.suffix(8).reduce(0 as UInt64) { $0 << 6 | UInt64(Self.number(of: $1) ?? 0) }
    return UInt32(truncatingIfNeeded: bytes >> 8)
  }

  private var rank: FleetRank {
    FleetRank(epoch: epoch, generation: generation, isRemoval: isGone, counter: counter)
  }

  /// Returns the number of bytes that a text in Base64 stands for.
  package static func length(of text: Text) -> Int { text.bytes.count / 4 * 3 - padding(of: text) }

  private static func padding(of text: Text) -> Int { text.bytes.suffix(2).count { $0 == UInt8(ascii: "=") } }

  /// Compares by rank, then by the SHA-256 of the messages.
  ///
  /// - Parameters:
  ///   - known: the known message about the device; nil if there is none.
  ///   - digest: returns the SHA-256 of a message.
  /// - Returns: nil if only the SHA-256 tells, and `digest` is nil.
  func compare(with known: FleetRecord?, _ digest: ((Text) -> Text)?) -> Outcome? {
    guard let known else { return .higher }
    let (rank, knownRank) = (rank, known.rank)
    if rank != knownRank { return rank > knownRank ? .higher : .lower }
    if message == known.message { return .same }
    return digest.map { $0(known.message) < $0(message) ? .higher : .lower }
  }
}

/// The messages of the fleet, one for each device, found by the identifiers of the devices.
package struct FleetRecords: Equatable, Sendable {
  /// The messages in the order of the devices' identifiers.
  private(set) var table = OrderedTable<FleetRecord>()
  /// The number of tombstones.
  package private(set) var tombstones = 0

  init() {}

  /// The number of records and tombstones.
  package var count: Int { table.count }

  /// The message about a device; nil if there is none.
  package subscript(device: UUID) -> FleetRecord? { table[device] }

  /// All messages, in the order of the devices' identifiers.
  package var all: some Sequence<FleetRecord> { table.lazy.map(\.self) }

  /// Returns whether there is room for a message about a device of which none is known.
  ///
  /// The tombstone of a known device makes room for another device, so all messages together have a bound, too. The
  /// fleet's service has the same bounds, so both agree on each message.
  func hasRoom(forTombstone isGone: Bool) -> Bool {
    (isGone ? tombstones : count - tombstones) < Bound.devices && count < 2 * Bound.devices
  }

  /// Stores a message in place of the known one about the device.
  mutating func store(_ record: FleetRecord) {
    if table.store(record)?.isGone == true { tombstones -= 1 }
    if record.isGone { tombstones += 1 }
  }

  /// Removes the message about a device.
  mutating func remove(_ device: UUID) {
    if table.remove(device)?.isGone == true { tombstones -= 1 }
  }
}
