import IdentityCore
import IdentityStore
import LinuxSystem
import Systemd

/// The apps without a manifest that connected since the last report to the writer.
struct UsedApps {
  private var apps: Set<Text> = []
  /// Whether this run has reported any use, which also records the day as a day of operation.
  private(set) var hasReported = false

  mutating func insert(_ app: Text) { apps.insert(app) }

  /// Removes and returns the apps to report.
  mutating func takeAll() -> Set<Text> {
    hasReported = true
    defer { apps = [] }
    return apps
  }
}

// The use of apps: the loop sees apps connect, and the writer records each app once a day.
extension Server {
  /// Starts the timer that tells the writer at intervals which apps were used.
  func addUseTimer() throws {
    useTimer = try loop.timer(after: UInt64(Bound.useMilliseconds) * 1_000) { [unowned self] in
      recordUses()
      useTimer?.arm(after: UInt64(Bound.useMilliseconds) * 1_000)
    }
  }

  /// Notes that a peer's app was used. Only the use of installed apps without a manifest is noted.
  func noteUse(by peer: Peer) {
    guard peer.app.isUnclaimedApp, registry.apps[peer.app] != nil else { return }
    usedApps.insert(peer.app)
  }

  /// Tells the writer which apps were used since the last call. An app with an open connection counts as used.
  func recordUses() {
    for connection in connections.all { noteUse(by: connection.peer) }
    inbox.send(.used(usedApps.takeAll(), forgetUnusedDays: settings.forgetUnusedDays))
  }
}

extension Writer {
  /// Records the use of apps, and uninstalls apps that were not used for the given number of days.
  ///
  /// Does nothing if the store cannot be written. The call is repeated within minutes, and no client waits for
  /// the result.
  func record(_ used: Set<Text>, forgetUnusedDays days: Int?, _ report: inout WriterReport) {
    guard isSettled, store.condition.refusal == nil else { return }
    let now = Self.now
    guard commit(registry.changes(forUsed: used, at: now), at: now, &report) else { return }
    guard let days else { return }
    let removal = registry.removalOfUnused(days: days, context(for: nil))
    let count = removal.count { if case .appUninstalled = $0 { true } else { false } }
    if count > 0, commit(removal, at: now, &report) { report.notices.append(.unusedForgotten(count, days: days)) }
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
