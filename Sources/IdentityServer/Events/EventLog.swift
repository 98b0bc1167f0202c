import IdentityCore
import IdentityWire

/// The newest events as encoded lines, so that a subscriber needs no formatting and a replay no disk access.
struct EventLog {
  /// The lines, oldest first and numbered without gaps. All blocks except the last are full. Dropping a block moves no
  /// other line.
  private var blocks: [[EventLine]] = []
  /// The number of lines.
  private var count = 0
  /// The total length of the lines, in bytes.
  private var size = 0
  /// The sequence number of the last event ever, kept or not.
  private(set) var last: Int64
  /// The epoch of all sequence numbers, as text.
  private(set) var epoch: Text

  init(_ lines: [EventLine], last: Int64, epoch: UUID = .zero) {
    self.last = last
    self.epoch = Text(epoch)
    for line in lines { append(line) }
  }

  /// Begins another epoch of sequence numbers.
  mutating func begin(_ epoch: UUID) { self.epoch = Text(epoch) }

  /// The sequence number before the oldest event in the log.
  var oldest: Int64 { last - Int64(count) }

  /// Appends the next event. Drops the oldest block if more events than necessary are kept and they take too
  /// much memory.
  mutating func append(_ line: EventLine) {
    if count == blocks.count * Bound.spareEvents { blocks.append([]) }
    blocks[blocks.count - 1].append(line)
    count += 1
    size += line.bytes.count
    last = line.sequence
    guard count > Bound.keptEvents + Bound.spareEvents, size > Bound.eventLogLength else { return }
    size -= blocks.removeFirst().reduce(0) { $0 + $1.bytes.count }
    count -= Bound.spareEvents
  }

  /// The last event, if the log has it.
  var newest: EventLine? { blocks.last?.last }

  /// The first event in the log after a sequence number.
  subscript(after sequence: Int64) -> EventLine? {
    let index = Int(max(sequence - oldest, 0))
    return index < count ? blocks[index / Bound.spareEvents][index % Bound.spareEvents] : nil
  }
}
