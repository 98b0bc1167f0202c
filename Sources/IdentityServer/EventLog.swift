import IdentityCore
import IdentityWire

/// The newest events as the lines that are sent, so that a subscriber costs no formatting and a replay no disk.
struct EventLog {
  /// One event.
  struct Line {
    let sequence: Int64
    /// The place of its topic among all topics.
    let topicIndex: Int
    let audience: Audience
    let bytes: [UInt8]
  }

  /// Oldest first, numbered without a gap, in blocks that are all full but the last: one goes without the others being
  /// moved.
  private var blocks: [[Line]] = []
  /// How many lines there are.
  private var count = 0
  /// The length of all of them.
  private var size = 0
  /// The number of the last event that ever happened.
  private(set) var last: Int64
  /// The epoch of all sequence numbers, as text.
  private(set) var epoch: Text

  /// Takes in the events that were kept.
  init(_ events: [Event], last: Int64, epoch: UUID = .zero) {
    self.last = last
    self.epoch = Text(epoch)
    for event in events { append(event) }
  }

  /// Numbers are of another epoch from now on.
  mutating func begin(_ epoch: UUID) { self.epoch = Text(epoch) }

  /// The number before that of the oldest event that is kept.
  var oldest: Int64 { last - Int64(count) }

  /// Takes in the next event, and lets the oldest go where there are more than have to be kept, and too much of them.
  mutating func append(_ event: Event) {
    var bytes: [UInt8] = []
    event.append(to: &bytes)
    if count == blocks.count * Bound.spareEvents { blocks.append([]) }
    blocks[blocks.count - 1].append(
      Line(sequence: event.sequence, topicIndex: event.topic.index, audience: event.audience, bytes: bytes))
    count += 1
    size += bytes.count
    last = event.sequence
    guard count > Bound.keptEvents + Bound.spareEvents, size > Bound.eventLogLength else { return }
    size -= blocks.removeFirst().reduce(0) { $0 + $1.bytes.count }
    count -= Bound.spareEvents
  }

  /// The last event that ever happened, where it is kept.
  var newest: Line? { blocks.last?.last }

  /// The first event that is kept after this number.
  subscript(after sequence: Int64) -> Line? {
    let place = Int(max(sequence - oldest, 0))
    return place < count ? blocks[place / Bound.spareEvents][place % Bound.spareEvents] : nil
  }
}
