// The response to a change of the machine, and golden images (identityd-protocol(7), section "IDENTIFIERS").
extension Registry {
  /// Whether nothing may be derived from the present machine-id any more; see ``MachineRecord/spentMachine``.
  var isMachineSpent: Bool { machine?.spentMachine != nil && machine?.spentMachine == machine?.fingerprint.machine }

  /// Returns the changes at a start, by comparing the machine with the recorded one and applying the policies.
  ///
  /// A value that the machine does not report now is not compared, and its earlier digest is kept.
  ///
  /// - Parameter isSealedHere: whether the previous store was sealed on a machine with the same machine-id.
  package func changesAtStart(
    on found: MachineFingerprint, isSealedHere: Bool, onMachineChange: MachinePolicy, onHardwareChange: MachinePolicy,
    _ context: Context
  ) throws(Refusal) -> [Change] {
    guard let known = machine else {
      return [
        .machineRecorded(MachineRecord(fingerprint: found, spentMachine: isSealedHere ? found.machine : nil))
      ]
    }
    var record = known
    record.fingerprint = MachineFingerprint(
      machine: found.machine ?? known.fingerprint.machine, hardware: found.hardware ?? known.fingerprint.hardware)
    let doubt = doubt(on: found, known.fingerprint, onMachineChange, onHardwareChange)
    // Other hardware has the same machine-id, so a value derived from it could exist twice.
    if let doubt, doubt == (.hardwareChanged, .renew) { record.spentMachine = record.fingerprint.machine }
    guard let (cause, policy) = doubt, !scopes.isEmpty else {
      return record == known ? [] : [.machineRecorded(record)]
    }
    var plan = Plan(self)
    switch policy {
    case .keep:
      record.suspicion = .init(cause: cause, since: context.now)
      plan.add(.machineRecorded(record))
      for scope in scopes where scope.level == .device { plan.add(.deviceSuspected(scope, cause)) }
    case .renew:
      record.suspicion = nil
      plan.add(.machineRecorded(record))
      for scope in scopes { plan.put(try plan.registry.fresh(scope, cause: cause, context)) }
    }
    return plan.changes
  }

  private func doubt(
    on found: MachineFingerprint, _ known: MachineFingerprint, _ onMachineChange: MachinePolicy,
    _ onHardwareChange: MachinePolicy
  ) -> (Cause, MachinePolicy)? {
    func differ(_ left: Text?, _ right: Text?) -> Bool { left != nil && right != nil && left != right }
    if differ(found.machine, known.machine) { return (.machineChanged, onMachineChange) }
    if differ(found.hardware, known.hardware) { return (.hardwareChanged, onHardwareChange) }
    return nil
  }
}

extension RegistryCommand {
  package static func seal(dryRun: Bool) -> Self { Self(SealRule(dryRun: dryRun)) }
}

/// `seal`: prepares a golden image. Ends every identifier and deletes everything stored for apps.
///
/// The sealed store takes no further change. A dry run lists the identifiers to end.
struct SealRule: ChangeRule {
  let dryRun: Bool
  var basis: Basis { Basis(whole: dryRun ? [.settings, .apps, .identifiers] : .settings) }
  var answerKind: AnswerKind { dryRun ? .list : .plain }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    if dryRun { return Decision(reply: registry.rows(of: registry.scopes)) }
    guard !registry.isSealed else { return Decision(reply: .done) }
    guard let context else { return nil }
    var plan = Plan(registry)
    for scope in registry.scopes { plan.add(.identifierEnded(scope, .init(time: context.now, cause: .sealed))) }
    for held in registry.items.held.inOrder { plan.add(.itemDeleted(held.item)) }
    for token in registry.tokens.all { plan.add(.tokenDeleted(token)) }
    for history in registry.versions.all { plan.forgetVersions(of: history.subject) }
    plan.add(.sealed)
    return Decision(changes: plan.changes, reply: .done)
  }
}
