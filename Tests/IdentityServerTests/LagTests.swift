import IdentityCore
import IdentityWire
import TestSupport
import Testing

@testable import IdentityServer

/// The lag line of a subscriber that does not read.
struct LagTests {
  private func events(_ sequences: ClosedRange<Int64>) -> [Reader.Line] { sequences.map { .event($0) } }

  /// The length of each waiting line in these tests.
  private let length = 1_000

  /// Appends events that the client does not read, until there is a lag.
  ///
  /// - Returns: the number of bytes that waited until then, including the output.
  private func fill(_ reader: Reader, _ log: inout EventLog) throws -> Int {
    var waiting = 0
    for _ in 0..<3_000 {
      let place = reader.subscription.position
      log.append(1, length: length)
      let line = try #require(log[after: log.last - 1])
      reader.turn(log)
      if reader.subscription.lag != nil { return waiting + reader.unsent }
      if reader.subscription.position == place { waiting += line.bytes.count }
    }
    throw Failure("no lag")
  }

  @Test func `row 28: the bound applies to waiting bytes, and waiting events precede the lag line`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    let waiting = try fill(reader, &log)
    #expect(waiting <= Bound.eventBytesPerSubscriber && waiting > Bound.eventBytesPerSubscriber - 2 * length)
    let lag = try #require(reader.subscription.lag)
    #expect(lag == Subscription.Lag(after: log.last - 1, missed: 1, last: log.last))
    reader.append(7, to: &log)
    let first = Reader.lines(in: reader.output[...])
    let told = Reader.Line.lag(sequence: lag.after + 8, missed: 8, from: lag.after)
    #expect(first + reader.readAll(log) == events(1...lag.after) + [told])
    log.append(2)
    #expect(reader.readAll(log) == events((lag.after + 9)...(lag.after + 10)))
  }

  @Test func `the lag line waits until everything before it is read`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    _ = try fill(reader, &log)
    var lines: [Reader.Line] = []
    while reader.subscription.lag != nil {
      reader.read(reader.unsent - 1)
      reader.turn(log)
      lines = Reader.lines(in: reader.added)
      if lines.isEmpty {
        #expect(reader.subscription.lag != nil)
        reader.read()
        reader.turn(log)
        lines = Reader.lines(in: reader.added)
      }
    }
    #expect(lines.count == 1)
    #expect(reader.unsent < 100)
  }

  @Test func `a lag counts only events that were meant for the peer`() throws {
    var log = EventLog(count: 0)
    let reader = Reader([.devices, .account], after: 0, log)
    reader.isVisible = { $0 == .sharing }
    _ = try fill(reader, &log)
    let lag = try #require(reader.subscription.lag)
    for number in 0..<300 {
      let audience: Audience = number.isMultiple(of: 2) ? .sharing : .app("other")
      let topic: Topic = number % 3 == 0 ? .vendor : .account
      log.append(.sample(log.last + 1, topic, audience: audience))
      reader.turn(log)
    }
    let missed = (0..<300).filter { $0 % 3 != 0 && $0 % 2 == 0 }
    let last = lag.last + 1 + Int64(try #require(missed.last))
    let told = Reader.Line.lag(sequence: last, missed: Int64(missed.count) + 1, from: lag.after)
    #expect(reader.readAll(log).last == told)
  }

  @Test func `missed events can be requested again`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    let lag = try { () -> Subscription.Lag in
      _ = try fill(reader, &log)
      reader.append(20, to: &log)
      return try #require(reader.subscription.lag)
    }()
    #expect(reader.readAll(log).last == .lag(sequence: log.last, missed: 21, from: lag.after))
    reader.subscription.add(Set(Topic.allCases), after: lag.after, now: log.last)
    #expect(reader.readAll(log) == events((lag.after + 1)...log.last))
    // The same works on another connection.
    let other = Reader(after: lag.after, log)
    #expect(other.readAll(log) == events((lag.after + 1)...log.last))
  }

  @Test func `after a lag the whole bound is available again`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    _ = try fill(reader, &log)
    _ = reader.readAll(log)
    reader.read()
    let waiting = try fill(reader, &log)
    #expect(waiting > Bound.eventBytesPerSubscriber - 2 * length)
  }

  // MARK: Bytes that count as waiting

  @Test func `a replay does not count as waiting, neither before nor after it was read`() throws {
    var log = EventLog(count: 900, length: length)
    let reader = Reader(after: 0, log)
    reader.turn(log)
    // Half of the bound waits in addition. Then the client reads the replay.
    reader.append(500, length: length, to: &log)
    while reader.subscription.position < 900 {
      reader.read()
      reader.turn(log)
    }
    let waitingNow = 500 * (try #require(log[after: 900]).bytes.count) - reader.unsent
    let more = try fill(reader, &log) - reader.unsent
    #expect(abs(waitingNow + more + reader.unsent - Bound.eventBytesPerSubscriber) < 2 * Bound.eventBytesPerTurn)
  }

  @Test func `going back turns all waiting events into a replay`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.append(1_000, length: length, to: &log)
    #expect(reader.subscription.lag == nil)
    reader.subscription.add(Set(Topic.allCases), after: 0, now: log.last)
    let waiting = try fill(reader, &log)
    #expect(waiting > Bound.eventBytesPerSubscriber - 2 * length)
  }

  @Test func `events that are skipped at the end do not count as waiting`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    reader.append(900, .account, length: length, to: &log)
    reader.subscription.remove([.account])
    #expect(reader.readAll(log).allSatisfy { $0 != .event(900) })
    reader.read()
    let waiting = try fill(reader, &log)
    #expect(waiting > Bound.eventBytesPerSubscriber - 2 * length)
  }

  // MARK: Events that the log drops

  @Test func `events dropped from the log are reported as a lag, and the rest is sent`() {
    var log = EventLog(count: 100)
    let reader = Reader(after: 10, log)
    log.append(14_000, length: 600)
    let oldest = log.oldest
    #expect(oldest > 100)
    let lines = reader.readAll(log)
    #expect(lines == [.lag(sequence: oldest, missed: oldest - 10, from: 10)] + events((oldest + 1)...log.last))
  }

  @Test func `events that the log drops during a lag are all counted`() throws {
    var log = EventLog(count: 0)
    let reader = Reader(after: 0, log)
    _ = try fill(reader, &log)
    let lag = try #require(reader.subscription.lag)
    // All waiting events are in the output, whose last byte is not read yet.
    while reader.subscription.position < lag.after {
      reader.read()
      reader.turn(log)
    }
    reader.read(reader.unsent - 1)
    reader.turn(log)
    try #require(reader.unsent == 1 && reader.subscription.lag != nil)
    // The log drops the missed events. Then the output fills up, so that events are only counted.
    reader.append(14_000, length: 600, to: &log)
    try #require(log.oldest > lag.last)
    reader.reply(Bound.eventBytesPerTurn)
    reader.append(1, to: &log)
    let last = log.last
    reader.append(3, .account, to: &log)
    var lines = reader.readAll(log)
    var accounted = lag.after
    // Delivered events and lag lines together account for every event.
    while let line = lines.first {
      lines.removeFirst()
      switch line {
      case .event(let sequence):
        #expect(sequence == accounted + 1)
        accounted = sequence
      case .lag(let sequence, let missed, let from):
        #expect(from == accounted)
        #expect(missed == sequence - from, "\(missed) of \(sequence - from)")
        accounted = sequence
      }
    }
    #expect(accounted == log.last && last < log.last)
  }

  @Test func `events of a topic that is added during a lag are counted too`() throws {
    var log = EventLog(count: 0)
    let reader = Reader([.devices], after: 0, log)
    _ = try fill(reader, &log)
    let lag = try #require(reader.subscription.lag)
    reader.append(30, .account, to: &log)
    reader.append(10, .devices, to: &log)
    reader.subscription.add([.account], after: lag.last + 20, now: log.last)
    reader.append(1, .devices, to: &log)
    var seen: [Reader.Line] = reader.readAll(log)
    seen.removeAll { if case .event(let sequence) = $0 { sequence <= lag.after } else { false } }
    // One event before, ten of each topic and one after: each is delivered or counted.
    let counted = seen.reduce(Int64(0)) { sum, line in
      switch line {
      case .event: sum + 1
      case .lag(_, let missed, _): sum + missed
      }
    }
    #expect(counted == 1 + 10 + 10 + 1)
  }
}
