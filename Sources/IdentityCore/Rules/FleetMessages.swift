// The messages that the fleet's service keeps here (identityd-protocol(7), section "The fleet").
extension RegistryCommand {
  package static func records(after device: UUID?, limit: Int?) -> Self {
    Self(RecordsRule(device: device, limit: limit))
  }
  package static func putRecord(
    _ record: FleetRecord, name: Text?, seen: Timestamp?, replaces replaced: UUID? = nil
  ) -> Self {
    Self(PutRecordRule(record: record, name: name, seen: seen, replaced: replaced))
  }
  package static func putTombstone(_ tombstone: FleetRecord) -> Self { Self(PutTombstoneRule(tombstone: tombstone)) }
}

/// `fleet records`: lists records and tombstones, in the order of the devices' identifiers.
struct RecordsRule: QueryRule {
  let device: UUID?
  let limit: Int?
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: .fleet) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    let page = OrderedBlocks(registry.records.table, from: device, isBehind: device != nil)
    return .rows(of: Search(page) { _ in true }, limit: limit ?? .max) { record, reply in
      reply.word(.uuid(record.device))
      reply.attribute("generation", .number(Int64(record.generation)))
      reply.attribute("counter", .string("\(record.counter)"))
      reply.attribute("gone", .yesOrNo(record.isGone))
      reply.attribute("record", .text(record.message))
    }
  }
}

/// `devices put record=`: stores the record of a device, and adds the device to the list or updates it there.
///
/// - Throws: `invalidUUID` for a placeholder UUID; `conflict` if the known message outranks the record, or if the record
///   replaces this device; `limit` if there is no room for another device.
struct PutRecordRule: ChangeRule {
  let record: FleetRecord
  let name: Text?
  let seen: Timestamp?
  let replaced: UUID?
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: [.devices, .fleet, .identifiers]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let value = record.device
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    let own = registry[.device]?.value
    guard replaced == nil || replaced != own else {
      throw .conflict("this device is in the list under its present identifier")
    }
    guard let isNew = try registry.isNew(record, context?.digest) else { return nil }
    guard isNew else { return Decision(reply: .done(.string("same"))) }
    try registry.requireRoom(for: record)
    guard let context else { return nil }
    var plan = Plan(registry)
    let outcome = try plan.list(value, name: value == own ? nil : name, seen: seen, replacing: replaced, context.now)
    plan.store(record)
    return Decision(changes: plan.changes, reply: .done(.string(outcome)))
  }
}

/// `devices remove record=`: stores the tombstone of a device, and removes the device from the list if it is there.
/// This device stays in its own list.
///
/// - Throws: as ``PutRecordRule``.
struct PutTombstoneRule: ChangeRule {
  let tombstone: FleetRecord
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: [.devices, .fleet, .identifiers]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let value = tombstone.device
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    guard let isNew = try registry.isNew(tombstone, context?.digest) else { return nil }
    guard isNew else { return Decision(reply: .done) }
    try registry.requireRoom(for: tombstone)
    guard context != nil else { return nil }
    var plan = Plan(registry)
    plan.store(tombstone)
    if value != registry[.device]?.value, registry.devices[value] != nil { plan.add(.deviceUnlisted(value)) }
    return Decision(changes: plan.changes, reply: .done)
  }
}

// MARK: - Messages

extension Registry {
  /// Returns whether a message about a device outranks the known one: false if it is the known one. Nil if only the
  /// digests of both tell, and `digest` is nil.
  ///
  /// - Throws: `conflict` if the known message outranks this one.
  fileprivate func isNew(_ record: FleetRecord, _ digest: ((Text) -> Text)?) throws(Refusal) -> Bool? {
    switch record.compare(with: records[record.device], digest) {
    case .higher?: return true
    case .same?: return false
    case .lower?: throw .conflict("the stored message about the device outranks this one")
    case nil: return nil
    }
  }

  /// Checks that there is room for the first message about a device. There always is for this device.
  fileprivate func requireRoom(for record: FleetRecord) throws(Refusal) {
    guard !hasRoom(for: record) else { return }
    throw .limit(
      "\(Bound.devices) \(record.isGone ? "tombstones" : "records") or \(2 * Bound.devices) messages of the fleet are "
        + "kept, which is the limit")
  }

  /// Returns whether a message about a device can be stored. Each device has one, and this device always has room.
  func hasRoom(for record: FleetRecord) -> Bool {
    records[record.device] != nil || record.device == self[.device]?.value
      || records.hasRoom(forTombstone: record.isGone)
  }
}

extension Plan {
  /// Stores a message about a device. A message about this device can raise its generation.
  mutating func store(_ record: FleetRecord) {
    add(.fleetRecorded(record))
    guard record.device == registry[.device]?.value, record.generation > registry.fleet?.generation ?? 0 else { return }
    var standing = registry.fleet ?? FleetStanding()
    standing.generation = record.generation
    add(.fleetAdvanced(standing))
  }

  /// Adds a device to the list, or updates it there.
  ///
  /// - Parameter former: the earlier identifier of the device; nil if there is none.
  /// - Returns: the outcome in a word.
  fileprivate mutating func list(
    _ value: UUID, name: Text?, seen: Timestamp?, replacing former: UUID?, _ now: Timestamp
  ) throws(Refusal) -> String {
    let previous = former.flatMap { registry.devices[$0] }
    if registry.devices[value] != nil {
      if let previous, previous.value != value { add(.deviceUnlisted(previous.value)) }
    } else if var device = previous {
      let former = device.value
      device.value = value
      add(.deviceReplaced(previous: former, device))
    } else {
      try registry.requireRoomForDevice()
      add(.deviceListed(ListedDevice(value: value, name: name, seen: seen, added: now)))
      return "added"
    }
    if let device = registry.devices[value] {
      let described = device.described(name: name, seen: seen)
      if described != device { add(.deviceDescribed(described)) }
    }
    return "changed"
  }
}
