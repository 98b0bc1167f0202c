import IdentityCore
import IdentityStore
import IdentityWire

// The report of the operating system's version (identityd-protocol(7), section "The system"). Each boot is a session.
extension Writer {
  /// Reports the running system, once per boot and as soon as the store can be written.
  func reportSystem(_ report: inout WriterReport) {
    guard case .recorded = startup, !registry.isSealed, store.condition.refusal == nil else { return }
    let system = activity.inStorage { surveyor.sources.system() }
    startup = .reported
    guard case .known(let release) = system else {
      if case .unknown(let reason) = system { report.notices.append(.systemUnknown(reason)) }
      return
    }
    let context = context(for: nil)
    do throws(Refusal) {
      let changes = try registry.systemReport(release, boot: try lifetimes.versionSessionOfSystem(), context)
      if !changes.isEmpty, commit(changes, at: context.now, &report) != nil { startup = .recorded }
    } catch {
      report.notices.append(.systemUnknown(error.text))
    }
  }
}
