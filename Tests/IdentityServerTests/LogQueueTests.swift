import IdentityCore
import Testing

@testable import IdentityServer

/// A log queue, and the entries that would be written from it.
private final class Drained {
  var queue = LogQueue()
  var now: UInt64 = 1_000_000

  /// Returns an entry whose text begins with a number, padded to a length.
  func entry(
    _ number: Int, _ level: LogLevel = .info, length: Int = 0, by originator: Originator = .daemon
  ) -> LogEntry {
    let text = "\(number)"
    let rest = String(repeating: "x", count: max(0, length - text.utf8.count))
    return LogEntry(level: level, text: text + rest, messageID: "", fields: [], originator: originator)
  }

  /// The number of a written entry, or a count of dropped entries.
  enum Written: Equatable {
    case entry(Int)
    case dropped(Int)
  }

  /// Takes the next entry, as it would be written. Nil if there is none.
  func next() -> Written? {
    guard case .entry(let entry, let loss) = queue.take(now: now) else { return nil }
    queue.noteWritten()
    guard let count = entry.fields.first(where: { $0.name == "IDENTITYD_DROPPED" }) else {
      return Int(entry.text.prefix { $0.isNumber }).map(Written.entry)
    }
    return "\(loss)" == count.value ? .dropped(loss) : nil
  }

  func rest() -> [Written] {
    var all: [Written] = []
    while let written = next() { all.append(written) }
    return all
  }

  func put(
    _ numbers: Range<Int>, _ level: LogLevel = .info, length: Int = 0,
    by originator: (Int) -> Originator = { _ in .daemon }
  ) {
    for number in numbers { _ = queue.put(entry(number, level, length: length, by: originator(number)), now: now) }
  }

  /// Puts an entry into the queue.
  ///
  /// - Returns: whether the writing thread must be woken.
  func wakes(_ number: Int, by originator: Originator = .daemon) -> Bool {
    queue.put(entry(number, by: originator), now: now)
  }
}

struct LogQueueTests {
  private let log = Drained()
  private let ordinary = Bound.logEntries - Bound.logReservedEntries

  @Test func `row 46: entries leave the queue in the order in which they entered`() {
    log.put(0..<10)
    #expect(log.next() == .entry(0))
    #expect(log.next() == .entry(1))
    log.put(10..<20)
    #expect(log.rest() == (2..<20).map(Drained.Written.entry))
    #expect(log.queue.count == 0)
    #expect(log.queue.bytes == 0)
  }

  @Test func `the consumer is woken for the first entry and not for each`() {
    #expect(log.wakes(0))
    #expect(!log.wakes(1))
    #expect(log.rest() == [.entry(0), .entry(1)])
    #expect(log.wakes(2))
  }

  @Test func `row 46: only as many entries wait as there is room for, and the others are counted`() {
    log.put(0..<(ordinary + 7))
    #expect(log.queue.count == ordinary)
    #expect(log.rest() == (0..<ordinary).map(Drained.Written.entry) + [.dropped(7)])
    #expect(log.rest() == [])
  }

  @Test func `row 46: the bytes of waiting entries are bounded too`() {
    log.put(0..<ordinary, length: 8_000)
    #expect(log.queue.bytes <= Bound.logBytes - Bound.logReservedBytes)
    #expect(log.queue.bytes > Bound.logBytes - Bound.logReservedBytes - 9_000)
    let count = log.queue.count
    #expect(log.rest() == (0..<count).map(Drained.Written.entry) + [.dropped(ordinary - count)])
  }

  @Test func `row 46: warnings and errors have a reserve beyond other entries`() {
    log.put(0..<(ordinary + 1))
    log.put(0..<100, .warning)
    log.put(0..<(Bound.logReservedEntries - 100), .error)
    #expect(log.queue.count == Bound.logEntries)
    log.put(0..<5, .error)
    #expect(log.queue.count == Bound.logEntries)
    for number in 0..<ordinary { #expect(log.next() == .entry(number)) }
    #expect(log.next() == .dropped(1), "where it is missing")
    #expect(log.rest().count == Bound.logReservedEntries + 1)
  }

  @Test func `row 46: the reserve has bytes of its own`() {
    log.put(0..<ordinary, length: 8_000)
    let before = log.queue.count
    log.put(0..<100, .warning, length: 8_000)
    #expect(log.queue.count > before + 10)
    #expect(log.queue.bytes <= Bound.logBytes)
  }

  @Test func `row 31b: entries that users cause take a part of the room, and leave the reserve to others`() {
    for level in [LogLevel.info, .warning] {
      let log = Drained()
      // Of many users, and with a long time in between, so that no user causes too many.
      for first in [0, Bound.logBurstOfAll] {
        log.put(first..<(first + Bound.logBurstOfAll), level, by: { .principal(.user(UInt32($0 % 500))) })
        log.now += UInt64(Bound.logBurstOfAll * Bound.logPauseOfAllMilliseconds) * 1_000
      }
      #expect(log.queue.suppressed == 0)
      #expect(log.queue.count == Bound.logBurstOfAll)
      log.put(9_000..<9_010, by: { _ in .admin })
      #expect(log.rest().suffix(10) == (9_000..<9_010).map(Drained.Written.entry))
      #expect(log.queue.bytes == 0)
    }
    log.put(0..<900, length: 8_000, by: { .principal(.user(UInt32($0 % 500))) })
    #expect(log.queue.bytes <= Bound.logBytesOfPeers)
    log.put(900..<910, length: 8_000, by: { _ in .admin })
    #expect(log.rest().suffix(10) == (900..<910).map(Drained.Written.entry))
  }

  @Test func `row 31b: the consumer is woken for the first suppressed entry, and waits for the time of the report`() {
    log.put(0..<Bound.logBurst, by: { _ in .stranger })
    #expect(log.rest().count == Bound.logBurst)
    #expect(log.wakes(0, by: .stranger))
    #expect(!log.wakes(0, by: .stranger))
    let due = log.now + UInt64(Bound.logReportMilliseconds) * 1_000
    guard case .nothing(until: due) = log.queue.take(now: log.now) else { Issue.record("a wait was expected"); return }
    guard case .entry(let report, loss: 2) = log.queue.take(now: due) else {
      Issue.record("a report was expected"); return
    }
    #expect(report.fields.last?.value == "2")
    #expect(log.queue.suppressed == 2)
    guard case .nothing(until: nil) = log.queue.take(now: due) else { Issue.record("a wait was expected"); return }
  }

  @Test func `the count is placed where the entries are missing, and only once`() {
    log.put(0..<(ordinary + 3))
    for number in 0..<(ordinary / 2) { #expect(log.next() == .entry(number)) }
    log.put(9_000..<9_002)
    let expected = ((ordinary / 2)..<ordinary).map(Drained.Written.entry) + [.dropped(3), .entry(9_000), .entry(9_001)]
    #expect(log.rest() == expected)
  }

  @Test func `after a drop, entries are accepted again once half of the room is free`() {
    log.put(0..<(ordinary + 1))
    // Each entry taken out makes room for only one other.
    for number in 0..<100 {
      #expect(log.next() == .entry(number))
      log.put(9_000..<9_001)
    }
    let written = log.rest()
    #expect(written.last == .dropped(101))
    #expect(written.count == ordinary - 100 + 1)
  }

  @Test func `row 46: an entry that could not be written is counted and not retried`() {
    log.put(0..<2)
    for _ in 0..<2 {
      guard case .entry(_, loss: 1) = log.queue.take(now: log.now) else {
        Issue.record("an entry was expected"); return
      }
      log.queue.noteLost(1)
    }
    guard case .nothing = log.queue.take(now: log.now) else {
      Issue.record("the count waits for the next entry"); return
    }
    log.put(2..<3)
    // Writing the count fails too. The count must not be lost.
    guard case .entry(_, loss: 2) = log.queue.take(now: log.now) else { Issue.record("the count was expected"); return }
    log.queue.noteLost(2)
    #expect(log.rest() == [.entry(2), .dropped(2)])
    #expect(log.queue.lost == 2, "a count that cannot be written is no further loss")
  }

  @Test func `a closed queue ends after the last entry and the count`() {
    log.put(0..<(ordinary + 1))
    log.queue.close()
    #expect(log.rest().last == .dropped(1))
    #expect(log.queue.lost == 1)
    guard case .end = log.queue.take(now: log.now) else { Issue.record("the end was expected"); return }
  }
}
