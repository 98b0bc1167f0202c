import IdentityCore
import IdentityWire
import Testing

@testable import IdentityServer

struct EventLogTests {
  /// Returns the length of a line that ``EventLog/append(_:_:length:)`` appends.
  private func lineLength(_ length: Int) throws -> Int {
    var log = EventLog([] as [EventLine], last: 0)
    log.append(1, length: length)
    return try #require(log[after: 0]).bytes.count
  }

  @Test func `the log has every event from the oldest to the last, and none after`() {
    let log = EventLog((41...60).map { Event.sample($0) }, last: 60)
    #expect(log.oldest == 40 && log.last == 60)
    for sequence in Int64(40)..<60 { #expect(log[after: sequence]?.sequence == sequence + 1) }
    #expect(log[after: 60] == nil)
    #expect(log[after: 1_000_000] == nil)
  }

  @Test func `a read from before the oldest event begins with the oldest`() {
    let log = EventLog((41...60).map { Event.sample($0) }, last: 60)
    for sequence: Int64 in [0, 1, 39] { #expect(log[after: sequence]?.sequence == 41) }
  }

  @Test func `a log without events continues at the sequence number reached`() {
    var log = EventLog([] as [EventLine], last: 1_000)
    #expect(log.oldest == 1_000 && log.last == 1_000)
    #expect(log[after: 0] == nil)
    log.append(1)
    #expect(log.oldest == 1_000 && log.last == 1_001)
    #expect(log[after: 0]?.sequence == 1_001)
  }

  @Test func `a line has the bytes that are sent and the audience that gets it`() throws {
    var log = EventLog([] as [EventLine], last: 6)
    log.append(
      Event(
        sequence: 7, time: Timestamp(milliseconds: 0), topic: .account, name: "changed",
        attributes: [.init("value", "alice and bob")], audience: .vendor("org.example")))
    let line = try #require(log[after: 6])
    let text = "EVENT 7 account changed value=\"alice and bob\" time=1970-01-01T00:00:00.000Z\n"
    #expect(String(decoding: line.bytes, as: UTF8.self) == text)
    #expect(line.topic == .account && line.audience == .vendor("org.example"))
  }

  @Test func `short events are kept until their bytes reach the bound`() throws {
    let count = Bound.eventLogLength / (try lineLength(0) + 8)
    // Otherwise the test proves nothing.
    try #require(count > Bound.keptEvents + Bound.spareEvents)
    let log = EventLog(count: count)
    #expect(log.oldest == 0)
  }

  @Test func `beyond both bounds the oldest events are dropped, and the minimum is kept`() throws {
    var log = EventLog([] as [EventLine], last: 0)
    // The lengths of the lines in the log.
    var lengths: [Int] = []
    var size = 0
    var losses = 0
    for sequence in Int64(1)...14_000 {
      let oldest = log.oldest
      log.append(1, length: 600)
      lengths.append(try #require(log[after: sequence - 1]).bytes.count)
      size += lengths.last ?? 0
      if log.oldest > oldest {
        losses += 1
        #expect(size > Bound.eventLogLength)
        let gone = Int(log.oldest - oldest)
        size -= lengths.prefix(gone).reduce(0, +)
        lengths.removeFirst(gone)
        #expect(log[after: 0]?.sequence == log.oldest + 1)
      }
      #expect(log.last - log.oldest == lengths.count)
      #expect(lengths.count >= min(Int(sequence), Bound.keptEvents))
      #expect(lengths.count <= Bound.keptEvents + Bound.spareEvents || size <= Bound.eventLogLength)
    }
    #expect(losses > 1)
  }

  @Test func `long events are dropped only beyond the minimum number to be kept`() {
    // The events have twice as many bytes as the bound, but all of them must be kept.
    var log = EventLog(count: Bound.keptEvents, length: 900)
    #expect(log.oldest == 0)
    log.append(Bound.spareEvents, length: 900)
    #expect(log.oldest == 0)
    log.append(1, length: 900)
    #expect(log.oldest == Int64(Bound.spareEvents))
    #expect(log[after: log.oldest]?.sequence == log.oldest + 1)
    #expect(log[after: log.last - 1]?.sequence == log.last)
  }

  @Test func `events loaded at the start are bounded like new ones`() {
    let count = Bound.keptEvents + 3 * Bound.spareEvents
    let events = (1...Int64(count)).map { Event.sample($0, length: 900) }
    let log = EventLog(events, last: Int64(count))
    #expect(log.last == Int64(count))
    #expect(log.last - log.oldest >= Int64(Bound.keptEvents))
    #expect(log.last - log.oldest <= Int64(Bound.keptEvents + Bound.spareEvents))
  }
}
