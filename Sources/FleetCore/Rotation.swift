import FleetWire
import IdentityCore

/// The topic of a device for the keys that it gets.
struct Grantee: PostingPlace {
  /// The tag of the device.
  let tag: DeviceTag

  var deadline: Deadline { .grant(tag) }

  static func < (left: Self, right: Self) -> Bool { left.tag < right.tag }
}

/// The rotation of the account's key: what this device hands to others, and takes from them.
struct Rotation: Sendable {
  /// The greatest number of keys of other rotations that this device knows: those with the greatest numbers.
  static let mostLearned = 8

  /// The epoch in which this device writes.
  fileprivate(set) var epoch: Epoch
  /// Whether this device makes an epoch as soon as the removals are stored.
  var isPlanned = false
  /// The epoch whose key is being stored. There is one at a time: what follows from an epoch is computed from the one
  /// before.
  var pending: Epoch?
  /// The keys on their way to other devices.
  var grants = Postings<Grantee>()
  /// The epochs in which devices were seen that have no record of this device's epoch yet.
  var shown: [DeviceTag: UInt32] = [:]
  /// The devices that get no key, because nothing can be sealed to the X25519 keys in their records.
  var unsealable: Set<DeviceTag> = []
  /// The keys of other rotations that this device knows, to read the messages of their devices.
  var learned: Set<UInt32>
  /// Whether a reading has waited for that. It does so once in a connection.
  var hasWaited = false

  /// Starts with the epoch and the keys of other rotations that are stored.
  init(_ membership: Membership) { (epoch, learned) = (membership.epoch, membership.learned) }

  /// Whether a key is drawn and stored.
  var isMaking: Bool { pending.map { $0.made == $0.number } ?? false }
  /// Whether a key that another device made is being stored.
  var isTaking: Bool { pending != nil && !isMaking }

  /// Returns whether the key of another rotation is to be learned.
  func isWanted(_ number: UInt32) -> Bool {
    !learned.contains(number) && (learned.count < Self.mostLearned || learned.contains { $0 < number })
  }

  /// Notes a key that is being stored, in place of that with the least number.
  mutating func learn(_ number: UInt32) {
    learned.insert(number)
    if learned.count > Self.mostLearned, let least = learned.min() { learned.remove(least) }
  }
}

extension Member {
  /// The epoch in which this device writes.
  var epoch: Epoch { rotation.epoch }

  // MARK: A rotation at this device

  /// Removes devices, and makes a new epoch when that is stored: a device that is killed in between must not hand the
  /// key to a removed device.
  mutating func rotate(without removed: Set<DeviceTag>, isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !rotation.isPlanned, !rotation.isMaking, !hasLeft, epoch.next(by: membership.tag) != nil else {
      return actions.append(.notRotated)
    }
    rotation.isPlanned = true
    for tag in removed.sorted() where tag != membership.tag { remove(tag, Removal(.removed), &actions) }
    continueRotation(&actions)
  }

  /// Goes on after the removals are stored, and after a key that another device made.
  mutating func continueRotation(_ actions: inout [Action]) {
    guard rotation.isPlanned, removals.isEmpty, rotation.pending == nil, !hasLeft else { return }
    rotation.isPlanned = false
    guard let next = epoch.next(by: membership.tag, without: removed(naming: [])) else {
      return actions.append(.notRotated)
    }
    rotation.pending = next
    actions.append(.makeEpoch(next))
  }

  /// Ends the wait for a key, whether or not it could be stored.
  private mutating func endKey(_ number: UInt32, _ actions: inout [Action]) {
    guard rotation.pending?.number == number else { return }
    if rotation.isTaking, readings.present?.isAtKeys == true { actions.append(.wake(.quiet, after: 0...0)) }
    rotation.pending = nil
  }

  /// Goes on without a key that could not be stored.
  mutating func notEntered(_ number: UInt32, isLive: Bool, _ actions: inout [Action]) {
    let isOwn = rotation.isMaking && rotation.pending?.number == number
    endKey(number, &actions)
    if epoch.isContested {
      actions.append(.wake(.rotation, after: Pace.retriedChange))
    } else if isOwn {
      actions.append(.notRotated)
    }
    // A key that another device made was left alone meanwhile.
    if isOwn, isLive { actions.append(.subscribe(.only(.grant(membership.account, membership.tag)))) }
    continueRotation(&actions)
  }

  /// Takes an epoch whose key is stored.
  mutating func entered(_ next: Epoch, isLive: Bool, _ actions: inout [Action]) {
    endKey(next.number, &actions)
    guard next.number > epoch.number else { return continueRotation(&actions) }
    rotation.epoch = next
    roster.enter(next.number)
    speaker.request(isLive: isLive, after: 0...0, &actions)
    // The code of an open invitation leads to the former key.
    inviter?.expired(isLive: isLive, &actions)
    readAgain(isLive: isLive, &actions)
    if isLive { beginEpoch(&actions) }
    continueRotation(&actions)
  }

  /// Hands the key to the others, and rotates again if that is necessary.
  mutating func beginEpoch(_ actions: inout [Action]) {
    let waiting = grantees.filter { sealingEpoch(for: $0) != nil && rotation.grants.isSettled(Grantee(tag: $0)) }
    for (index, tag) in waiting.enumerated() {
      rotation.grants.schedule(Grantee(tag: tag), attempt: 0, after: Pace.grant(index), &actions)
    }
    renewRemovals(&actions)
    contest(&actions)
  }

  /// The devices in the order in which they get a key: those that are connected, as far as they tell, then those whose
  /// records are the latest. A device that is away gets its key when it comes back.
  private var grantees: [DeviceTag] {
    let present = present
    return roster.latestFirst(present) + roster.latestFirst(roster.tags.filter { !present.contains($0) })
  }

  /// Rotates again if the device that made the key may have handed it to one that this device had removed.
  mutating func contest(_ actions: inout [Action]) {
    guard epoch.isContested, rotation.pending == nil, !hasLeft, epoch.next(by: membership.tag) != nil else { return }
    // Each device can read these tombstones. The former ones count for less than a record of the present epoch.
    rotation.isPlanned = true
    for tag in roster.tags.sorted() where hasRemoved(tag) { renewRemoval(tag, &actions) }
    continueRotation(&actions)
  }

  /// Writes removals again that a device which gets the key of this epoch could not read, because it has been away since
  /// an earlier epoch. The next reading goes on with those beyond the bound.
  mutating func renewRemovals(_ actions: inout [Action]) {
    guard let lowest = roster.tags.compactMap({ sealingEpoch(for: $0) }).min() else { return }
    let unreadable = roster.tags.filter { tag in
      roster[tag].map { $0.kind == .tombstone && $0.epoch > lowest && $0.epoch < epoch.number } ?? false
    }
    for tag in unreadable.sorted().prefix(Pace.mostRenewals) { renewRemoval(tag, &actions) }
  }

  /// Returns the devices that get no key in the next epoch: those that this device removed shortly before, those that the
  /// key names, those of the former epoch that have not joined again, and others that were removed shortly before.
  private func removed(naming named: [UUID]) -> [UUID] {
    let gone = roster.tags.sorted().compactMap { roster[$0] }.filter { isRecentRemoval($0) }
    let own = gone.filter { $0.body.author == membership.device }
    let former = epoch.removed.filter { roster.record(of: $0).map { isRemoved($0) } ?? true }
    var known: Set<UUID> = []
    let all = own.map(\.body.subject) + named + former + gone.map(\.body.subject)
    return Array(all.filter { known.insert($0).inserted }.prefix(Epoch.mostRemoved))
  }

  private func isRecentRemoval(_ message: SignedMessage) -> Bool {
    message.kind == .tombstone && Epoch.rotations(message.epoch) + 1 >= epoch.rotations
  }

  /// Returns whether this device has removed another one in this epoch or the one before, or before that and since named
  /// with the keys. A device that rotated at the same time may not know.
  private func hasRemoved(_ tag: DeviceTag) -> Bool {
    guard let known = roster[tag], known.kind == .tombstone, known.body.author == membership.device else {
      return false
    }
    return isRecentRemoval(known) || epoch.removed.contains(known.body.subject)
  }

  /// Whether there are other devices, and all wrote their records in earlier epochs.
  var isAloneInEpoch: Bool {
    let others = roster.tags.filter { $0 != membership.tag }.compactMap { roster[$0] }.filter { $0.kind == .record }
    return !others.isEmpty && others.allSatisfy { $0.epoch < epoch.number }
  }

  // MARK: Keys for others

  /// Returns the epoch that seals the key for a device, one of which it has the key; nil if the device needs no key from
  /// this one.
  func sealingEpoch(for tag: DeviceTag) -> UInt32? {
    guard tag != membership.tag, let known = roster[tag], known.kind == .record, !isRemoved(known),
      !rotation.unsealable.contains(tag)
    else { return nil }
    let shown = max(known.epoch, rotation.shown[tag] ?? 0)
    return shown < epoch.made ? shown : nil
  }

  /// Notes a message of a device that has no record in this device's epoch.
  mutating func noticed(_ message: SignedMessage, at tag: DeviceTag, _ actions: inout [Action]) {
    guard let sealing = sealingEpoch(for: tag), message.kind == .record, message.signer == roster[tag]?.signer,
      message.epoch > sealing
    else { return }
    rotation.shown[tag] = message.epoch
    guard sealingEpoch(for: tag) != nil else { return rotation.grants.settle(Grantee(tag: tag), &actions) }
    rotation.grants.schedule(Grantee(tag: tag), attempt: 0, after: Pace.ownPutBack, &actions)
  }

  /// Forgets the key for a device that has written in this device's epoch, or is removed.
  mutating func endGrant(_ tag: DeviceTag, _ actions: inout [Action]) {
    rotation.shown[tag] = nil
    guard sealingEpoch(for: tag) == nil else { return }
    rotation.grants.settle(Grantee(tag: tag), &actions)
  }

  /// Takes the next step of handing a key to a device.
  mutating func grant(_ tag: DeviceTag, isLive: Bool, _ actions: inout [Action]) {
    guard let sealing = sealingEpoch(for: tag), let known = roster[tag],
      let boxKey = DeviceDescription(known.body.fields)?.boxKey
    else { return rotation.grants.settle(Grantee(tag: tag), &actions) }
    guard isLive else { return rotation.grants.postpone(Grantee(tag: tag), &actions) }
    switch rotation.grants.woke(Grantee(tag: tag), &actions) {
    case .wait: break
    case .ask: actions.append(.subscribe(.only(.grant(membership.account, tag))))
    case .publish:
      guard allowances.use([.grant], &actions) else {
        return rotation.grants.postpone(Grantee(tag: tag), &actions)
      }
      var fields = Fields()
      fields[.signingKey] = membership.description.signingKey.bytes
      fields[.epoch] = epoch.made.bigEndianBytes
      fields[.removed] = epoch.removed.isEmpty ? nil : epoch.removed.flatMap(\.bytes)
      let draft = Draft(
        kind: .grant, subject: known.body.subject, tag: tag, generation: known.body.generation, counter: .exactly(0),
        epoch: sealing, fields: fields)
      actions.append(.grant(draft, to: boxKey))
    }
  }

  /// Hands no key to a device until its record changes.
  mutating func noteUnsealable(_ tag: DeviceTag, _ actions: inout [Action]) {
    rotation.unsealable.insert(tag)
    rotation.grants.settle(Grantee(tag: tag), &actions)
  }

  /// Takes a key for another device, which has been sealed.
  mutating func granted(_ tag: DeviceTag, _ message: SignedMessage, isLive: Bool, _ actions: inout [Action]) {
    guard isLive else { return }
    guard isSufficient(message, at: tag) else {
      // The device has written in another epoch meanwhile, or this one has made another key, which is still to be handed.
      if !rotation.grants.isSettled(Grantee(tag: tag)) { rotation.grants.postpone(Grantee(tag: tag), &actions) }
      return
    }
    actions.append(.publish(.grant(membership.account, tag), message))
    rotation.grants.published(Grantee(tag: tag), &actions)
  }

  /// Returns whether a message hands the key that this device made, or a later one, to a device that can read it.
  private func isSufficient(_ message: SignedMessage, at tag: DeviceTag) -> Bool {
    (message.grantedEpoch ?? 0) >= epoch.made && message.epoch == sealingEpoch(for: tag)
  }

  // MARK: Keys from others

  /// Takes what the broker shows on the topic for the keys of a device.
  mutating func heardGrant(_ tag: DeviceTag, _ shown: Shown, isRetained: Bool, _ actions: inout [Action]) {
    guard tag == membership.tag else {
      if case .message(let message) = shown, isSufficient(message, at: tag), isByMember(message) {
        rotation.grants.sawKnown(Grantee(tag: tag), isRetained: isRetained, &actions)
      } else if sealingEpoch(for: tag) != nil {
        rotation.grants.sawInferior(Grantee(tag: tag), isRetained: isRetained, isOwn: false, &actions)
      }
      return
    }
    switch shown {
    case .message(let message): take(message, &actions)
    case .rejected(let reason): actions.append(.dropped(reason))
    case .nothing: break
    }
  }

  /// Returns whether the author of a record was removed before this epoch, and has not joined again since.
  private func isRemoved(_ record: SignedMessage) -> Bool {
    record.epoch < epoch.number && epoch.removed.contains(record.body.subject)
  }

  /// Returns whether a device has signed a message that this device knows, and that is not removed.
  private func isByMember(_ message: SignedMessage) -> Bool {
    roster.record(of: message.body.author).map { $0.signer == message.signer && !isRemoved($0) } ?? false
  }

  /// Returns the epoch that this device enters with a key of another one, and with the removed devices that the message
  /// with the key names.
  private func following(_ number: UInt32, with message: SignedMessage) -> Epoch {
    let named = message.body.fields[.removed].map { UUID.list($0) } ?? []
    // The device that made the key may have handed it to a device that it does not name. A full list leaves names out,
    // and two devices that removed many must not rotate against each other without end.
    let isContested =
      named.count < Epoch.mostRemoved
      && roster.tags.contains { hasRemoved($0) && roster[$0].map { !named.contains($0.body.subject) } ?? false }
    return Epoch(
      number: number, former: epoch.number, made: epoch.made, isContested: isContested, removed: removed(naming: named))
  }

  /// Returns what an invitation to this device's own account gives it, as a key on its topic would.
  func offered(by invitation: SignedMessage) -> OfferedKey {
    guard isByMember(invitation) else { return .stranger }
    guard let number = invitation.body.fields[.epoch].map({ UInt32(bigEndian: $0) }) else { return .nothing }
    if epoch.admits(number) { return .epoch(following(number, with: invitation)) }
    return number < epoch.number && rotation.isWanted(number) ? .reading(number) : .nothing
  }

  private mutating func take(_ message: SignedMessage, _ actions: inout [Action]) {
    guard let number = message.grantedEpoch else { return }
    if number > epoch.number, message.epoch == epoch.number {
      // The topic is read again after the key that is being stored.
      guard rotation.pending == nil else { return }
      guard epoch.admits(number) else { return actions.append(.dropped(.epoch)) }
      // The seal proves that its author has the present key. A removed device may have that, too.
      let author = message.body.author
      guard isByMember(message) || !roster.isKnown(author) && !epoch.removed.contains(author) else {
        return actions.append(.dropped(.author))
      }
      let next = following(number, with: message)
      rotation.pending = next
      actions.append(.takeEpoch(next, message))
    } else if number < epoch.made, number != epoch.former, rotation.isWanted(number) {
      guard isByMember(message) else { return actions.append(.dropped(.author)) }
      // The devices that have taken this key can read nothing that is sealed with an earlier one only.
      rotation.learn(number)
      actions.append(.learnEpoch(number, message))
    }
  }
}

/// The use of an invitation for a device that is in its account already.
package enum OfferedKey: Sendable {
  /// The key of a later epoch, which this device enters.
  case epoch(Epoch)
  /// The key of another rotation, to read what it seals.
  case reading(UInt32)
  /// None: the device has the key, or its number is not possible.
  case nothing
  /// None: no member has signed the invitation, as far as this device knows.
  case stranger
}

extension SignedMessage {
  /// The number of the epoch that a grant is about; nil for another message.
  var grantedEpoch: UInt32? { kind == .grant ? body.fields[.epoch].map { UInt32(bigEndian: $0) } : nil }
}
