import FleetWire

/// The messages that this device writes: its record, and removals.
extension Member {
  mutating func write(isLive: Bool, _ actions: inout [Action]) {
    guard isLive, !hasLeft else { return }
    guard allowances.use([.change, .lastingChange], &actions) else {
      return speaker.request(isLive: true, after: Pace.retriedChange, &actions)
    }
    let known = roster[membership.tag].map { $0.body.generation == membership.generation ? $0.body.counter : 0 }
    actions.append(
      .write(
        Draft(
          kind: .record, subject: membership.device, tag: membership.tag, generation: membership.generation,
          counter: .next(above: known ?? 0), epoch: epoch.number, fields: speaker.begin(twin: twins.mark))))
  }

  /// Writes the own record again if a device has come that does not read the record's version. Such records of others are
  /// their authors' to write.
  mutating func keepReadable(isLive: Bool, _ actions: inout [Action]) {
    guard let own = roster[membership.tag], own.kind == .record, own.version > roster.version, speaker.state == .current
    else { return }
    speaker.request(isLive: isLive, after: Pace.readable, &actions)
  }

  /// Whether a tombstone of this device's generation is known.
  var hasLeft: Bool {
    guard let known = roster[membership.tag] else { return false }
    return known.kind == .tombstone && known.body.generation >= membership.generation
  }

  /// Takes a message that this device has written and stored.
  mutating func wrote(
    _ tag: DeviceTag, _ message: SignedMessage, isLive: Bool, _ actions: inout [Action]
  ) -> Ending? {
    guard message.kind != .grant else {
      granted(tag, message, isLive: isLive, &actions)
      return nil
    }
    let isHigher = roster.verdict(on: message, at: tag) == .higher
    if message.kind == .tombstone {
      removals[tag] = nil
      // This device has learned of a rotation while it wrote.
      if !isHigher, message.epoch < epoch.number, let known = roster[tag],
        known.body.generation <= message.body.generation, let removal = Removal(message.body.fields)
      {
        remove(tag, removal, &actions)
      }
      if tag == membership.tag { actions.append(.wake(.leaving, after: Pace.leaving)) }
    } else {
      actions.append(.wake(.heartbeat, after: heartbeat))
    }
    if isHigher {
      comparison.changed(isNews: roster.isNews(message, at: tag), &actions)
      roster.adopt(message, at: tag)
      postings.settle(tag, &actions)
      endGrant(tag, &actions)
      // The rest of a reading cannot show this message.
      readings.present?.forget(tag)
      if isLive { publish(message, on: .device(membership.account, tag), tag, &actions) }
    }
    guard message.kind == .record else {
      continueRotation(&actions)
      return nil
    }
    if isHigher, isLive { beginPresence(&actions) }
    if isHigher, twins.answered() { actions.append(.wake(.twinSilence, after: Pace.twinSilence)) }
    // A device of an earlier release may have come meanwhile.
    speaker.wrote(isOutranked: !isHigher || message.version > roster.version, isLive: isLive, &actions)
    return nil
  }

  mutating func notWritten(_ draft: Draft, isLive: Bool, _ actions: inout [Action]) {
    if draft.kind == .grant {
      rotation.grants.postpone(Grantee(tag: draft.tag), &actions)
    } else if draft.kind == .tombstone {
      actions.append(.wake(.removal(draft.tag), after: Pace.retriedChange))
    } else {
      speaker.notWritten(isLive: isLive, &actions)
    }
  }

  mutating func remove(_ tag: DeviceTag, _ removal: Removal, _ actions: inout [Action]) {
    guard let known = roster[tag], known.kind == .record else { return }
    writeRemoval(removal, of: known, at: tag, &actions)
  }

  /// Writes a removal of an earlier epoch again.
  mutating func renewRemoval(_ tag: DeviceTag, _ actions: inout [Action]) {
    guard let known = roster[tag], known.kind == .tombstone, known.epoch < epoch.number,
      let removal = Removal(known.body.fields)
    else { return }
    writeRemoval(removal, of: known, at: tag, &actions)
  }

  private mutating func writeRemoval(
    _ removal: Removal, of known: SignedMessage, at tag: DeviceTag, _ actions: inout [Action]
  ) {
    guard removals[tag] == nil else { return }
    let (counter, isTooGreat) = known.body.counter.addingReportingOverflow(1)
    let draft = Draft(
      kind: .tombstone, subject: known.body.subject, tag: tag,
      // The record of this generation may still be unwritten, and is then never written.
      generation: tag == membership.tag ? membership.generation : known.body.generation,
      // A tombstone outranks the records of its generation whatever its counter is.
      counter: .exactly(isTooGreat ? .max : counter), epoch: epoch.number,
      fields: removal.fields(signingKey: membership.description.signingKey))
    removals[tag] = draft
    actions.append(.write(draft))
  }

  /// Leaves the account. Returns the end of the membership if this device has no message at the broker.
  mutating func leave(isLive: Bool, _ actions: inout [Action]) -> Ending? {
    guard let known = roster[membership.tag],
      known.kind == .record || known.body.generation >= membership.generation
    else { return .removed(.left, by: membership.device, isProven: true) }
    withdrawAll(isLive: isLive, &actions)
    remove(membership.tag, Removal(.left), &actions)
    return nil
  }

  mutating func renew(_ next: Membership, isLive: Bool, _ actions: inout [Action]) {
    withdrawAll(isLive: isLive, &actions)
    let former = membership.tag
    membership = next
    twins = TwinWatch(next, last: nil)
    speaker.describe(next.description, isLive: isLive, &actions)
    remove(former, Removal(.replaced, successor: next.device), &actions)
  }

  /// Publishes the tombstone of this device's earlier identifier, if the broker lacks it, before the own record: in this
  /// order, the others take both for one change.
  mutating func publishSuccession(_ actions: inout [Action]) {
    let former = roster.tags.filter { tag in
      guard !postings.isSettled(tag), let known = roster[tag], known.kind == .tombstone else { return false }
      // Another member could name this device as the successor of any number of devices.
      return [known.body.subject, membership.device].contains(known.body.author)
        && Removal(known.body.fields)?.successor == membership.device
    }
    for tag in former.sorted() {
      if let tombstone = roster[tag] { publish(tombstone, on: .device(membership.account, tag), tag, &actions) }
    }
  }
}
