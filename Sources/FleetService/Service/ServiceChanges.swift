import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire

// The changes at identityd: messages, epochs, and the membership itself.
extension Service {
  // MARK: Messages and epochs

  /// The messages that this device writes; nil without an account.
  var writing: Writing? {
    guard let link, let account else { return nil }
    return Writing(link: link, account: account, run: run, version: fleet.version)
  }

  /// Writes a draft.
  func write(_ draft: Draft) throws(DaemonFault) -> Input {
    do throws(DaemonFault) {
      guard let message = try writing?.write(draft) else { return .notWritten(draft) }
      report.noteStoreReason(nil)
      if draft.kind == .record { account?.isNewcomer = false }
      return .wrote(draft.tag, message)
    } catch {
      guard case .refused(_, let text) = error else { throw error }
      report.noteStoreReason(text)
      return .notWritten(draft)
    }
  }

  /// Seals a key of the account to a device.
  func grant(_ draft: Draft, to boxKey: PublicKey) -> Input {
    let outcome = writing?.grant(draft, to: boxKey) ?? .notWritten(draft)
    if case .notSealable = outcome {
      warnOnce("the device \(draft.subject) gets no key of the account, because nothing can be sealed to its own key")
    }
    return outcome
  }

  /// Stores an epoch with its key; nil if there is none.
  func enter(_ epoch: Epoch, _ key: SecretKey?) throws(DaemonFault) {
    guard try use(account?.entering(epoch, key)) else { return inputs.append(.notEntered(epoch.number)) }
    meetings.noteIntruder(nil)
    inputs.append(.entered(epoch))
  }

  /// Stores epochs and uses them. Returns whether that was possible.
  func use(_ epochs: StoredEpochs?) throws(DaemonFault) -> Bool {
    guard let epochs else { return false }
    do throws(DaemonFault) {
      try link?.putEpochs(epochs)
    } catch {
      guard case .refused(_, let text) = error else { throw error }
      report.noteStoreReason(text)
      return false
    }
    account?.use(epochs)
    return true
  }

  private func rotate(without removed: Set<DeviceTag>) throws(DaemonFault) {
    isRotationRefused = false
    try take(.rotate(without: removed))
    guard isRotationRefused else { return }
    throw .refused(
      code: .conflict,
      text: "this device is not connected, the key is being replaced already, or identityd did not store the new one; "
        + "see 'identityctl fleet status'")
  }

  // MARK: Membership

  /// Tells identityd about another machine that speaks for this device.
  func suspect(_ state: TwinWatch.State) throws(DaemonFault) {
    switch state {
    case .twin(_, let copy):
      log.warn("another machine speaks for this device; see 'identityctl check'")
      try link?.reportTwin(copy.verdict)
      guard copy == .yes, configuration.onTwin == .renew else { return }
      // The original keeps what it tells outside of the account.
      offering = Offering()
      // The suspicion stands, so identityd leaves the original in its place.
      try link?.renewDevice()
      isStartDue = true
    case .setBack: log.note("this machine was set back in time")
    case .alone, .challenged, .answered: break
    }
  }

  /// Returns the key of this device, after a change that a renewal makes necessary; nil if there is none.
  ///
  /// After a renewal that left the former identifier to an original, this device needs a key of its own, and keeps the
  /// former one: it is in use again if the identifier comes back, as after a boot with a foreign machine-id. Each step
  /// can be repeated, since nothing was sealed with the new key before the last one.
  func deviceKey(for opening: DaemonLink.Opening, _ link: DaemonLink) throws(DaemonFault) -> SecretKey? {
    guard let original = opening.original else {
      guard let returned = try link.key("device/\(opening.device)") else { return try link.key("device") }
      try link.putKey("device", returned)
      try link.deleteKey("device/\(opening.device)")
      return returned
    }
    var own: SecretKey?
    if let former = try link.key("device") {
      own = SecretKey.random()
      guard let own else { throw .refused(code: .unavailable, text: "there is not enough memory for the keys") }
      if try link.key("device/\(original)") == nil { try link.putKey("device/\(original)", former) }
      try link.putKey("device", own)
    }
    // A key of this identifier is from a membership that has ended, so a later start must not take it for one to use.
    try link.deleteKey("device/\(opening.device)")
    try link.noteNewKeys(insteadOf: original)
    return own
  }

  /// Forgets the account, because the membership has ended.
  func end(_ ending: Ending) throws(DaemonFault) {
    var exclusion: Exclusion.Cause?
    switch ending {
    case .removed(.left, _, isProven: true): log.note("this device has left the account")
    case .removed(_, let author, let isProven):
      log.warn(
        "\(isProven ? "" : "a device that calls itself ")\(author) has removed this device from the account; "
          + "see 'identityctl check'")
      exclusion = .removed
    case .superseded:
      log.warn("another machine has joined the account in the name of this device; see 'identityctl check'")
      exclusion = .superseded
      // It writes on the same topics outside of the account.
      offering = Offering()
    }
    // The tombstone first, since it belongs to this account. The keys last, so that a new start goes on here.
    try store()
    if let exclusion, let account { try link?.noteExclusion(Exclusion(cause: exclusion, account: account.name)) }
    // An admin may have entered another account, which stays.
    if accountName == account?.name { try link?.setAccount(nil) }
    try link?.deleteKeys()
    isStartDue = true
  }

  // MARK: Other devices

  /// Tells the admins that a device has come with another key.
  func noteOtherKey(in record: SignedMessage) {
    let device = NamedDevice(of: record)
    log.warn(
      "\(device.name) (\(device.identifier)) has come with another key, and this device knows of no removal; "
        + "see 'identityctl check'")
  }

  // MARK: The record of this device

  /// Takes another content of this device's record.
  ///
  /// - Returns: false if it is the same.
  func describe(_ description: DeviceDescription) throws(DaemonFault) -> Bool {
    guard let account, description != account.present.description else { return false }
    self.account?.describe(description)
    try take(.described(description))
    offering.noteChange(isForReport: true)
    return true
  }

  /// Publishes the present proof keys.
  func readProofKeys() throws(DaemonFault) {
    guard let link, let account else { return }
    wait(for: .proofKeys, Self.proofKeysPause)
    _ = try describe(account.described(proofKeys: try link.proofKeys()))
  }

  // MARK: Requests

  /// Carries out a request that changes nothing in identityd.
  private func answerMore(_ request: ControlRequest) throws(DaemonFault) -> Result<Reply, Refusal> {
    switch request {
    case .who: return .success(try askWho())
    case .readReports(let site): return Result { () throws(Refusal) in try readReports(for: site) }
    case .reports(let number): return Result { () throws(Refusal) in try reports(of: number) }
    case .proofKeys(let last): return .success(proofKeys(after: last))
    case .tryBrokers: return Result { () throws(Refusal) in try tryBrokers() }
    case .triedBrokers: return .success(triedBrokers())
    default: return .success(peers)
    }
  }

  /// Carries out a request of an admin. Returns the answer, and the secret in it.
  func answer(to request: ControlRequest) throws(Refusal) -> (Reply, Secret?) {
    var outcome = Result<(Reply, Secret?), Refusal>.failure(.unavailable("identityd does not answer; try again later"))
    var isAwaited = false
    turn { () throws(DaemonFault) in
      guard let link else { return }
      let answering = Answering(
        link: link, account: account, isAnswering: meetings.isAnswering, name: accountName, run: run,
        fleet: fleet, hasPassword: configuration.user == .account,
        hasFormerPassword: broker?.usesFormerPassword(of: account) == true, rows: report.rows)
      do throws(DaemonFault) {
        var (reply, consequence) = try answering.carryOut(request)
        var secret: Secret?
        switch consequence {
        case .none: break
        case .show(let shown): secret = shown
        case .start:
          meetings = Meetings()
          (isStartDue, isAwaited) = (true, true)
        case .leave: try take(.leave)
        case .join(let meeting):
          meetings.join(meeting)
          isStartDue = true
        case .invite(let meeting): reply.attribute("expires", .time(try invite(meeting)))
        case .rotate(let removed): try rotate(without: removed)
        case .sync: try take(.sync)
        case .other:
          outcome = try answerMore(request).map { ($0, nil) }
          return
        }
        outcome = .success((reply, secret))
      } catch {
        guard case .refused(let code, let text) = error else { throw error }
        outcome = .failure(Refusal(code, text))
      }
    }
    // A person waits for the new start to connect.
    if isAwaited { turn { () throws(DaemonFault) in try take(.awaited) } }
    return try outcome.get()
  }
}
