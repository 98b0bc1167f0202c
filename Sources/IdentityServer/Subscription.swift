import IdentityCore
import IdentityWire

/// What a connection wants to be told, and how far it has been.
///
/// Nothing is queued for a subscriber: it has a place in the common ``EventLog``, and its output takes the next lines when
/// there is room. So a slow one costs no memory; what it did not get is told in a lag line.
struct Subscription: Equatable {
  /// Events that a subscriber will not get.
  struct Lag: Equatable {
    /// The last event before them: it still comes.
    var after: Int64
    /// How many they are. Where the log let go of them first, those are counted that were for others too.
    var missed: Int64
    /// The last of them.
    var last: Int64
  }

  /// For each topic, the number after which its events are wanted; `Int64.max` for none.
  private(set) var starts: [Int64]
  /// The last event that was sent or passed over.
  private(set) var place: Int64
  /// What it will not get.
  private(set) var lag: Lag?
  /// How far the events that wait were counted.
  private var counted: Int64
  /// The last event that had happened when it asked for others that had: up to here it is a replay.
  private var live: Int64
  /// The bytes of those that wait. A replay does not count: it waits in the log, and only as long as it is kept there.
  private var waiting = 0

  /// A subscription to nothing, from a number on.
  init(at place: Int64) {
    self.init(starts: [Int64](repeating: .max, count: Topic.allCases.count), place: place, lag: nil)
  }

  /// Takes over what an earlier daemon handed over.
  init(starts: [Int64], place: Int64, lag: Lag?) {
    self.starts = starts
    self.place = place
    self.lag = lag
    counted = max(lag?.last ?? place, place)
    live = place
  }

  /// Whether no topic is wanted.
  var isEmpty: Bool { starts.allSatisfy { $0 == .max } }

  /// Whether there is nothing to send.
  func isCurrent(_ log: EventLog) -> Bool { place >= log.last && lag == nil }

  /// Wants events of these topics after a number.
  ///
  /// - Parameter now: the last event that happened: the replay of those before it does not count as waiting.
  mutating func add(_ topics: Set<Topic>, after start: Int64, now: Int64) {
    if start < place {
      // Going back for these topics must not bring the others' events again.
      for index in starts.indices where starts[index] != .max { starts[index] = max(starts[index], place) }
      place = start
    }
    // What still waits of a topic that it has already is not taken away.
    for topic in topics { starts[topic.index] = min(starts[topic.index], start) }
    guard start < now else { return }
    // From its place up to now everything is a replay, also what it would not have got.
    lag = nil
    live = now
    counted = max(counted, now)
    waiting = 0
  }

  /// Wants no more events of these topics.
  mutating func remove(_ topics: Set<Topic>) {
    for topic in topics { starts[topic.index] = .max }
  }

  /// It was at another place when its daemon was killed than when it was written down.
  mutating func move(to place: Int64) {
    guard place >= 0 else { return }
    self.place = place
    counted = max(lag?.last ?? place, place)
    live = place
  }

  // MARK: Sending

  /// Whether it has all but this event, and nothing to be told besides.
  func awaitsOnly(_ line: EventLog.Line) -> Bool { lag == nil && place == line.sequence - 1 }

  /// Goes on behind the one event that it awaits.
  ///
  /// - Returns: whether it wants that.
  mutating func pass(_ line: EventLog.Line) -> Bool {
    place = line.sequence
    counted = max(counted, place)
    waiting = 0
    return wants(line)
  }

  /// Appends the next events to the output, as far as there is room for them.
  ///
  /// - Parameters:
  ///   - sent: how much of the output is sent.
  ///   - isVisible: whether the peer may see what is meant for an audience.
  mutating func fill(
    _ output: inout [UInt8], from sent: Int, _ log: EventLog, isVisible: (Audience) -> Bool
  ) {
    noticeLoss(log)
    let limit = lag?.after ?? log.last
    var left = Bound.eventsLookedAt
    while place < limit, left > 0, output.count - sent < Bound.eventsPerTurn, let line = log[after: place] {
      left -= 1
      place = line.sequence
      guard wants(line), isVisible(line.audience) else { continue }
      output += line.bytes
      if line.sequence > live { waiting = max(0, waiting - line.bytes.count) }
    }
    if lag == nil, place >= counted {
      counted = place
      waiting = 0
    }
    if let lag, place >= lag.after, output.count == sent { end(lag, &output) }
  }

  /// The client has read all that waited: it is told what it did not get, and goes on from there.
  private mutating func end(_ lag: Lag, _ output: inout [UInt8]) {
    if lag.missed > 0 { Event.appendLag(sequence: lag.last, missed: lag.missed, from: lag.after, to: &output) }
    place = counted
    waiting = 0
    self.lag = nil
  }

  /// Counts what waits for a client that does not read: beyond the bound it gets no more until it has. Where much
  /// happened the rest is counted with what happens next.
  ///
  /// - Parameter unsent: the output that waits besides, in bytes.
  mutating func count(_ unsent: Int, _ log: EventLog, isVisible: (Audience) -> Bool) {
    noticeLoss(log)
    var left = Bound.eventsLookedAt
    while left > 0, let line = log[after: counted] {
      left -= 1
      guard wants(line), isVisible(line.audience) else {
        if place == counted { place = line.sequence }
        counted = line.sequence
        continue
      }
      if lag == nil, waiting + unsent + line.bytes.count > Bound.eventsPerSubscriber {
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

  /// The log keeps only so much: what it let go of will not come.
  private mutating func noticeLoss(_ log: EventLog) {
    if let pending = lag, counted < log.oldest {
      lag = Lag(after: pending.after, missed: pending.missed + log.oldest - counted, last: log.oldest)
      counted = log.oldest
    }
    guard place < log.oldest, place < lag?.after ?? .max else { return }
    counted = max(counted, log.oldest)
    if let pending = lag {
      lag = Lag(after: place, missed: pending.missed + pending.after - place, last: pending.last)
    } else {
      lag = Lag(after: place, missed: counted - place, last: counted)
    }
  }

  private func wants(_ line: EventLog.Line) -> Bool { line.sequence > starts[line.topicIndex] }
}
