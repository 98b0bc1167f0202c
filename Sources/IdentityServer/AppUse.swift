import IdentityCore
import IdentityStore
import LinuxSystem
import Systemd

// Which apps are used: the loop sees them connect, and the writer records each once a day.
extension Server {
  /// Has the writer told from time to time.
  func addUseTimer() throws {
    useTimer = try loop.timer(after: UInt64(Bound.useMilliseconds) * 1_000) { [unowned self] in
      recordUses()
      useTimer?.arm(after: UInt64(Bound.useMilliseconds) * 1_000)
    }
  }

  /// Notes that the app of a peer was used.
  func noteUse(by peer: Peer) {
    guard peer.app.isUnclaimedApp, registry.apps[peer.app] != nil else { return }
    usedApps.insert(peer.app)
  }

  /// Tells the writer which apps were used since the last time; one with a connection is.
  func recordUses() {
    hasRecordedUses = true
    for connection in connections.all { noteUse(by: connection.peer) }
    inbox.send(.used(usedApps, forgetUnusedDays: settings.forgetUnusedDays))
    usedApps = []
  }
}

extension Writer {
  /// Records which apps were used, and uninstalls those that were not for so many days.
  ///
  /// Nothing waits for it, and it is done again in some minutes: where the store cannot be written, it is left out.
  func record(_ used: Set<Text>, forgetUnusedDays days: Int?, _ report: inout WriterReport) {
    guard isSettled, store.condition.refusal == nil else { return }
    let now = Self.now
    guard commit(registry.changes(forUsed: used, at: now), at: now, &report) else { return }
    guard let days else { return }
    let removal = registry.removalOfUnused(days: days, context(for: nil))
    let count = removal.count { if case .appUninstalled = $0 { true } else { false } }
    if count > 0, commit(removal, at: now, &report) { report.notices.append(.unusedForgotten(count, days: days)) }
  }

  /// Writes changes that nobody asked for.
  ///
  /// - Returns: whether they are in force.
  private func commit(_ changes: [Change], at now: Timestamp, _ report: inout WriterReport) -> Bool {
    guard !changes.isEmpty else { return true }
    let before = registry
    guard commit(record(changes, at: now), &report) != nil else { return true }
    registry = before
    return false
  }
}
