import IdentityCore
import IdentityWire

/// The topics that a connection subscribed to, and its position in the event log.
///
/// A subscriber has no queue of its own. Its output takes the next lines of the common ``EventLog`` when there is room,
/// so a slow subscriber costs no memory. A lag line reports the events that the subscriber missed.
struct Subscription: Equatable {
  /// A gap: events that a subscriber will not get.
  struct Lag: Equatable {
    /// The last event before the gap, which is still sent.
    var after: Int64
    /// The number of missed events. If the log dropped events before they were examined, events for other peers
    /// count too.
    var missed: Int64
    /// The last missed event.
    var last: Int64
  }

  /// For each topic, the sequence number after which events are wanted; `Int64.max` for a topic that is not subscribed.
  private(set) var starts: [Int64]
  /// The last event that was sent or skipped.
  private(set) var position: Int64
  /// The gap, if any.
  private(set) var lag: Lag?
  /// The position up to which waiting events are counted.
  private var counted: Int64
  /// The last event that had happened when the client asked for past events. Events up to this one are a replay.
  private var live: Int64
  /// The size of the waiting events, in bytes.
  ///
  /// A replay does not count, because it waits in the log, and only as long as the log keeps it.
  private var waiting = 0

  init(at position: Int64) {
    self.init(starts: [Int64](repeating: .max, count: Topic.allCases.count), position: position, lag: nil)
  }

  /// Creates a subscription that an earlier daemon handed over.
  init(starts: [Int64], position: Int64, lag: Lag?) {
    self.starts = starts
    self.position = position
    self.lag = lag
    counted = max(lag?.last ?? position, position)
    live = position
  }

  /// Whether no topic is subscribed.
  var isEmpty: Bool { starts.allSatisfy { $0 == .max } }

  /// Returns whether there is nothing to send.
  func isCurrent(_ log: EventLog) -> Bool { position >= log.last && lag == nil }

  /// Adds topics, whose events are wanted after a sequence number.
  ///
  /// - Parameter now: the last event that happened. The replay of earlier events does not count as waiting.
  mutating func add(_ topics: Set<Topic>, after start: Int64, now: Int64) {
    if start < position {
      // The events of the other topics must not be sent twice when the position goes back.
      for index in starts.indices where starts[index] != .max { starts[index] = max(starts[index], position) }
      position = start
    }
    // Waiting events of a topic that is subscribed already are still sent.
    for topic in topics { starts[topic.index] = min(starts[topic.index], start) }
    guard start < now else { return }
    // Everything from the position up to now is a replay, including the events of a gap.
    lag = nil
    live = now
    counted = max(counted, now)
    waiting = 0
  }

  /// Removes topics.
  mutating func remove(_ topics: Set<Topic>) {
    for topic in topics { starts[topic.index] = .max }
  }

  /// Restores the position reached after the record was saved. Ignores a negative position.
  mutating func move(to position: Int64) {
    guard position >= 0 else { return }
    self.position = position
    counted = max(lag?.last ?? position, position)
    live = position
  }

  // MARK: Sending

  /// Returns whether this event is the only one to send, and no lag line is due.
  func awaitsOnly(_ line: EventLine) -> Bool { lag == nil && position == line.sequence - 1 }

  /// Moves past the one event that the subscription awaits.
  ///
  /// - Returns: whether the event is wanted.
  mutating func pass(_ line: EventLine) -> Bool {
    position = line.sequence
    counted = max(counted, position)
    waiting = 0
    return wants(line)
  }

  /// Appends the next events to the output, as far as there is room.
  ///
  /// - Parameters:
  ///   - sent: the number of bytes of the output that are sent.
  ///   - isVisible: returns whether the peer may see an event.
  mutating func fill(
    _ output: inout [UInt8], from sent: Int, _ log: EventLog, isVisible: (EventLine) -> Bool
  ) {
    noticeLoss(log)
    let limit = lag?.after ?? log.last
    var left = Bound.eventsLookedAt
    while position < limit, left > 0, output.count - sent < Bound.eventBytesPerTurn, let line = log[after: position] {
      left -= 1
      position = line.sequence
      guard wants(line), isVisible(line) else { continue }
      output += line.bytes
      if line.sequence > live { waiting = max(0, waiting - line.bytes.count) }
    }
    if lag == nil, position >= counted {
      counted = position
      waiting = 0
    }
    if let lag, position >= lag.after, output.count == sent { end(lag, &output) }
  }

  /// Ends the gap after the client has read everything before it: appends the lag line and moves the position past
  /// the gap.
  private mutating func end(_ lag: Lag, _ output: inout [UInt8]) {
    if lag.missed > 0 { Event.appendLag(sequence: lag.last, missed: lag.missed, from: lag.after, to: &output) }
    position = counted
    waiting = 0
    self.lag = nil
  }

  /// Counts the events that wait for a client that does not read. Beyond the bound, a gap begins.
  ///
  /// If there are many new events, the rest are counted in the next call.
  ///
  /// - Parameter unsent: the size of the pending output, in bytes, which counts as waiting too.
  mutating func count(_ unsent: Int, _ log: EventLog, isVisible: (EventLine) -> Bool) {
    noticeLoss(log)
    var left = Bound.eventsLookedAt
    while left > 0, let line = log[after: counted] {
      left -= 1
      guard wants(line), isVisible(line) else {
        if position == counted { position = line.sequence }
        counted = line.sequence
        continue
      }
      if lag == nil, waiting + unsent + line.bytes.count > Bound.eventBytesPerSubscriber {
        lag = Lag(after: counted, missed: 0, last: counted)
      }
      counted = line.sequence
      if lag == nil {
        waiting += line.bytes.count
      } else {
        lag?.missed += 1
        lag?.last = line.sequence
      }
    }
  }

  /// Begins or extends the gap by events that the log dropped before they were sent.
  private mutating func noticeLoss(_ log: EventLog) {
    if let pending = lag, counted < log.oldest {
      lag = Lag(after: pending.after, missed: pending.missed + log.oldest - counted, last: log.oldest)
      counted = log.oldest
    }
    guard position < log.oldest, position < lag?.after ?? .max else { return }
    counted = max(counted, log.oldest)
    if let pending = lag {
      lag = Lag(after: position, missed: pending.missed + pending.after - position, last: pending.last)
    } else {
      lag = Lag(after: position, missed: counted - position, last: counted)
    }
  }

  private func wants(_ line: EventLine) -> Bool { line.sequence > starts[line.topic.index] }
}
