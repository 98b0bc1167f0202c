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
    let source = try activity.inStorage { () throws(Refusal) in try store.rotateKey(at: Self.now) }
    report.notices.append(.keyRotated(source))
    return .done(.string(source.rawValue))
  }

  /// Records the resumption first: another machine must not go on with the same sessions, even if there can be no event.
  private func resume(_ report: inout WriterReport) throws(Refusal) -> Reply {
    try requireStarted()
    report.resumption = try recordResumption()
    guard store.condition.refusal == nil, !registry.isSealed else { return .done }
    if let refusal = commit(registry.changesAtResumption, at: Self.now, &report) { throw refusal }
    return .done
  }

  private func protectKey(with key: SealedSecret, _ report: inout WriterReport) throws(Refusal) -> Reply {
    let before = store.condition
    defer { noteCondition(before, &report) }
    try activity.inStorage { () throws(Refusal) in try store.protectKey(with: key, at: Self.now) }
    report.notices.append(.recoveryKeySet)
    return .done
  }

  private func recoverKey(with key: SealedSecret, isTrial: Bool, _ report: inout WriterReport) throws(Refusal) -> Reply
  {
    let before = store.condition
    defer { noteCondition(before, &report) }
    let source = try activity.inStorage { () throws(Refusal) in
      try store.recoverKey(with: key, isTrial: isTrial, at: Self.now)
    }
    guard let source else { return .done }
    report.notices.append(.keyRecovered(source))
    return .done(.string(source.rawValue))
  }
}
