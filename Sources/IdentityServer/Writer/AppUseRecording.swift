import IdentityCore
import IdentityStore

/// The removal of unused and suspended apps, in several steps between which the writer serves others.
struct UnusedRemoval {
  /// The days after which an app is uninstalled.
  let policy: ForgetPolicy
  /// The last app that was examined; nil before the first step.
  var last: Text?
  /// The number of apps uninstalled so far.
  var count = 0
}

extension Writer {
  /// Records the use of apps.
  ///
  /// Does nothing if the store cannot be written. The call is repeated within minutes, and no client waits for
  /// the result.
  ///
  /// - Returns: whether the use is recorded.
  func record(_ used: Set<Text>, _ report: inout WriterReport) -> Bool {
    guard startup.isServing, store.condition.refusal == nil else { return false }
    let now = Self.now
    return commit(registry.changes(forUsed: used, at: now), at: now, &report) == nil
  }

  /// Uninstalls some of the apps that were unused or suspended for too long.
  ///
  /// - Returns: the removal of the others; nil after the last step, or if the store cannot be written.
  func forgetUnused(_ removal: UnusedRemoval, _ report: inout WriterReport) -> UnusedRemoval? {
    var rest = removal
    let changes = registry.removalOfUnused(removal.policy, after: &rest.last, context(for: nil))
    let isDone = store.condition.refusal == nil && commit(changes, at: Self.now, &report) == nil
    if isDone { rest.count += changes.count { if case .appUninstalled = $0 { true } else { false } } }
    if isDone, rest.last != nil, rest.count < Bound.forgottenTogether { return rest }
    if rest.count > 0 { report.notices.append(.unusedForgotten(rest.count)) }
    return nil
  }

  /// Records that a client has read a backup to its end.
  ///
  /// Does nothing if the store cannot be written: the backup is as good as one whose time is recorded.
  ///
  /// - Parameter made: the time when the backup was made.
  func record(backup made: Timestamp, _ report: inout WriterReport) {
    guard startup.isServing, store.condition.refusal == nil else { return }
    _ = commit(registry.changes(forBackup: made), at: Self.now, &report)
  }

  /// Drops a batch of the ended identifiers that a scope has beyond those that are kept, or of the things that were left
  /// to another machine long ago.
  ///
  /// - Returns: whether there may be more. False if the store cannot be written, until the next start.
  func dropSurplus(_ report: inout WriterReport) -> Bool {
    guard startup.isServing, store.condition.refusal == nil else { return false }
    let changes = registry.surplusRemoval
    return !changes.isEmpty && commit(changes, at: Self.now, &report) == nil
  }
}
