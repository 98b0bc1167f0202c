import IdentityCore
import Testing

@testable import IdentityServer

/// The shares of the log, at times that the test chooses.
private final class Charged {
  var shares = LogShares()
  /// The time of the next entry, in microseconds.
  var now: UInt64 = 1_000_000

  /// Charges entries, and returns the number of those that are written.
  func written(
    of count: Int, by originator: Originator, _ level: LogLevel = .info
  ) -> Int {
    let entry = LogEntry(level: level, text: "x", messageID: "", fields: [], originator: originator)
    return (0..<count).count { _ in shares.charge(entry, now: now) }
  }

  func wait(milliseconds: Int) { now += UInt64(milliseconds) * 1_000 }

  /// Takes the reports that are due: the fields of each.
  func reports(isLast: Bool = false) -> Set<[String]> {
    var reports: Set<[String]> = []
    while let report = shares.takeReport(now: now, isLast: isLast) { reports.insert(report.entry.fields.map(\.value)) }
    return reports
  }
}

struct LogSharesTests {
  private static let alice = Originator.principal(.user(1_001))
  private static let bob = Originator.principal(.user(1_002))
  private let log = Charged()

  @Test func `row 31b: a principal may cause a number of entries at once, and then one after each pause`() {
    #expect(log.written(of: 1_000, by: Self.alice) == Bound.logBurst)
    log.wait(milliseconds: Bound.logPauseMilliseconds - 1)
    #expect(log.written(of: 10, by: Self.alice) == 0)
    log.wait(milliseconds: 1)
    #expect(log.written(of: 10, by: Self.alice) == 1)
    log.wait(milliseconds: Bound.logPauseMilliseconds * 1_000)
    #expect(log.written(of: 1_000, by: Self.alice) == Bound.logBurst)
  }

  @Test func `row 31b: no principal takes the share of another, of an admin or of the daemon`() {
    #expect(log.written(of: 1_000, by: Self.alice) == Bound.logBurst)
    #expect(log.written(of: 10, by: Self.bob) == 10)
    #expect(log.written(of: 10, by: .stranger) == 10)
    #expect(log.written(of: 20_000, by: .admin) == 20_000)
    #expect(log.written(of: 20_000, by: .daemon) == 20_000)
    #expect(log.shares.suppressed == 1_000 - Bound.logBurst)
  }

  @Test func `row 31b: a flood of other entries hides no error of the same principal`() {
    #expect(log.written(of: 1_000, by: Self.alice) == Bound.logBurst)
    #expect(log.written(of: 1_000, by: Self.alice, .error) == Bound.logBurst)
  }

  /// The default of RateLimitBurst= in journald.conf(5), within RateLimitIntervalSec=30s.
  @Test func `row 31b: all principals together stay below the limit of the journal`() {
    var written = 0
    var reports = 0
    for _ in 0..<300 {
      for user in 0..<300 as Range<UInt32> { written += log.written(of: 5, by: .principal(.user(1_000 + user))) }
      log.wait(milliseconds: 100)
      reports += log.reports().count
    }
    reports += log.reports(isLast: true).count
    #expect(written >= Bound.logBurstOfAll && written <= Bound.logBurstOfAll + 300)
    #expect(written + reports < 10_000 / 4)
    #expect(log.written(of: 10_000 * 3 / 4, by: .admin) == 10_000 * 3 / 4)
  }

  @Test func `row 31b: each suppressed entry is counted in a report, after a moment or at the end`() {
    _ = log.written(of: Bound.logBurst + 7, by: Self.alice)
    _ = log.written(of: Bound.logBurst + 3, by: .stranger)
    _ = log.written(of: Bound.logBurst, by: Self.bob)
    #expect(log.reports() == [])
    log.wait(milliseconds: Bound.logReportMilliseconds)
    #expect(log.reports() == [["uid 1001", "7"], ["", "3"]])
    #expect(log.reports() == [])
    #expect(log.shares.reportDue == nil)
    _ = log.written(of: Bound.logBurst, by: Self.bob)
    #expect(log.reports() == [])
    #expect(log.reports(isLast: true) == [["uid 1002", "\(Bound.logBurst - 3)"]])
  }

  @Test func `row 31b: the number of accounts is bounded, and settled ones make room`() {
    // Slowly enough for the bound of all principals together.
    func fill(from first: UInt32) {
      for user in first..<(first + UInt32(Bound.logAccounts)) {
        log.wait(milliseconds: Bound.logPauseOfAllMilliseconds)
        #expect(log.written(of: 1, by: .principal(.user(user))) == 1)
      }
    }
    fill(from: 10_000)
    log.wait(milliseconds: Bound.logPauseMilliseconds)
    fill(from: 20_000)
    // Principals without room for an account share one.
    let shared = Charged()
    for user in 0..<UInt32(Bound.logAccounts) { _ = shared.written(of: 1, by: .principal(.user(user))) }
    #expect(shared.written(of: 1_000, by: .principal(.user(50_000))) == Bound.logBurst)
    #expect(shared.written(of: 1, by: .principal(.user(50_001))) == 0)
    #expect(shared.reports(isLast: true) == [["", "\(1_000 - Bound.logBurst + 1)"]])
  }
}
