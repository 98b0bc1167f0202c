import FleetWire
import IdentityCore

/// The rules of a device that is in an account.
struct Member: Sendable {
  var membership: Membership
  var settings: Settings
  var roster: Roster
  var postings = Postings<DeviceTag>()
  var readings = Readings()
  var rekeyed = OtherKeys()
  var speaker: Speaker
  var twins: TwinWatch
  var removals: [DeviceTag: Draft] = [:]
  var allowances = Allowances()
  var inviter: Inviter?
  var rotation: Rotation
  var outlets = Outlets()
  var presences = Presences()
  var comparison = Comparison(isOn: false)

  init(_ membership: Membership, _ roster: Roster, _ settings: Settings) {
    self.membership = membership
    rotation = Rotation(membership)
    self.roster = roster
    self.roster.enter(membership.epoch.number)
    self.settings = settings
    speaker = Speaker(membership.description)
    twins = TwinWatch(membership, last: roster[membership.tag])
  }

  /// Plans the end of a device that was killed after it stored its own tombstone. The tombstone may not be at the broker.
  func began(_ actions: inout [Action]) {
    if hasLeft { actions.append(.wake(.leaving, after: Pace.leaving)) }
  }

  /// Whether nothing is to be written or published, as far as the device can tell.
  var isSettled: Bool {
    speaker.state == .current && removals.isEmpty && !rotation.isPlanned && rotation.pending == nil
      && roster.tags.allSatisfy { postings.isSettled($0) && rotation.grants.isSettled(Grantee(tag: $0)) }
  }

  /// The reason why the others do not get the present record of this device; nil if they do, or may soon.
  var silence: Silence? {
    if speaker.state == .settling, allowances.isEmpty(.lastingChange) { return .tooOften }
    return postings.attempts(membership.tag) >= Pace.failedReadBacks ? .unkept : nil
  }

  /// Takes an input about messages. Returns the end of the membership, if the input ends it.
  mutating func take(_ input: Input, isLive: Bool, _ actions: inout [Action]) -> Ending? {
    switch input {
    case .subscribed(let filter): acknowledged(filter, &actions)
    case .heard(let tag, let shown, let isRetained):
      return heard(tag, shown, isRetained: isRetained, isLive: isLive, &actions)
    case .wrote(let tag, let message): return wrote(tag, message, isLive: isLive, &actions)
    case .notWritten(let draft): notWritten(draft, isLive: isLive, &actions)
    case .notSealable(let tag): noteUnsealable(tag, &actions)
    case .described(let description): speaker.describe(description, isLive: isLive, &actions)
    case .forgotten(let tag): remove(tag, Removal(.removed), &actions)
    case .leave: return leave(isLive: isLive, &actions)
    case .renewed(let membership): renew(membership, isLive: isLive, &actions)
    case .arrived(let topic, let shown, let isRetained):
      arrived(topic, shown, isRetained: isRetained, &actions)
    case .offer(let content): offer(content, isLive: isLive, &actions)
    case .withdraw(let topic): withdraw(topic, isLive: isLive, &actions)
    case .boxed(let topic, let message): boxed(topic, message, isLive: isLive, &actions)
    case .rotate(let removed): rotate(without: removed, isLive: isLive, &actions)
    case .entered(let epoch): entered(epoch, isLive: isLive, &actions)
    case .notEntered(let number): notEntered(number, isLive: isLive, &actions)
    case .learned: readAgain(isLive: isLive, &actions)
    case .notLearned(let number): rotation.learned.remove(number)
    case .invite(let invitation, let rendezvous):
      if inviter?.isOpen == true { inviter?.expired(isLive: isLive, &actions) }
      inviter = Inviter(invitation, at: rendezvous, isLive: isLive, &actions)
    case .sync: if isLive, readings.present == nil { read(&actions) }
    case .askWho: if isLive { askWho(&actions) }
    case .dated(let time): roster.now = time
    case .started, .connected, .refused, .disconnected, .configured, .reconsider, .awaited, .answered, .woke: break
    }
    return nil
  }

  /// Takes other durations. The present waits begin anew.
  mutating func configure(_ settings: Settings, _ actions: inout [Action]) {
    let former = self.settings
    self.settings = settings
    if settings.heartbeat != former.heartbeat, speaker.state == .current {
      actions.append(.wake(.heartbeat, after: heartbeat))
    }
    if settings.resync != former.resync, readings.areSettled, readings.present == nil {
      actions.append(.wake(.reread, after: Pace.about(settings.resync, percent: 20)))
    }
  }

  /// The time until the own record is published again. Two machines with one identity publish half as often.
  var heartbeat: Delay {
    Pace.about(twins.mark == nil ? settings.heartbeat : 2 * settings.heartbeat, percent: 10)
  }

  // MARK: Connections

  mutating func connected(_ actions: inout [Action]) {
    readings.beginAnew()
    read(isFirst: true, &actions)
  }

  mutating func disconnected(_ actions: inout [Action]) {
    actions += [
      .cancel(.acknowledgement), .cancel(.quiet), .cancel(.longestReading), .cancel(.reread),
    ]
    readings.present = nil
    postings.reset(&actions)
    rotation.grants.reset(&actions)
    outlets.postings.reset(&actions)
    rotation.hasWaited = false
    inviter?.disconnected(&actions)
    presences.disconnected(&actions)
    endComparison(&actions)
    speaker.disconnected(&actions)
  }

  mutating func becameLive(_ actions: inout [Action]) {
    beginComparison(&actions)
    exchangePresence(&actions)
    inviter?.becameLive(&actions)
    beginEpoch(&actions)
    openOutlets(&actions)
    publishSuccession(&actions)
    if speaker.state == .due, !hasLeft { speaker.request(isLive: true, after: 0...0, &actions) }
  }

  // MARK: Readings

  /// Starts a reading.
  ///
  /// - Parameter buckets: those in which another device knows something else; nil for all.
  mutating func read(isFirst: Bool = false, only buckets: [UInt8]? = nil, _ actions: inout [Action]) {
    readings.present = Reading(
      account: membership.account, ownTag: membership.tag, devices: roster.tags.count, isFirst: isFirst, only: buckets,
      &actions)
  }

  /// Plans to read the roster again, because this device can read more now.
  mutating func readAgain(isLive: Bool, _ actions: inout [Action]) {
    readings.beginAnew()
    if isLive, readings.present == nil { actions.append(.wake(.reread, after: Pace.newKey)) }
  }

  private mutating func acknowledged(_ filter: TopicFilter, _ actions: inout [Action]) {
    readings.present?.acknowledged(filter, &actions)
    inviter?.acknowledged(filter, &actions)
    switch filter {
    case .only(.device(_, let tag)): postings.acknowledged(tag, &actions)
    case .only(.grant(_, let tag)): rotation.grants.acknowledged(Grantee(tag: tag), &actions)
    case .only(let topic): outlets.postings.acknowledged(OfferPlace(topic: topic), &actions)
    case .roster, .bucket, .presences, .reports, .tokens: break
    }
  }

  /// Goes on with a reading after its silence.
  mutating func fellQuiet(_ actions: inout [Action]) -> Reading.Progress {
    guard var reading = readings.present else { return .unfinished }
    if reading.isAtKeys, rotation.isTaking, !rotation.hasWaited {
      rotation.hasWaited = true
      actions += [.cancel(.longestReading), .wake(.quiet, after: Pace.taking)]
      return .unfinished
    }
    let progress = reading.fellQuiet(&actions)
    readings.present = progress == .complete ? nil : reading
    guard progress == .complete else { return progress }
    let differing = comparison.read(own: roster.digest, &actions)
    for tag in roster.tags.sorted() where reading.isAbsent(tag) && !roster.isOld(tag, since: Pace.tombstone) {
      // A record that is about to be written takes the place of the absent one.
      if tag == membership.tag && speaker.state != .current && !hasLeft { continue }
      // Another device lacks something, so the broker has probably lost it.
      postings.missed(tag, isOwn: tag == membership.tag, isLost: differing != nil, &actions)
    }
    if let differing { repeatMessages(in: differing, &actions) }
    // After the first reading of a connection, this happens in any case.
    for tag in roster.tags.sorted() where !readings.areFresh && sealingEpoch(for: tag) != nil {
      rotation.grants.missed(Grantee(tag: tag), isOwn: false, &actions)
    }
    if !readings.areFresh { renewRemovals(&actions) }
    actions.append(.wake(.reread, after: readings.completed(counts: differing == nil, settings.resync)))
    return progress
  }

  // MARK: Messages

  private mutating func heard(
    _ tag: DeviceTag, _ shown: Shown, isRetained: Bool, isLive: Bool, _ actions: inout [Action]
  ) -> Ending? {
    // A broker can invent topics without end, so only those of known devices prolong a reading and use memory.
    defer { if isRetained, roster[tag] != nil { readings.present?.saw(tag, &actions) } }
    let isOwn = tag == membership.tag
    var rejection: Rejection?
    switch shown {
    case .nothing: if roster.isOld(tag, since: Pace.tombstone) { return nil }
    case .rejected(let reason): rejection = reason
    case .message(let message):
      switch roster.verdict(on: message, at: tag) {
      case .higher:
        let former = roster[tag]
        adopt(message, at: tag, &actions)
        if !isRetained, !isOwn, let former { noteOtherKey(of: message, at: tag, since: former, &actions) }
        keepReadable(isLive: isLive, &actions)
        if let former, isRemoval(former, ofAuthorOf: message), let removal = Removal(former.body.fields) {
          remove(tag, removal, &actions)
        }
        // A member can seal a message of version 1 anew, which says no more than that.
        return isOwn && former?.body != message.body ? heardOwn(message, isLive: isLive, &actions) : nil
      case .same:
        postings.sawKnown(tag, isRetained: isRetained, &actions)
        if isRetained, roster.isOld(tag, since: Pace.oldTombstone),
          allowances.use([.putBack, .hourlyPutBack], &actions)
        {
          actions.append(.clear(.device(membership.account, tag)))
        }
        // The broker has the tombstone with which this device leaves.
        return isOwn && isRetained && hasLeft ? removal(by: message) : nil
      case .lower: break
      case .older:
        if let known = roster[tag], isRemoval(known, ofAuthorOf: message) { renewRemoval(tag, &actions) }
        noticed(message, at: tag, &actions)
        return nil
      case .rejected(let reason): rejection = reason
      case .beyondBound:
        actions.append(.beyondBound)
        return nil
      }
    }
    if let rejection { actions.append(.dropped(rejection)) }
    guard let known = roster[tag] else { return nil }
    // A later release may have written a message of another version, and a member one of an epoch that this device has
    // yet to learn of. Only the author of the known message knows that this is not so, and else anybody at the broker
    // could hide a device for good.
    if rejection != .version && rejection != .epoch || known.body.author == membership.device {
      postings.sawInferior(tag, isRetained: isRetained, isOwn: isOwn, &actions)
    }
    return nil
  }

  /// Takes a message on a topic that is not that of a device.
  private mutating func arrived(
    _ topic: MessageTopic, _ shown: Shown, isRetained: Bool, _ actions: inout [Action]
  ) {
    switch (topic, shown) {
    case (.invitation, _), (.answer, _): inviter?.heard(topic, shown, isRetained: isRetained, &actions)
    case (.presence, .message(let message)), (.who, .message(let message)):
      // A broker that retains such a message says nothing about the present.
      if !isRetained { heardPresence(topic, message, &actions) }
    case (.grant(_, let tag), _): heardGrant(tag, shown, isRetained: isRetained, &actions)
    case (.report, _), (.tokens, _): heardOffer(topic, shown, isRetained: isRetained, &actions)
    case (.digest, .message(let message)): if !isRetained { heardDigest(message, &actions) }
    case (.feedback(let sender, let tag), .message(let message)):
      heardFeedback(from: sender, at: tag, message, &actions)
    case (_, .rejected(let reason)): actions.append(.dropped(reason))
    case (.presence, .nothing), (.who, .nothing), (.digest, .nothing), (.feedback, .nothing),
      (.device, _):
      break
    }
  }

  private mutating func adopt(_ message: SignedMessage, at tag: DeviceTag, _ actions: inout [Action]) {
    comparison.changed(isNews: roster.isNews(message, at: tag), &actions)
    roster.adopt(message, at: tag)
    postings.settle(tag, &actions)
    rotation.unsealable.remove(tag)
    endGrant(tag, &actions)
    actions.append(.store(tag, message))
  }

  /// Returns whether this device has removed the author of a record in an earlier epoch than that of the record: the
  /// device that made the later epoch did not know of the removal. Nobody else can renew it.
  private func isRemoval(_ known: SignedMessage, ofAuthorOf message: SignedMessage) -> Bool {
    known.kind == .tombstone && known.body.author == membership.device && message.kind == .record
      && message.epoch > known.epoch && message.body.generation <= known.body.generation
  }

  /// Takes a message about this device that this device has not written.
  private mutating func heardOwn(_ message: SignedMessage, isLive: Bool, _ actions: inout [Action]) -> Ending? {
    if message.kind == .tombstone {
      guard message.body.generation >= membership.generation else { return nil }
      return removal(by: message)
    }
    guard message.body.generation <= membership.generation else { return .superseded }
    // From before this device joined again.
    guard message.body.generation == membership.generation else { return nil }
    let before = twins.state
    switch twins.heard(message) {
    case .answer, .tell: speaker.request(isLive: isLive, after: 0...0, &actions)
    case .nothing: break
    }
    if twins.state != before { actions.append(.suspected(twins.state)) }
    return nil
  }

  func removal(by message: SignedMessage) -> Ending {
    let author = message.body.author
    let isOwn = author == membership.device
    let key = isOwn ? membership.description.signingKey : roster.record(of: author)?.signer
    // Only the device itself can leave, or take another identifier.
    let reason = isOwn ? Removal(message.body.fields)?.reason : nil
    return .removed(reason ?? .removed, by: author, isProven: message.signer == key)
  }

  // MARK: Deadlines

  /// Takes a deadline. Returns the end of the membership, if the deadline ends it.
  mutating func woke(_ timer: Deadline, isLive: Bool, _ actions: inout [Action]) -> Ending? {
    switch timer {
    case .reread: if isLive, readings.present == nil { read(&actions) }
    case .change: write(isLive: isLive, &actions)
    case .changeRest: speaker.endRest()
    case .heartbeat: speaker.request(isLive: isLive, after: Pace.change, &actions)
    case .posting(let tag): post(tag, isLive: isLive, &actions)
    case .removal(let tag): if let draft = removals[tag] { actions.append(.write(draft)) }
    case .twinSilence: if twins.fellSilent() { actions.append(.suspected(twins.state)) }
    case .refill(let purpose): allowances.fill(purpose, &actions)
    case .offer(let topic): proceedOffer(topic, isLive: isLive, &actions)
    case .offerRest(let topic): endOfferRest(topic, isLive: isLive, &actions)
    case .offerRefresh(let topic): refreshOffer(topic, isLive: isLive, &actions)
    case .grant(let tag): grant(tag, isLive: isLive, &actions)
    case .rotation: if isLive { contest(&actions) }
    case .leaving: return roster[membership.tag].map { removal(by: $0) }
    case .presence: tellPresence(isLive: isLive, &actions)
    case .digest: tellDigest(isLive: isLive, &actions)
    case .meeting: inviter?.proceed(isLive: isLive, &actions)
    case .invitation: inviter?.expired(isLive: isLive, &actions)
    case .keys, .connect, .acknowledgement, .quiet, .longestReading, .joining: break
    }
    if inviter?.isOver == true {
      inviter = nil
      actions.append(.invitationOver)
    }
    return nil
  }

  private mutating func post(_ tag: DeviceTag, isLive: Bool, _ actions: inout [Action]) {
    // Before the first reading is complete, nothing is published.
    guard isLive, let message = roster[tag] else { return postings.postpone(tag, &actions) }
    let topic = MessageTopic.device(membership.account, tag)
    switch postings.woke(tag, &actions) {
    case .wait: break
    case .ask: actions.append(.subscribe(.only(topic)))
    case .publish:
      guard allowances.use([.putBack, .hourlyPutBack], &actions) else { return postings.postpone(tag, &actions) }
      publish(message, on: topic, tag, &actions)
    }
  }

  mutating func publish(
    _ message: SignedMessage, on topic: MessageTopic, _ tag: DeviceTag, _ actions: inout [Action]
  ) {
    actions.append(.publish(topic, message))
    postings.published(tag, &actions)
  }
}
