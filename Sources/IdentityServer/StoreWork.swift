import IdentityCore
import IdentityStore

// What concerns the store as a whole, between two batches.
extension Writer {
  /// Carries a command out.
  func perform(_ command: StoreCommand, _ report: inout WriterReport) -> Result<WriterReport.Answer, Refusal> {
    do throws(Refusal) {
      switch command {
      case .rotateKey: return .success(.init(reply: try rotateKey(&report)))
      case .backup(let key): return .success(try backup(key))
      // It comes with what was handed in.
      case .restore: throw .broken("there is nothing to restore")
      }
    } catch {
      return .failure(error)
    }
  }

  private func rotateKey(_ report: inout WriterReport) throws(Refusal) -> Reply {
    let before = store.condition
    defer { takeCondition(before, &report) }
    activity.enterStorage()
    defer { activity.leaveStorage() }
    let source = try store.rotateKey(at: Self.now)
    report.keySource = source
    report.notices.append(.keyRotated(source))
    return .done(.string(source.rawValue))
  }

  private func backup(_ key: SealedSecret) throws(Refusal) -> WriterReport.Answer {
    // Before, the identifiers may be another machine's.
    try requireSettled()
    activity.enterStorage()
    defer { activity.leaveStorage() }
    let bytes = try store.backup(of: registry, key: key, at: Self.now)
    return .init(reply: .done(.number(Int64(bytes.count))), backup: bytes)
  }

  /// Brings a backup into force, in one transaction, or tells what that would change.
  func restore(
    _ upload: BackupUpload, dryRun: Bool, adoptsDevice: Bool, for peer: Peer, _ report: inout WriterReport
  ) -> Result<WriterReport.Answer, Refusal> {
    let before = registry
    defer { forgetUncommitted() }
    do throws(Refusal) {
      if !dryRun { try refuseUnwritable() }
      try requireSettled()
      let context = context(for: peer)
      let decision = try registry.restoration(
        of: try store.content(of: upload), adoptsDevice: adoptsDevice, context)
      if !dryRun, let refusal = commit(record(decision.changes, at: context.now), &report) { throw refusal }
      return .success(.init(reply: decision.reply))
    } catch {
      registry = before
      return .failure(error)
    }
  }
}
