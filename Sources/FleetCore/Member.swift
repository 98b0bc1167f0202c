import FleetWire
import IdentityCore

/// The rules of a device that is in an account.
struct Member: Sendable {
  private(set) var membership: Membership
  let settings: Settings
  private(set) var roster: Roster
  private var postings = Postings<DeviceTag>()
  private var reading: Reading?
  /// The number of readings that this connection has completed.
  private var readings = 0
  private var speaker: Speaker
  private(set) var twins: TwinWatch
  private var removals: [DeviceTag: Draft] = [:]
  private var allowances = Allowances()
  private var inviter: Inviter?
  var presences = Presences()
  /// The time that the service told last.
  private var now: Timestamp?

  init(_ membership: Membership, _ roster: Roster, _ settings: Settings) {
    self.membership = membership
    self.roster = roster
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
    speaker.state == .current && removals.isEmpty && roster.tags.allSatisfy { postings.isSettled($0) }
  }

  /// Takes an input about messages. Returns the end of the membership, if the input ends it.
  mutating func take(_ input: Input, isLive: Bool, _ actions: inout [Action]) -> Ending? {
    switch input {
    case .subscribed(let filter): acknowledged(filter, &actions)
    case .heard(let tag, let shown, let isRetained):
      return heard(tag, shown, isRetained: isRetained, isLive: isLive, &actions)
    case .wrote(let tag, let message): return wrote(tag, message, isLive: isLive, &actions)
    case .notWritten(let draft): notWritten(draft, isLive: isLive, &actions)
    case .described(let description): speaker.describe(description, isLive: isLive, &actions)
    case .forgotten(let tag): remove(tag, Removal(.removed), &actions)
    case .leave: return leave(&actions)
    case .renewed(let membership): renew(membership, isLive: isLive, &actions)
    case .arrived(let topic, let shown, let isRetained):
      arrived(topic, shown, isRetained: isRetained, &actions)
    case .invite(let invitation, let rendezvous):
      if inviter?.isOpen == true { inviter?.expired(isLive: isLive, &actions) }
      inviter = Inviter(invitation, at: rendezvous, isLive: isLive, &actions)
    case .askWho: if isLive { askWho(&actions) }
    case .dated(let time): now = time
    case .started, .connected, .refused, .disconnected, .reconsider, .answered, .woke: break
    }
    return nil
  }

  // MARK: Connections

  mutating func connected(_ actions: inout [Action]) {
    readings = 0
    read(isFirst: true, &actions)
  }

  mutating func disconnected(_ actions: inout [Action]) {
    actions += [
      .cancel(.acknowledgement), .cancel(.quiet), .cancel(.longestReading), .cancel(.reread),
    ]
    reading = nil
    postings.reset(&actions)
    inviter?.disconnected(&actions)
    presences.disconnected(&actions)
    speaker.disconnected(&actions)
  }

  mutating func becameLive(_ actions: inout [Action]) {
    exchangePresence(&actions)
    inviter?.becameLive(&actions)
    if speaker.state == .due, !hasLeft { speaker.request(isLive: true, after: 0...0, &actions) }
  }

  // MARK: Readings

  private mutating func read(isFirst: Bool, _ actions: inout [Action]) {
    reading = Reading(
      account: membership.account, ownTag: membership.tag, devices: roster.tags.count, isFirst: isFirst, &actions)
  }

  private mutating func acknowledged(_ filter: TopicFilter, _ actions: inout [Action]) {
    reading?.acknowledged(filter, &actions)
    inviter?.acknowledged(filter, &actions)
    if case .only(let topic) = filter, let tag = topic.tag { postings.acknowledged(tag, &actions) }
  }

  /// Goes on with a reading after its silence.
  mutating func fellQuiet(_ actions: inout [Action]) -> Reading.Progress {
    guard var reading else { return .unfinished }
    let progress = reading.fellQuiet(&actions)
    self.reading = reading
    guard progress == .complete else { return progress }
    self.reading = nil
    for tag in roster.tags.sorted() where !reading.seen.contains(tag) && !isOld(tag, since: Pace.tombstone) {
      // A record that is about to be written takes the place of the absent one.
      if tag == membership.tag && speaker.state != .current && !hasLeft { continue }
      postings.missed(tag, isOwn: tag == membership.tag, &actions)
    }
    let delay =
      readings < Pace.rereadings.count ? Pace.rereadings[readings] : Pace.about(settings.resync, percent: 20)
    actions.append(.wake(.reread, after: delay))
    readings += 1
    return progress
  }

  // MARK: Messages

  private mutating func heard(
    _ tag: DeviceTag, _ shown: Shown, isRetained: Bool, isLive: Bool, _ actions: inout [Action]
  ) -> Ending? {
    // A broker can invent topics without end, so only those of known devices prolong a reading and use memory.
    defer { if isRetained, roster[tag] != nil { reading?.saw(tag, &actions) } }
    let isOwn = tag == membership.tag
    var rejection: Rejection?
    switch shown {
    case .nothing: if isOld(tag, since: Pace.tombstone) { return nil }
    case .rejected(let reason): rejection = reason
    case .message(let message):
      switch roster.verdict(on: message, at: tag) {
      case .higher:
        adopt(message, at: tag, &actions)
        return isOwn ? heardOwn(message, isLive: isLive, &actions) : nil
      case .same:
        postings.sawKnown(tag, isRetained: isRetained, &actions)
        if isRetained, isOld(tag, since: Pace.oldTombstone), allowances.use([.putBack, .hourlyPutBack], &actions) {
          actions.append(.clear(.device(membership.account, tag)))
        }
        // The broker has the tombstone with which this device leaves.
        return isOwn && isRetained && hasLeft ? removal(by: message) : nil
      case .lower: break
      case .rejected(let reason): rejection = reason
      case .beyondBound:
        actions.append(.beyondBound)
        return nil
      }
    }
    if let rejection { actions.append(.dropped(rejection)) }
    guard let known = roster[tag] else { return nil }
    // A later release may have written a message of another version. Only the author of the known message knows that
    // this is not so, and else anybody at the broker could hide a device for good.
    if rejection != .version || known.body.author == membership.device {
      postings.sawInferior(tag, isRetained: isRetained, isOwn: isOwn, &actions)
    }
    return nil
  }

  /// Returns whether a device was removed so long ago that the broker need not have its tombstone. This device keeps it.
  private func isOld(_ tag: DeviceTag, since age: Int64) -> Bool {
    guard let now, let known = roster[tag], known.kind == .tombstone else { return false }
    let (passed, isTooGreat) = now.milliseconds.subtractingReportingOverflow(known.body.time.milliseconds)
    return isTooGreat ? known.body.time < now : passed > age
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
    case (_, .rejected(let reason)): actions.append(.dropped(reason))
    case (.presence, .nothing), (.who, .nothing), (.device, _), (.grant, _): break
    }
  }

  private mutating func adopt(_ message: SignedMessage, at tag: DeviceTag, _ actions: inout [Action]) {
    roster.adopt(message, at: tag)
    postings.settle(tag, &actions)
    actions.append(.store(tag, message))
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

  private func removal(by message: SignedMessage) -> Ending {
    .removed(Removal(message.body.fields)?.reason ?? .removed, by: message.body.author)
  }

  // MARK: Writing

  private mutating func write(isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !hasLeft else { return }
    guard allowances.use([.change, .dailyChange], &actions) else {
      return speaker.request(isLive: true, after: Pace.retriedChange, &actions)
    }
    let known = roster[membership.tag].map { $0.body.generation == membership.generation ? $0.body.counter : 0 }
    actions.append(
      .write(
        Draft(
          kind: .record, subject: membership.device, tag: membership.tag, generation: membership.generation,
          counter: .next(above: known ?? 0), fields: speaker.begin(twin: twins.mark))))
  }

  /// Whether a tombstone of this device's generation is known.
  private var hasLeft: Bool {
    guard let known = roster[membership.tag] else { return false }
    return known.kind == .tombstone && known.body.generation >= membership.generation
  }

  /// Takes a message that this device has written and stored.
  private mutating func wrote(
    _ tag: DeviceTag, _ message: SignedMessage, isLive: Bool, _ actions: inout [Action]
  ) -> Ending? {
    let isHigher = roster.verdict(on: message, at: tag) == .higher
    if message.kind == .tombstone {
      removals[tag] = nil
      if tag == membership.tag { actions.append(.wake(.leaving, after: Pace.leaving)) }
    } else {
      let heartbeat = twins.mark == nil ? settings.heartbeat : 2 * settings.heartbeat
      actions.append(.wake(.heartbeat, after: Pace.about(heartbeat, percent: 10)))
    }
    if isHigher {
      roster.adopt(message, at: tag)
      postings.settle(tag, &actions)
      // The rest of a reading cannot show this message.
      reading?.forget(tag)
      if isLive { publish(message, on: .device(membership.account, tag), tag, &actions) }
    }
    guard message.kind == .record else { return nil }
    if isHigher, twins.answered() { actions.append(.wake(.twinSilence, after: Pace.twinSilence)) }
    speaker.wrote(isOutranked: !isHigher, isLive: isLive, &actions)
    return nil
  }

  private mutating func notWritten(_ draft: Draft, isLive: Bool, _ actions: inout [Action]) {
    if draft.kind == .tombstone {
      actions.append(.wake(.removal(draft.tag), after: Pace.retriedChange))
    } else {
      speaker.notWritten(isLive: isLive, &actions)
    }
  }

  private mutating func remove(_ tag: DeviceTag, _ removal: Removal, _ actions: inout [Action]) {
    guard let known = roster[tag], known.kind == .record, removals[tag] == nil else { return }
    let (counter, isTooGreat) = known.body.counter.addingReportingOverflow(1)
    let draft = Draft(
      kind: .tombstone, subject: known.body.subject, tag: tag,
      // The record of this generation may still be unwritten, and is then never written.
      generation: tag == membership.tag ? membership.generation : known.body.generation,
      // A tombstone outranks the records of its generation whatever its counter is.
      counter: .exactly(isTooGreat ? .max : counter),
      fields: removal.fields(signingKey: membership.description.signingKey))
    removals[tag] = draft
    actions.append(.write(draft))
  }

  /// Leaves the account. Returns the end of the membership if this device has no message at the broker.
  private mutating func leave(_ actions: inout [Action]) -> Ending? {
    guard let known = roster[membership.tag],
      known.kind == .record || known.body.generation >= membership.generation
    else { return .removed(.left, by: membership.device) }
    remove(membership.tag, Removal(.left), &actions)
    return nil
  }

  private mutating func renew(_ next: Membership, isLive: Bool, _ actions: inout [Action]) {
    let former = membership.tag
    membership = next
    twins = TwinWatch(next, last: nil)
    speaker.describe(next.description, isLive: isLive, &actions)
    remove(former, Removal(.replaced, successor: next.device), &actions)
  }

  // MARK: Deadlines

  /// Takes a deadline. Returns the end of the membership, if the deadline ends it.
  mutating func woke(_ timer: Deadline, isLive: Bool, _ actions: inout [Action]) -> Ending? {
    switch timer {
    case .reread: if isLive, reading == nil { read(isFirst: false, &actions) }
    case .change: write(isLive: isLive, &actions)
    case .heartbeat: speaker.request(isLive: isLive, after: Pace.change, &actions)
    case .posting(let tag): post(tag, isLive: isLive, &actions)
    case .removal(let tag): if let draft = removals[tag] { actions.append(.write(draft)) }
    case .twinSilence: if twins.fellSilent() { actions.append(.suspected(twins.state)) }
    case .refill(let purpose): allowances.fill(purpose, &actions)
    case .leaving: return roster[membership.tag].map { removal(by: $0) }
    case .presence: tellPresence(isLive: isLive, &actions)
    case .meeting: inviter?.proceed(isLive: isLive, &actions)
    case .invitation: inviter?.expired(isLive: isLive, &actions)
    case .keys, .connect, .acknowledgement, .quiet, .longestReading, .joining: break
    }
    if inviter?.isOver == true { inviter = nil }
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

  private mutating func publish(
    _ message: SignedMessage, on topic: MessageTopic, _ tag: DeviceTag, _ actions: inout [Action]
  ) {
    actions.append(.publish(topic, message))
    postings.published(tag, &actions)
  }
}
