import IdentityCore
import IdentityWire

/// The newest events as encoded lines, so that a subscriber needs no formatting and a replay no disk access.
struct EventLog {
  /// An encoded event.
  struct Line {
    let sequence: Int64
    /// The index of the topic; see ``Topic/index``.
    let topicIndex: Int
    let audience: Audience
    let bytes: [UInt8]
  }

  /// The lines, oldest first and numbered without gaps. All blocks except the last are full. Dropping a block moves no
  /// other line.
  private var blocks: [[Line]] = []
  /// The number of lines.
  private var count = 0
  /// The total length of the lines, in bytes.
  private var size = 0
  /// The sequence number of the last event ever, kept or not.
  private(set) var last: Int64
  /// The time of the newest event in the log; nil if there is none.
  private(set) var lastTime: Timestamp?
  /// The epoch of all sequence numbers, as text.
  private(set) var epoch: Text

  /// Creates a log of stored events.
  init(_ events: [Event], last: Int64, epoch: UUID = .zero) {
    self.last = last
    self.epoch = Text(epoch)
    for event in events { append(event) }
  }

  /// Begins another epoch of sequence numbers.
  mutating func begin(_ epoch: UUID) { self.epoch = Text(epoch) }

  /// The sequence number before the oldest event in the log.
  var oldest: Int64 { last - Int64(count) }

  /// Appends the next event. Drops the oldest block if more events than necessary are kept and they take too
  /// much memory.
  mutating func append(_ event: Event) {
    var bytes: [UInt8] = []
    event.append(to: &bytes)
    if count == blocks.count * Bound.spareEvents { blocks.append([]) }
    blocks[blocks.count - 1].append(
      Line(sequence: event.sequence, topicIndex: event.topic.index, audience: event.audience, bytes: bytes))
    count += 1
    size += bytes.count
    last = event.sequence
    lastTime = event.time
    guard count > Bound.keptEvents + Bound.spareEvents, size > Bound.eventLogLength else { return }
    size -= blocks.removeFirst().reduce(0) { $0 + $1.bytes.count }
    count -= Bound.spareEvents
  }

  /// The last event, if the log has it.
  var newest: Line? { blocks.last?.last }

  /// The first event in the log after a sequence number.
  subscript(after sequence: Int64) -> Line? {
    let place = Int(max(sequence - oldest, 0))
    return place < count ? blocks[place / Bound.spareEvents][place % Bound.spareEvents] : nil
  }
}
