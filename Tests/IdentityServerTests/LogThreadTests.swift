import IdentityCore
import LinuxSystem
import Testing

@testable import IdentityServer

struct LogThreadTests {
  /// A consumer of log entries that blocks until ``open()`` is called.
  private final class Taker: Sendable {
    private let gate: Wakeup
    private let isShut = Locked(true)
    private let texts = Locked<[String]>([])

    init() throws { gate = try Wakeup(blocking: true) }

    var taken: [String] { texts.withLock { $0 } }

    func open() {
      isShut.withLock { $0 = false }
      gate.ring()
    }

    func write(_ entry: LogEntry) -> Bool {
      if isShut.withLock({ $0 }) { gate.wait() }
      texts.withLock { $0.append(entry.text) }
      return true
    }
  }

  private func entry(_ number: Int) -> LogEntry {
    LogEntry(level: .info, text: "\(number)", messageID: "", fields: [], originator: .daemon)
  }

  @Test func `row 46: all entries are written at the end, in order`() throws {
    let taker = try Taker()
    let log = try LogThread { taker.write($0) }
    for number in 0..<1_000 { log.put(entry(number)) }
    taker.open()
    #expect(log.finish(within: 20_000))
    #expect(taker.taken == (0..<1_000).map(String.init))
  }

  @Test func `row 46: logging does not block while no entry is written`() throws {
    let taker = try Taker()
    let log = try LogThread { taker.write($0) }
    // Only a log that never waits lets this loop end.
    for number in 0..<(3 * Bound.logEntries) { log.put(entry(number)) }
    #expect(taker.taken == [])
    taker.open()
    #expect(log.finish(within: 20_000))
    let numbers = taker.taken.compactMap(Int.init)
    #expect(numbers == Array(0..<numbers.count))
    #expect(taker.taken.count == numbers.count + 1)
    #expect(
      taker.taken.last?.hasSuffix(": \(3 * Bound.logEntries - numbers.count).") == true, "\(taker.taken.suffix(1))")
  }

  @Test func `row 46: the end waits for a blocked write no longer than its limit`() throws {
    let taker = try Taker()
    let log = try LogThread { taker.write($0) }
    log.put(entry(0))
    let before = Clock.monotonicMicroseconds
    #expect(!log.finish(within: 50))
    #expect(Clock.monotonicMicroseconds - before >= 50_000)
    #expect(log.finish(within: 50), "there is nothing to wait for any more")
    taker.open()
  }

  @Test func `row 46: entries that could not be written are counted once writing works again`() throws {
    let texts = Locked<[String]>([])
    let attempts = Locked(0)
    let failed = try Wakeup(blocking: true)
    let bell = Bell(failed)
    let log = try LogThread { entry in
      let attempt = attempts.withLock { attempts in
        attempts += 1
        return attempts
      }
      if attempt <= 3 {
        if attempt == 3 { bell.wakeup.ring() }
        return false
      }
      texts.withLock { $0.append(entry.text) }
      return true
    }
    for number in 0..<3 { log.put(entry(number)) }
    bell.wakeup.wait()
    log.put(entry(3))
    #expect(log.finish(within: 20_000))
    // The timing of the threads decides how often losses are reported. The reports together must
    // cover every lost entry.
    let written = texts.withLock { $0 }
    #expect(written.contains("3"))
    let lost = written.compactMap { $0.dropLast().split(separator: " ").last.flatMap { Int($0) } }
    let kept = written.compactMap(Int.init)
    #expect(lost.reduce(0, +) == 4 - kept.count, "\(written)")
  }

  private final class Bell: Sendable {
    let wakeup: Wakeup
    init(_ wakeup: consuming Wakeup) { self.wakeup = wakeup }
  }
}
