import IdentityCore

/// The shares of the log: bounds how many entries each peer without admin rights may cause.
///
/// Each principal may cause a number of entries at once, and then one after each pause. All principals together have
/// bounds of the same kind, so that the journal never suppresses entries about the daemon and about admins, which are
/// not bounded here. Suppressed entries are counted, and a report tells the count.
struct LogShares: Sendable {
  /// An allowance of entries: some at once, and then one after each pause (the generic cell rate algorithm).
  private struct Allowance {
    /// The time at which the whole allowance is there again, in microseconds of the monotonic clock.
    private(set) var wholeAgain: UInt64 = 0

    func isSpent(burst: Int, pause: UInt64, now: UInt64) -> Bool { wholeAgain > now + UInt64(burst - 1) * pause }

    mutating func spend(pause: UInt64, now: UInt64) { wholeAgain = max(wholeAgain, now) + pause }
  }

  /// The holder of an account. Errors have an account of their own, so that a flood of other entries hides none.
  private struct Holder: Hashable {
    /// Nil for all peers without an account of their own.
    var principal: Principal?
    let isError: Bool
  }

  private struct Account {
    var allowance = Allowance()
    /// The number of entries that were suppressed since the last report.
    var suppressed = 0
  }

  private static let pause = UInt64(Bound.logPauseMilliseconds) * 1_000
  private static let pauseOfAll = UInt64(Bound.logPauseOfAllMilliseconds) * 1_000

  private var accounts: [Holder: Account] = [:]
  private var allowanceOfAll = Allowance()
  /// The number of entries suppressed since the start.
  private(set) var suppressed = 0
  /// The time at which suppressed entries are to be reported; nil if there are none.
  private(set) var reportDue: UInt64?

  /// Charges an entry to the party that caused it.
  ///
  /// - Returns: false if the entry is to be suppressed.
  mutating func charge(_ entry: LogEntry, now: UInt64) -> Bool {
    guard let holder = holder(of: entry, now: now) else { return true }
    var account = accounts[holder] ?? Account()
    defer { accounts[holder] = account }
    guard !account.allowance.isSpent(burst: Bound.logBurst, pause: Self.pause, now: now),
      !allowanceOfAll.isSpent(burst: Bound.logBurstOfAll, pause: Self.pauseOfAll, now: now)
    else {
      account.suppressed += 1
      suppressed += 1
      if reportDue == nil { reportDue = now + UInt64(Bound.logReportMilliseconds) * 1_000 }
      return false
    }
    account.allowance.spend(pause: Self.pause, now: now)
    allowanceOfAll.spend(pause: Self.pauseOfAll, now: now)
    return true
  }

  /// Returns the holder of the account that an entry is charged to; nil if entries of the originator are not bounded.
  private mutating func holder(of entry: LogEntry, now: UInt64) -> Holder? {
    guard entry.isOfPeer else { return nil }
    var holder = Holder(isError: entry.level == .error)
    if case .principal(let principal) = entry.originator { holder.principal = principal }
    guard accounts[holder] == nil, accounts.count >= Bound.logAccounts else { return holder }
    accounts = accounts.filter { $0.value.suppressed > 0 || $0.value.allowance.wholeAgain > now }
    return accounts.count < Bound.logAccounts ? holder : Holder(isError: holder.isError)
  }

  /// Returns the next report of suppressed entries, with their number, once the reports are due.
  ///
  /// - Parameter isLast: whether all reports are due.
  mutating func takeReport(now: UInt64, isLast: Bool) -> (entry: LogEntry, count: Int)? {
    guard let reportDue, isLast || reportDue <= now else { return nil }
    guard let (holder, account) = accounts.first(where: { $0.value.suppressed > 0 }) else {
      self.reportDue = nil
      return nil
    }
    accounts[holder]?.suppressed = 0
    return (LogEvent.entriesSuppressed(holder.principal, account.suppressed).entry, account.suppressed)
  }
}
