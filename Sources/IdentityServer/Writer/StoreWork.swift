import IdentityCore
import IdentityStore

// Commands about the store as a whole, carried out between two batches.
extension Writer {
  /// Carries out a command.
  func perform(_ command: StoreCommand, _ report: inout WriterReport) -> Result<WriterReport.Answer, Refusal> {
    do throws(Refusal) {
      switch command {
      case .rotateKey: return .success(.init(reply: try rotateKey(&report)))
      case .protectKey(let key): return .success(.init(reply: try protectKey(with: key, &report)))
      case .recoverKey(let key, let dryRun):
        return .success(.init(reply: try recoverKey(with: key, isTrial: dryRun, &report)))
      case .resume: return .success(.init(reply: try resume(&report)))
      case .compareMachine(let id):
        return .success(.init(reply: try registry.comparison(of: store.digest(ofMachineID: id))))
      // They arrive as long work.
      case .backup, .restore: throw .broken("it is long work")
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

  /// Records the resumption first: another machine must not go on with the same sessions, even if there can be no event.
  private func resume(_ report: inout WriterReport) throws(Refusal) -> Reply {
    try requireStarted()
    activity.enterStorage()
    defer { activity.leaveStorage() }
    report.resumption = try recordResumption()
    guard store.condition.refusal == nil, !registry.isSealed else { return .done }
    let before = registry
    guard let refusal = commit(record(before.changesAtResumption, at: Self.now), &report) else { return .done }
    registry = before
    throw refusal
  }

  private func protectKey(with key: SealedSecret, _ report: inout WriterReport) throws(Refusal) -> Reply {
    let before = store.condition
    defer { noteCondition(before, &report) }
    activity.enterStorage()
    defer { activity.leaveStorage() }
    try store.protectKey(with: key, at: Self.now)
    report.notices.append(.recoveryKeySet)
    return .done
  }

  private func recoverKey(with key: SealedSecret, isTrial: Bool, _ report: inout WriterReport) throws(Refusal) -> Reply
  {
    let before = store.condition
    defer { noteCondition(before, &report) }
    activity.enterStorage()
    defer { activity.leaveStorage() }
    guard let source = try store.recoverKey(with: key, isTrial: isTrial, at: Self.now) else { return .done }
    report.isStartDue = store.isStartDue
    report.notices.append(.keyRecovered(source))
    return .done(.string(source.rawValue))
  }
}
