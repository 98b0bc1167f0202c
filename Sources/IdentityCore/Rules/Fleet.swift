// The fleet of the account's devices (identityd-protocol(7), section "The fleet").
extension RegistryCommand {
  package static func openFleet(run: UUID) -> Self { Self(OpenFleetRule(run: run)) }
  package static func nextCounter(above: Int64) -> Self { Self(NextCounterRule(above: above)) }
  package static func noteNewKeys(insteadOf original: UUID) -> Self { Self(NewKeysRule(original: original)) }
  package static func reportTwin(_ copy: CopyVerdict) -> Self { Self(ReportTwinRule(copy: copy)) }
}

/// `fleet open`: stores the run of the fleet, and returns what the fleet needs at its start. Makes the device identifier
/// if there is none.
struct OpenFleetRule: ChangeRule {
  let run: UUID
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: [.fleet, .identifiers, .settings]) }
  var answerKind: AnswerKind { .lease }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    var plan = Plan(registry)
    var standing = registry.fleet ?? FleetStanding()
    if registry[.device] == nil || standing.runs.first != run {
      guard let context else { return nil }
      if registry[.device] == nil { plan.put(try registry.fresh(.device, cause: .firstUse, context)) }
      standing.runs = Array(([run] + standing.runs.filter { $0 != run }).prefix(Bound.fleetRuns))
      plan.add(.fleetAdvanced(standing))
    }
    guard let device = plan.registry[.device]?.value else { throw .broken("this device has no identifier") }
    var reply = Reply()
    for past in standing.runs.dropFirst() {
      reply.row()
      reply.word(.string("run"))
      reply.word(.text(Text(hexadecimal: past)))
    }
    reply.ok()
    reply.word(.uuid(device))
    reply.attribute("generation", .number(Int64(standing.generation)))
    reply.attribute("counter", .number(standing.counter))
    reply.attribute("home", .text(Text(hexadecimal: registry.home)))
    reply.attribute("account", registry.account.map(Reply.Value.text))
    reply.attribute("original", standing.original.map(Reply.Value.uuid))
    return Decision(changes: plan.changes, reply: reply)
  }
}

/// `fleet next`: returns the device's next counter, which is greater than all earlier ones and than `above`.
///
/// - Throws: `limit` if there is no greater counter.
struct NextCounterRule: ChangeRule {
  let above: Int64
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: .fleet) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard context != nil else { return nil }
    var standing = registry.fleet ?? FleetStanding()
    let last = max(standing.counter, above)
    guard last < .max else { throw .limit("the counter of this device is used up") }
    standing.counter = last + 1
    return Decision(
      changes: [.fleetAdvanced(standing)], reply: .done(.number(standing.counter)))
  }
}

/// `fleet rekeyed`: notes that the service has made keys of its own, because those of before belong to an original.
struct NewKeysRule: ChangeRule {
  let original: UUID
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: .fleet) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard var standing = registry.fleet, standing.original == original else { return Decision(reply: .done) }
    guard context != nil else { return nil }
    standing.original = nil
    return Decision(changes: [.fleetAdvanced(standing)], reply: .done)
  }
}

/// `fleet twin`: records the suspicion that another machine has the identifiers of this device, too.
///
/// The suspicion ends as after a change of the machine: by `machine acknowledge`, or by another device identifier.
struct ReportTwinRule: ChangeRule {
  let copy: CopyVerdict
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: [.settings, .identifiers]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard registry.machine?.suspicion?.cause != .cloned else { return Decision(reply: .done) }
    guard let context else { return nil }
    var record =
      registry.machine ?? MachineRecord(fingerprint: MachineFingerprint(machine: nil, hardware: nil))
    record.suspicion = .init(cause: .cloned, since: context.now)
    let devices = registry.scopes.filter { $0.level == .device }
    return Decision(
      changes: [.machineRecorded(record)] + devices.map { .deviceSuspected($0, .cloned, copy) }, reply: .done)
  }
}

extension Registry {
  /// Sixteen bytes that differ between machines: a digest of the machine-id and the hardware, as far as they are known.
  ///
  /// The digests are keyed with a secret of the store, so the value tells nothing about the machine.
  var home: UUID {
    let digests = [machine?.fingerprint.machine, machine?.fingerprint.hardware].map { digest in
      digest.flatMap { UUID(Text(trusted: Array($0.bytes.prefix(32)))) } ?? .zero
    }
    return UUID(high: digests[0].high ^ digests[1].high, low: digests[0].low ^ digests[1].low)
  }
}
