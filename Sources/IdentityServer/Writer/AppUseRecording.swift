import IdentityCore
import IdentityStore

extension Writer {
  /// Records the use of apps, and uninstalls apps that were not used for the given number of days.
  ///
  /// Does nothing if the store cannot be written. The call is repeated within minutes, and no client waits for
  /// the result.
  func record(_ used: Set<Text>, forgetUnusedDays days: Int?, _ report: inout WriterReport) {
    guard isStarted, store.condition.refusal == nil else { return }
    let now = Self.now
    guard commit(registry.changes(forUsed: used, at: now), at: now, &report) else { return }
    guard let days else { return }
    let removal = registry.removalOfUnused(days: days, context(for: nil))
    let count = removal.count { if case .appUninstalled = $0 { true } else { false } }
    if count > 0, commit(removal, at: now, &report) { report.notices.append(.unusedForgotten(count, days: days)) }
  }

  /// Records that a client has read a backup to its end.
  ///
  /// Does nothing if the store cannot be written: the backup is as good as one whose time is recorded.
  ///
  /// - Parameter made: the time when the backup was made.
  func record(backup made: Timestamp, _ report: inout WriterReport) {
    guard isStarted, store.condition.refusal == nil else { return }
    _ = commit(registry.changes(forBackup: made), at: Self.now, &report)
  }

  /// Drops a batch of the ended identifiers that a scope has beyond those that are kept.
  ///
  /// - Returns: whether there may be more. False if the store cannot be written, until the next start.
  func dropSurplusHistory(_ report: inout WriterReport) -> Bool {
    guard isStarted, store.condition.refusal == nil else { return false }
    let changes = registry.surplusRemoval
    return !changes.isEmpty && commit(changes, at: Self.now, &report)
  }

  /// Commits changes that no request asked for.
  ///
  /// - Returns: whether the changes are in force.
  private func commit(_ changes: [Change], at now: Timestamp, _ report: inout WriterReport) -> Bool {
    guard !changes.isEmpty else { return true }
    let before = registry
    guard commit(record(changes, at: now), &report) != nil else { return true }
    registry = before
    return false
  }
}
