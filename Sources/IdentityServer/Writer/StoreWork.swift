import IdentityCore
import IdentityStore

// Commands about the store as a whole, carried out between two batches.
extension Writer {
  /// Carries out a command.
  func perform(_ command: StoreCommand, _ report: inout WriterReport) -> Result<WriterReport.Answer, Refusal> {
    do throws(Refusal) {
      switch command {
      case .rotateKey: return .success(.init(reply: try rotateKey(&report)))
      case .compareMachine(let id):
        return .success(.init(reply: try registry.comparison(of: store.digest(ofMachineID: id))))
      case .backup(let key): return .success(try backup(key))
      // A restore arrives as another kind of work, together with the upload.
      case .restore: throw .broken("there is nothing to restore")
      }
    } catch {
      return .failure(error)
    }
  }

  private func rotateKey(_ report: inout WriterReport) throws(Refusal) -> Reply {
    let before = store.condition
    defer { noteCondition(before, &report) }
    activity.enterStorage()
    defer { activity.leaveStorage() }
    let source = try store.rotateKey(at: Self.now)
    report.keySource = source
    report.notices.append(.keyRotated(source))
    return .done(.string(source.rawValue))
  }

  private func backup(_ key: SealedSecret) throws(Refusal) -> WriterReport.Answer {
    // Before startup has finished, the identifiers may be those of another machine.
    try requireStarted()
    activity.enterStorage()
    defer { activity.leaveStorage() }
    let made = Self.now
    let bytes = try store.backup(of: registry, key: key, at: made)
    let reply = Reply.done(.number(Int64(bytes.count)))
    return .init(reply: reply, backup: OutgoingBackup(bytes, reply, made: made))
  }

  /// Restores a backup in one transaction, or in a dry run reports the changes that a restore would make.
  func restore(
    _ upload: BackupUpload, dryRun: Bool, adoptsDevice: Bool, for peer: Peer, _ report: inout WriterReport
  ) -> Result<WriterReport.Answer, Refusal> {
    let before = registry
    defer { forgetUncommitted() }
    do throws(Refusal) {
      if !dryRun { try refuseUnwritable() }
      try requireStarted()
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
