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
    guard let link = daemon.link, let account = affiliation.account else { return nil }
    return Writing(link: link, account: account, version: rules.fleet.version)
  }

  /// Writes a draft.
  func write(_ draft: Draft) throws(DaemonFault) -> Input {
    do throws(DaemonFault) {
      guard let message = try writing?.write(draft) else { return .notWritten(draft) }
      report.noteStoreReason(nil)
      if draft.kind == .record { affiliation.account?.isNewcomer = false }
      return .wrote(draft.tag, message)
    } catch .refused(_, let text) {
      report.noteStoreReason(text)
      return .notWritten(draft)
    }
  }

  /// Seals a key of the account to a device.
  func grant(_ draft: Draft, to boxKey: PublicKey) -> Input {
    let outcome = writing?.grant(draft, to: boxKey) ?? .notWritten(draft)
    if case .notSealable = outcome {
      offering.warnOnce(
        "the device \(draft.subject) gets no key of the account, because nothing can be sealed to its own key")
    }
    return outcome
  }

  /// Stores an epoch with its key; nil if there is none.
  func enter(_ epoch: Epoch, _ key: SecretKey?) throws(DaemonFault) {
    guard try use(affiliation.account?.entering(epoch, key)) else { return rules.queue(.notEntered(epoch.number)) }
    meetings.forgetIntruder()
    rules.queue(.entered(epoch))
  }

  /// Stores epochs and uses them. Returns whether that was possible.
  func use(_ epochs: StoredEpochs?) throws(DaemonFault) -> Bool {
    guard let epochs else { return false }
    do throws(DaemonFault) {
      try daemon.link?.putEpochs(epochs)
    } catch .refused(_, let text) {
      report.noteStoreReason(text)
      return false
    }
    affiliation.account?.use(epochs)
    return true
  }

  private func rotate(without removed: Set<DeviceTag>) throws(DaemonFault) {
    guard try performed(after: .rotate(without: removed)).contains(.notRotated) else { return }
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
      try daemon.link?.reportTwin(copy.verdict)
      guard copy == .yes, configuration.onTwin == .renew else { return }
      // The original keeps what it tells outside of the account.
      offering = Offering(log)
      // The suspicion stands, so identityd leaves the original in its place.
      try daemon.link?.renewDevice()
      daemon.requestStart()
    case .setBack: log.note("this machine was set back in time")
    case .alone, .challenged, .answered: break
    }
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
      offering = Offering(log)
    }
    // The tombstone first, since it belongs to this account. The keys last, so that a new start goes on here.
    try store()
    guard let link = daemon.link, let account = affiliation.account else { return }
    if let exclusion { try link.noteExclusion(Exclusion(cause: exclusion, account: account.name)) }
    // An admin may have entered another account, which stays.
    if affiliation.name == account.name { try link.setAccount(nil) }
    try link.deleteKeys()
    daemon.requestStart()
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
    guard let account = affiliation.account, description != account.present.description else { return false }
    affiliation.account?.describe(description)
    try take(.described(description))
    offering.noteChange(isForReport: true)
    return true
  }

  /// Publishes the present proof keys.
  func readProofKeys() throws(DaemonFault) {
    guard let link = daemon.link, let account = affiliation.account else { return }
    pauses.begin(.proofKeys)
    _ = try describe(account.described(proofKeys: try link.proofKeys()))
  }

  // MARK: Requests

  /// The refusal without a connection with identityd.
  static let unanswered = Refusal.unavailable("identityd does not answer; try again later")

  /// Carries out a request of an admin.
  func answer(to request: ControlRequest) throws(Refusal) -> ControlRequest.Answer {
    var outcome = Result<ControlRequest.Answer, Refusal>.failure(Self.unanswered)
    var isAwaited = false
    turn { () throws(DaemonFault) in
      guard let link = daemon.link else { return }
      let account = affiliation.account
      let answering = Answering(
        link: link, account: account, isAnswering: meetings.isAnswering, name: affiliation.name,
        fleet: rules.fleet, hasPassword: configuration.user == .account,
        hasFormerPassword: broker?.usesFormerPassword(of: account) == true)
      do throws(DaemonFault) {
        var (reply, consequence) = try answering.carryOut(request)
        var secret: Secret?
        switch consequence {
        case .none: break
        case .show(let shown): secret = shown
        case .start:
          meetings = Meetings(log)
          daemon.requestStart()
          isAwaited = true
        case .take(let input): try take(input)
        case .join(let meeting):
          meetings.join(meeting)
          daemon.requestStart()
        case .invite(let meeting): reply.attribute("expires", .time(try invite(meeting)))
        case .rotate(let removed): try rotate(without: removed)
        case .askAside:
          outcome = Result { () throws(Refusal) in
            (try side.answer(request, of: configuration, broker, as: affiliation.account), nil)
          }
          return
        }
        outcome = .success((reply, secret))
      } catch .refused(let code, let text) {
        outcome = .failure(Refusal(code, text))
      }
    }
    // A person waits for the new start to connect.
    if isAwaited { turn { () throws(DaemonFault) in try take(.awaited) } }
    return try outcome.get()
  }
}
