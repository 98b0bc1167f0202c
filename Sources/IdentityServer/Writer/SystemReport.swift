import IdentityCore
import IdentityStore
import IdentityWire

// The report of the operating system's version (identityd-protocol(7), section "The system"). Each boot is a session.
extension Writer {
  /// Reports the running system, once per boot and as soon as the store can be written.
  func reportSystem(_ report: inout WriterReport) {
    guard !isSystemReported, isStarted, !registry.isSealed, store.condition.refusal == nil else { return }
    activity.enterStorage()
    let system = sources.system()
    activity.leaveStorage()
    isSystemReported = true
    guard case .known(let release) = system else {
      if case .unknown(let reason) = system { report.notices.append(.systemUnknown(reason)) }
      return
    }
    let before = registry
    let context = context(for: nil)
    do throws(Refusal) {
      let changes = try before.systemReport(release, boot: try lifetimes.versionSessionOfSystem(), context)
      guard !changes.isEmpty, commit(record(changes, at: context.now), &report) != nil else { return }
      registry = before
      isSystemReported = false
    } catch {
      report.notices.append(.systemUnknown(error.text))
    }
  }
}
