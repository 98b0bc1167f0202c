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
  /// The greatest number of rotations at the same time of which this device learns the keys.
  static let mostLearned = 8

  /// Whether this device makes an epoch as soon as the removals are stored.
  var isPlanned = false
  /// Whether a key is drawn and stored.
  var isMaking = false
  /// The keys on their way to other devices.
  var grants = Postings<Grantee>()
  /// The epochs in which devices were seen that have no record of this device's epoch yet.
  var shown: [DeviceTag: UInt32] = [:]
  /// The keys of other rotations that this device knows, to read the messages of their devices.
  var learned: Set<UInt32> = []
  /// Whether a key that another device made is being stored.
  var isTaking = false
  /// Whether a reading has waited for that. It does so once in a connection.
  var hasWaited = false
}

extension Member {
  // MARK: A rotation at this device

  /// Removes devices, and makes a new epoch when that is stored: a device that is killed in between must not hand the
  /// key to a removed device.
  mutating func rotate(without removed: Set<DeviceTag>, isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !rotation.isPlanned, !rotation.isMaking, !hasLeft, epoch.next(by: membership.device) != nil else {
      return actions.append(.notRotated)
    }
    rotation.isPlanned = true
    for tag in removed.sorted() where tag != membership.tag { remove(tag, Removal(.removed), &actions) }
    continueRotation(&actions)
  }

  /// Goes on after the removals are stored.
  mutating func continueRotation(_ actions: inout [Action]) {
    guard rotation.isPlanned, removals.isEmpty,
      let next = epoch.next(by: membership.device, without: recentlyRemoved)
    else { return }
    rotation.isPlanned = false
    rotation.isMaking = true
    actions.append(.makeEpoch(next))
  }

  /// Ends the wait for a key, whether or not it could be stored.
  mutating func endKey(_ actions: inout [Action]) {
    if rotation.isTaking, reading?.isAtKeys == true { actions.append(.wake(.quiet, after: 0...0)) }
    rotation.isTaking = false
    rotation.isMaking = false
  }

  /// Takes an epoch whose key is stored.
  mutating func entered(_ next: Epoch, isLive: Bool, _ actions: inout [Action]) {
    endKey(&actions)
    guard next.number > epoch.number else { return }
    epoch = next
    roster.enter(next.number)
    speaker.request(isLive: isLive, after: 0...0, &actions)
    // The code of an open invitation leads to the former key.
    inviter?.expired(isLive: isLive, &actions)
    readAgain(isLive: isLive, &actions)
    if isLive { beginEpoch(&actions) }
  }

  /// Hands the key to the others, and rotates again if that is necessary.
  mutating func beginEpoch(_ actions: inout [Action]) {
    for tag in roster.tags.sorted() where sealingEpoch(for: tag) != nil && rotation.grants.isSettled(Grantee(tag: tag))
    {
      rotation.grants.schedule(Grantee(tag: tag), attempt: 0, after: Pace.grant, &actions)
    }
    renewRemovals(&actions)
    guard epoch.isContested, !rotation.isPlanned, !rotation.isMaking else { return }
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

  /// The devices that were removed shortly before the next epoch, first those that this device removed.
  private var recentlyRemoved: Set<UUID> {
    let gone = roster.tags.sorted().compactMap { roster[$0] }.filter { isRecentRemoval($0) }
    let own = gone.filter { $0.body.author == membership.device }
    let former = epoch.removed.filter { roster.record(of: $0).map { isRemoved($0) } ?? true }
    var removed: Set<UUID> = []
    for device in own.map(\.body.subject) + former + gone.map(\.body.subject) where removed.count < Epoch.mostRemoved {
      removed.insert(device)
    }
    return removed
  }

  private func isRecentRemoval(_ message: SignedMessage) -> Bool {
    message.kind == .tombstone && Epoch.rotations(message.epoch) + 1 >= epoch.rotations
  }

  /// Returns whether this device has removed another one in this epoch or the one before, so that a device that rotated
  /// at the same time may not know.
  private func hasRemoved(_ tag: DeviceTag) -> Bool {
    roster[tag].map { isRecentRemoval($0) && $0.body.author == membership.device } ?? false
  }

  // MARK: Keys for others

  /// Returns the epoch that seals the key for a device, one of which it has the key; nil if the device needs no key from
  /// this one.
  func sealingEpoch(for tag: DeviceTag) -> UInt32? {
    guard tag != membership.tag, let known = roster[tag], known.kind == .record,
      !isRemoved(known)
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
      guard allowances.use([.putBack, .hourlyPutBack], &actions) else {
        return rotation.grants.postpone(Grantee(tag: tag), &actions)
      }
      var fields = Fields()
      fields[.signingKey] = membership.description.signingKey.bytes
      fields[.epoch] = epoch.made.bigEndianBytes
      let removed = epoch.removed.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.prefix(Epoch.mostRemoved)
      fields[.removed] = removed.isEmpty ? nil : removed.flatMap(\.bytes)
      let draft = Draft(
        kind: .grant, subject: known.body.subject, tag: tag, generation: known.body.generation, counter: .exactly(0),
        epoch: sealing, fields: fields)
      actions.append(.grant(draft, to: boxKey))
    }
  }

  /// Takes a key for another device, which has been sealed.
  mutating func granted(_ tag: DeviceTag, _ message: SignedMessage, isLive: Bool, _ actions: inout [Action]) {
    guard isLive, isSufficient(message, at: tag) else { return }
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

  private mutating func take(_ message: SignedMessage, _ actions: inout [Action]) {
    guard let number = message.grantedEpoch else { return }
    if number > epoch.number, message.epoch == epoch.number {
      // The seal proves that its author has the present key. A removed device may have that, too.
      let author = message.body.author
      guard isByMember(message) || !roster.isKnown(author) && !epoch.removed.contains(author) else {
        return actions.append(.dropped(.author))
      }
      // A rotation from this device's own epoch knows whom this device had removed. Another one may not.
      let isRival = epoch.made == epoch.number && Epoch.rotations(number) != epoch.rotations + 1
      let isContested = isRival && roster.tags.contains { hasRemoved($0) }
      rotation.isTaking = true
      let removed = message.body.fields[.removed].map { UUID.set($0) } ?? []
      let next = Epoch(
        number: number, former: epoch.number, made: epoch.made, isContested: isContested,
        removed: epoch.made > 0 ? removed.union(epoch.removed.prefix(Epoch.mostRemoved)) : removed)
      actions.append(.takeEpoch(next, message))
    } else if number < epoch.made, number != epoch.former, rotation.learned.count < Rotation.mostLearned,
      !rotation.learned.contains(number)
    {
      guard isByMember(message) else { return actions.append(.dropped(.author)) }
      // The devices that have taken this key can read nothing that is sealed with an earlier one only.
      rotation.learned.insert(number)
      actions.append(.learnEpoch(number, message))
    }
  }
}

extension SignedMessage {
  /// The number of the epoch that a grant is about; nil for another message.
  var grantedEpoch: UInt32? { kind == .grant ? body.fields[.epoch].map { UInt32(bigEndian: $0) } : nil }
}
