import IdentityCore

/// Entries that wait to be written, in order and within bounds.
///
/// An entry without room is dropped. An entry in its place tells how many were dropped.
struct LogQueue: Sendable {
  /// The next thing to do for the log thread.
  enum Next {
    /// Write an entry. `loss` is the number of entries lost if the write fails: the entry itself, or the entries that
    /// it reports as dropped.
    case entry(LogEntry, loss: Int)
    /// Wait for an entry, or until a time, if there is one.
    case nothing(until: UInt64?)
    /// End: the queue is closed and empty.
    case end
  }

  private struct Waiting {
    let entry: LogEntry
    /// The number of entries dropped between the previous entry and this one.
    var droppedBefore: Int
  }

  /// The newer entries, newest last.
  private var incoming: [Waiting] = []
  /// The older entries, oldest last, so that removing one moves no other. All of them are older than those
  /// in `incoming`.
  private var outgoing: [Waiting] = []
  /// The number of waiting entries.
  private(set) var count = 0
  /// The total size of the waiting entries, in bytes.
  private(set) var bytes = 0
  /// The number of entries that were dropped, or failed to be written, since the last accepted entry.
  private var dropped = 0
  /// The number of entries lost since the start.
  private(set) var lost = 0
  /// Whether the entry taken last reports losses, which ``lost`` counts already.
  private var tellsOfLoss = false
  /// Whether the last write failed. The next report of losses then waits for another entry.
  private var hasFailed = false
  /// Whether room has run out. Entries below the level of a warning are dropped until half of the room is free again.
  private var isOverflowing = false
  private var isClosed = false
  private var shares = LogShares()
  /// The number of waiting entries that peers without admin rights caused.
  private var countOfPeers = 0
  /// The total size of these entries, in bytes.
  private var bytesOfPeers = 0
  /// The number of entries suppressed since the start; see ``LogShares``.
  var suppressed: Int { shares.suppressed }

  /// Adds an entry, or drops or suppresses it.
  ///
  /// - Returns: whether the log thread may be waiting, and has something to do or another time to wait for.
  mutating func put(_ entry: LogEntry, now: UInt64) -> Bool {
    let wasEmpty = count == 0
    let reportDue = shares.reportDue
    guard shares.charge(entry, now: now) else { return shares.reportDue != reportDue }
    if hasRoom(for: entry) {
      incoming.append(Waiting(entry: entry, droppedBefore: dropped))
      count += 1
      bytes += entry.size
      if entry.isOfPeer {
        countOfPeers += 1
        bytesOfPeers += entry.size
      }
      dropped = 0
    } else {
      dropped += 1
      lost += 1
    }
    hasFailed = false
    return wasEmpty
  }

  private mutating func hasRoom(for entry: LogEntry) -> Bool {
    // Not more than a part of the room, so that these entries displace none about the daemon or about admins.
    if entry.isOfPeer, countOfPeers >= Bound.logBurstOfAll || bytesOfPeers + entry.size > Bound.logBytesOfPeers {
      return false
    }
    let isReserveOpen = entry.level <= .warning && !entry.isOfPeer
    let entries = Bound.logEntries - (isReserveOpen ? 0 : Bound.logReservedEntries)
    let room = Bound.logBytes - (isReserveOpen ? 0 : Bound.logReservedBytes)
    if isReserveOpen { return count < entries && bytes + entry.size <= room }
    // Hysteresis: without it, accepted and dropped entries would alternate, and every other entry would be a report
    // of losses.
    if isOverflowing, count > entries / 2 || bytes > room / 2 { return false }
    isOverflowing = count >= entries || bytes + entry.size > room
    return !isOverflowing
  }

  /// Removes and returns the next entry to write.
  mutating func take(now: UInt64) -> Next {
    if let report = shares.takeReport(now: now, isLast: isClosed) {
      tellsOfLoss = true
      return .entry(report.entry, loss: report.count)
    }
    if outgoing.isEmpty {
      outgoing = incoming.reversed()
      incoming = []
    }
    guard let next = outgoing.last else {
      tellsOfLoss = true
      if dropped > 0, !hasFailed { return said(&dropped) }
      return isClosed ? .end : .nothing(until: shares.reportDue)
    }
    tellsOfLoss = next.droppedBefore > 0
    if next.droppedBefore > 0 { return said(&outgoing[outgoing.count - 1].droppedBefore) }
    outgoing.removeLast()
    count -= 1
    bytes -= next.entry.size
    if next.entry.isOfPeer {
      countOfPeers -= 1
      bytesOfPeers -= next.entry.size
    }
    return .entry(next.entry, loss: 1)
  }

  private func said(_ dropped: inout Int) -> Next {
    defer { dropped = 0 }
    return .entry(LogEvent.entriesDropped(dropped).entry, loss: dropped)
  }

  /// Notes that the entry taken last is written.
  mutating func noteWritten() { hasFailed = false }

  /// Notes that the entry taken last could not be written.
  ///
  /// - Parameter loss: the number of entries lost by the failure.
  mutating func noteLost(_ loss: Int) {
    dropped += loss
    if !tellsOfLoss { lost += loss }
    hasFailed = true
  }

  /// Closes the queue: no further entry is added.
  mutating func close() { isClosed = true }
}

extension LogEntry {
  /// The approximate size in memory, in bytes.
  var size: Int { fields.reduce(128 + text.utf8.count) { $0 + 64 + $1.value.utf8.count } }

  /// Whether a peer without admin rights caused the entry.
  var isOfPeer: Bool {
    switch originator {
    case .daemon, .admin: false
    case .principal, .stranger: true
    }
  }
}
