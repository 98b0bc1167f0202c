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
    guard let (cause, policy) = doubt, !scopes.isEmpty || items.all.contains(where: { $0.isThisDeviceOnly }) else {
      return record == known ? [] : [.machineRecorded(record)]
    }
    let former = formerMachines.last {
      $0.fingerprint.machine == record.fingerprint.machine && !Self.differ($0.fingerprint.hardware, found.hardware)
    }
    let returned = former.map { identifiers(on: $0) } ?? [:]
    var plan = Plan(self)
    record.suspicion = nil
    switch policy {
    case .keep where former != nil && !scopes.contains { $0.level == .device && returned[$0]?.end != nil }:
      plan.add(.machineRecorded(record))
      plan.forget(former)
    case .keep:
      record.suspicion = .init(cause: cause, since: context.now)
      plan.add(.machineRecorded(record))
      for scope in scopes where scope.level == .device { plan.add(.deviceSuspected(scope, cause)) }
      // The suspicion is what an admin acknowledges. A machine that is suspect itself is none to return to.
      if known.suspicion == nil { plan.leave(known.fingerprint, cause, context.now, isAcknowledged: true) }
    case .renew:
      plan.add(.machineRecorded(record))
      plan.forget(former)
      try plan.identifyOriginal(at: context.now, context.random)
      plan.leave(known.fingerprint, cause, context.now, isAcknowledged: former != nil)
      let course = course(from: self[.device]?.value, to: returned[.device]?.value)
      for scope in plan.registry.scopes { try plan.bringBack(returned[scope], of: scope, cause, as: course, context) }
    }
    if let key = proofKeysInForce.last, !plan.registry.proofKeysInForce.contains(where: { $0.number == key.number }) {
      plan.add(.proofKeyLocked(key))
    }
    return plan.changes
  }

  /// Returns the last identifier of each scope on a former machine, unless its app was uninstalled since.
  private func identifiers(on former: FormerMachine) -> [Scope: Identifier] {
    var found: [Scope: Identifier] = [:]
    for entry in history.numbered {
      let scope = entry.identifier.scope
      if entry.number <= former.lastIdentifier { found[scope] = entry.identifier }
      if entry.identifier.end?.cause == .uninstalled { found[scope] = nil }
    }
    return found
  }

  /// Returns the relation of this machine to the previous one.
  ///
  /// - Parameters:
  ///   - previous: the device identifier there.
  ///   - returned: the one that this machine had before, if any. On the way back it is the earlier one of the two.
  private func course(from previous: UUID?, to returned: UUID?) -> Course {
    guard let previous, let returned, history.has(returned, before: previous, in: .device) else { return .copy }
    return .wayBack
  }

  /// Compares a machine-id with those that this store knows.
  ///
  /// - Parameter digest: the digest of the machine-id.
  /// - Returns: `OK current`, `OK former left=TIME device=UUID` or `OK unknown`. `device` is the shared device identifier
  ///   that comes back with the machine-id.
  package func comparison(of digest: Text?) throws(Refusal) -> Reply {
    try requireProof(of: [.settings, .identifiers])
    var reply = Reply()
    reply.ok()
    if let digest, machine?.fingerprint.machine == digest {
      reply.word(.string("current"))
    } else if let digest, let former = formerMachines.last(where: { $0.fingerprint.machine == digest }) {
      reply.word(.string("former"))
      reply.attribute("left", .time(former.left))
      reply.attribute("device", identifiers(on: former)[.device].map { .uuid($0.value) })
    } else {
      reply.word(.string("unknown"))
    }
    return reply
  }

  private func doubt(
    on found: MachineFingerprint, _ known: MachineFingerprint, _ onMachineChange: MachinePolicy,
    _ onHardwareChange: MachinePolicy
  ) -> (Cause, MachinePolicy)? {
    if Self.differ(found.machine, known.machine) { return (.machineChanged, onMachineChange) }
    if Self.differ(found.hardware, known.hardware) { return (.hardwareChanged, onHardwareChange) }
    return nil
  }

  /// Returns whether two values that are both known differ.
  private static func differ(_ left: Text?, _ right: Text?) -> Bool { left != nil && right != nil && left != right }

  /// The last change of the machine that no admin has acknowledged: its cause and its time. Nil if there is none.
  package var unacknowledged: MachineRecord.Suspicion? {
    formerMachines.last { !$0.isAcknowledged }.map { .init(cause: $0.cause, since: $0.left) }
  }

  /// Returns the changes that tell all apps of a resumption from a snapshot (`machine resumed`): an event for the shared
  /// device identifier, even if there is none yet, and one for each device identifier of an app's or a vendor's own.
  package var changesAtResumption: [Change] {
    ([.device] + scopes.filter { $0.level == .device && $0 != .device }).map { .deviceResumed($0) }
  }
}

extension Plan {
  /// Records the machine that the daemon ran on until now as a former one.
  fileprivate mutating func leave(
    _ fingerprint: MachineFingerprint, _ cause: Cause, _ now: Timestamp, isAcknowledged: Bool
  ) {
    let formers = registry.formerMachines
    // The newest record of a machine replaces older ones, which would never be found.
    for former in formers where former.fingerprint == fingerprint { forget(former) }
    for former in registry.formerMachines.dropLast(Bound.formerMachines - 1) { forget(former) }
    add(
      .machineLeft(
        FormerMachine(
          number: (formers.last?.number ?? 0) + 1, fingerprint: fingerprint, lastIdentifier: registry.history.last,
          cause: cause, left: now, isAcknowledged: isAcknowledged)))
  }

  fileprivate mutating func forget(_ former: FormerMachine?) {
    if let former { add(.machineForgotten(former.number)) }
  }

  /// Brings the identifier that a scope had on the present machine back into force, or else a new one.
  ///
  /// An identifier that was replaced for another reason than a change of the machine does not come back.
  fileprivate mutating func bringBack(
    _ former: Identifier?, of scope: Scope, _ cause: Cause, as course: Course, _ context: Context
  ) throws(Refusal) {
    switch (former, former?.end?.cause) {
    case (_?, nil): break
    case (let former?, .machineChanged), (let former?, .hardwareChanged), (let former?, .machineReturned):
      put(
        Identifier(
          scope: scope, value: former.value, created: context.now, origin: former.origin, cause: .machineReturned,
          author: nil), as: course)
    default: put(try registry.fresh(scope, cause: cause, context), as: course)
    }
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
    if dryRun { return Decision(reply: registry.identifierRows) }
    guard !registry.isSealed else { return Decision(reply: .done) }
    guard let context else { return nil }
    var plan = Plan(registry)
    for scope in registry.scopes { plan.add(.identifierEnded(scope, .init(time: context.now, cause: .sealed))) }
    for held in registry.items.held { plan.add(.itemDeleted(held.item)) }
    for token in registry.tokens.all { plan.add(.tokenDeleted(token)) }
    plan.forgetLeftDevices()
    plan.endProofKeys(.lost)
    for history in registry.versions.all { plan.forgetVersions(of: history.subject) }
    plan.add(.sealed)
    return Decision(changes: plan.changes, reply: .done)
  }
}
