import IdentityCore

/// Entries that wait to be written, in order and within bounds. What finds no room is dropped, and how many those were is
/// said where they are missing.
struct LogQueue: Sendable {
  /// What there is to write.
  enum Next {
    /// An entry, and how many are lost where it cannot be written: the entry itself, or those that it tells of.
    case entry(LogEntry, loss: Int)
    /// Nothing now.
    case nothing
    /// Nothing any more.
    case end
  }

  private struct Waiting {
    let entry: LogEntry
    /// How many were dropped between the one before and this one.
    var droppedBefore: Int
  }

  /// Newest last.
  private var incoming: [Waiting] = []
  /// Oldest last, and older than all that is in `incoming`: so that taking one moves no other.
  private var outgoing: [Waiting] = []
  /// How many entries wait.
  private(set) var count = 0
  /// Their size together.
  private(set) var bytes = 0
  /// How many were dropped since the last that found room, or could not be written.
  private var dropped = 0
  /// How many were lost since the start.
  private(set) var lost = 0
  /// What was taken out last tells of entries that are counted as lost already.
  private var tellsOfLoss = false
  /// The last one could not be written: the next attempt waits for an entry.
  private var hasFailed = false
  /// There was no room: ordinary entries are dropped until half of it is free again.
  private var isOverflowing = false
  private var isClosed = false

  /// Puts an entry in, or drops it.
  ///
  /// - Returns: whether whoever takes entries may be waiting for one.
  mutating func put(_ entry: LogEntry) -> Bool {
    let wasEmpty = count == 0
    if hasRoom(for: entry) {
      incoming.append(Waiting(entry: entry, droppedBefore: dropped))
      count += 1
      bytes += entry.size
      dropped = 0
    } else {
      dropped += 1
      lost += 1
    }
    hasFailed = false
    return wasEmpty
  }

  private mutating func hasRoom(for entry: LogEntry) -> Bool {
    let isReserveOpen = entry.level <= .warning
    let entries = Bound.logEntries - (isReserveOpen ? 0 : Bound.logReservedEntries)
    let room = Bound.logBytes - (isReserveOpen ? 0 : Bound.logReservedBytes)
    if isReserveOpen { return count < entries && bytes + entry.size <= room }
    // One by one they would find room in turns with those that do not, and every other entry would be a count.
    if isOverflowing, count > entries / 2 || bytes > room / 2 { return false }
    isOverflowing = count >= entries || bytes + entry.size > room
    return !isOverflowing
  }

  /// Takes what is to be written next out.
  mutating func take() -> Next {
    if outgoing.isEmpty {
      outgoing = incoming.reversed()
      incoming = []
    }
    guard let next = outgoing.last else {
      tellsOfLoss = true
      if dropped > 0, !hasFailed { return said(&dropped) }
      return isClosed ? .end : .nothing
    }
    tellsOfLoss = next.droppedBefore > 0
    if next.droppedBefore > 0 { return said(&outgoing[outgoing.count - 1].droppedBefore) }
    outgoing.removeLast()
    count -= 1
    bytes -= next.entry.size
    return .entry(next.entry, loss: 1)
  }

  private func said(_ dropped: inout Int) -> Next {
    defer { dropped = 0 }
    return .entry(LogEvent.entriesDropped(dropped).entry, loss: dropped)
  }

  /// What was taken is written.
  mutating func settle() { hasFailed = false }

  /// What was taken could not be written: that many are lost by it.
  mutating func settle(loss: Int) {
    dropped += loss
    if !tellsOfLoss { lost += loss }
    hasFailed = true
  }

  /// Nothing more comes.
  mutating func close() { isClosed = true }
}

extension LogEntry {
  /// What it takes in memory, about, in bytes.
  var size: Int { fields.reduce(128 + text.utf8.count) { $0 + 64 + $1.value.utf8.count } }
}
