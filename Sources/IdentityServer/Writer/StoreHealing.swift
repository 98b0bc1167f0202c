import IdentityCore
import IdentityStore
import LinuxSystem

// The return of a store that could not be written.
extension Writer {
  /// Checks the files of the store without a change to commit. Restores files that were just taken away, and writes to
  /// a file system that is no longer read-only.
  ///
  /// After any other failure, the next change tries to heal the store: each attempt writes all of it.
  func examine(_ report: inout WriterReport) {
    let before = store.condition
    activity.inStorage { store.examine() }
    noteCondition(before, &report)
    report.condition = store.condition
    if store.condition != before || store.awaitsDisk { heal(&report) }
  }

  func healIfDue(_ report: inout WriterReport) {
    switch store.condition {
    case .writable, .damaged, .unreadable: return
    case .full, .unwritable: break
    }
    let now = Clock.monotonicMicroseconds
    if let lastHealing, now - lastHealing < UInt64(Bound.healPauseMilliseconds) * 1_000 { return }
    heal(&report)
  }

  private func heal(_ report: inout WriterReport) {
    lastHealing = Clock.monotonicMicroseconds
    let healed = activity.inStorage { store.heal() }
    report.condition = store.condition
    if var healed {
      healed.use(registry.subordinates)
      registry = healed
      report.registry = healed
      // The loop's reader has the old files open.
      hasReader = false
      report.reopened = Reopened(reader: nil, keySource: store.keySource, proofKeyCipher: store.makeProofKeyCipher())
      handOverReader(&report)
      report.notices.append(.store(.healed))
    }
  }
}
