// The account and its devices (identityd-protocol(7), section "Devices of an account").
extension RegistryCommand {
  package static var account: Self { Self(AccountRule()) }
  package static func setAccount(_ name: Text?, dryRun: Bool = false) -> Self {
    Self(SetAccountRule(name: name, dryRun: dryRun))
  }
  package static var devices: Self { Self(DevicesRule()) }
  package static func putDevice(_ value: UUID, name: Text?, seen: Timestamp?) -> Self {
    Self(PutDeviceRule(value: value, name: name, seen: seen))
  }
  package static func nameDevice(_ name: Text) -> Self { Self(NameDeviceRule(name: name)) }
  package static func removeDevice(_ value: UUID) -> Self { Self(RemoveDeviceRule(value: value, right: .fleet)) }
  package static func forgetDevice(_ value: UUID) -> Self { Self(RemoveDeviceRule(value: value, right: nil)) }
  package static func forgetDevices(unused days: Int) -> Self { Self(ForgetUnusedDevicesRule(days: days)) }
  package static func devices(unused days: Int) -> Self { Self(UnusedDevicesRule(days: days)) }
}

// MARK: - Account

/// `account`: returns the account's name.
struct AccountRule: QueryRule {
  var basis: Basis { Basis(whole: .settings) }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    _ = try registry.app(named: nil, by: peer)
    try registry.requireSharing(peer)
    return .done(registry.account.map(Reply.Value.text) ?? .string(""))
  }
}

/// `account set`, `account clear`: sets or removes the account's name, or lists the devices that would leave the list.
struct SetAccountRule: ChangeRule {
  let name: Text?
  let dryRun: Bool
  var right: Right? { .fleet }
  var basis: Basis { dryRun ? Basis(whole: [.settings, .devices, .identifiers]) : Basis(whole: .settings) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    let changes = registry.accountChanges(to: name)
    guard !dryRun else {
      let leaving = changes.compactMap { change in
        if case .deviceUnlisted(let value) = change { registry.devices[value] } else { nil }
      }
      var reply = Reply.rows(leaving.reversed()) { $0.describe(isSelf: false, to: &$1) }
      reply.attribute("previous", name == registry.account ? nil : registry.account.map(Reply.Value.text))
      return Decision(reply: reply)
    }
    return changes.isEmpty || context != nil ? Decision(changes: changes, reply: .done) : nil
  }
}

extension Registry {
  /// Returns the changes that set or remove the account's name.
  ///
  /// The first account takes over the listed devices. With another account, or none, only this device stays in
  /// the list, and the messages of the fleet are removed: they are sealed for the previous account.
  func accountChanges(to name: Text?) -> [Change] {
    let keepsThem = name != nil && (account == nil || account == name)
    let own = self[.device]?.value
    let others = keepsThem ? [] : devices.map(\.value).filter { $0 != own }
    let messages = keepsThem ? [] : records.all.map(\.device)
    return (name == account ? [] : [.accountSet(name)]) + others.reversed().map { .deviceUnlisted($0) }
      + messages.map { .fleetForgotten($0) }
  }
}

// MARK: - Devices

/// `devices`: lists the devices. Makes no identifier: this device is in the list once it has one.
struct DevicesRule: QueryRule {
  var basis: Basis { Basis(whole: .devices) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    _ = try registry.app(named: nil, by: peer)
    let scope = registry.deviceScope(of: peer.app)
    let own = registry[scope]
    // Without its identifier, this device would look like another one.
    if own == nil { try registry.requireProof(of: .identifiers) }
    // An app with a device identifier of its own sees only this device, by that identifier.
    guard scope == .device else {
      return .rows(own.map { [ListedDevice(value: $0.value, added: $0.created)] } ?? []) { device, reply in
        device.describe(isSelf: true, to: &reply)
      }
    }
    try registry.requireProof(of: .fleet)
    let records = registry.records
    return .rows(of: Search(OrderedBlocks(registry.devices.table)) { _ in true }) { listed, reply in
      let device = listed.device
      device.describe(isSelf: device.value == own?.value, to: &reply)
      reply.attribute("suspect", records[device.value]?.isSuspect == true ? .yesOrNo(true) : nil)
    }
  }
}

/// `devices put`: adds a device of the account, or updates a listed one.
///
/// - Throws: `invalidUUID` for a placeholder UUID; `limit` if the device is not listed and the list is full.
struct PutDeviceRule: ChangeRule {
  let value: UUID
  let name: Text?
  let seen: Timestamp?
  var right: Right? { .fleet }
  var basis: Basis { Basis(whole: .devices) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    guard let device = registry.devices[value] else {
      try registry.requireRoomForDevice()
      guard let context else { return nil }
      let device = ListedDevice(value: value, name: name, seen: seen, added: context.now)
      return Decision(changes: [.deviceListed(device)], reply: .done)
    }
    let described = device.described(name: name, seen: seen)
    guard described != device else { return Decision(reply: .done) }
    guard context != nil else { return nil }
    return Decision(changes: [.deviceDescribed(described)], reply: .done)
  }
}

extension Registry {
  /// Checks that the list has room for another device.
  func requireRoomForDevice() throws(Refusal) {
    guard devices.count >= Bound.devices else { return }
    throw .limit("an account has at most \(Bound.devices) devices; forget a device first")
  }
}

extension ListedDevice {
  /// Adds the device to a row.
  fileprivate func describe(isSelf: Bool, to reply: inout Reply) {
    reply.word(.uuid(value))
    reply.attribute("self", .yesOrNo(isSelf))
    reply.attribute("name", name.map(Reply.Value.text))
    reply.attribute("seen", seen.map(Reply.Value.time))
    reply.attribute("added", .time(added))
  }

  /// Returns the device with another name and time. Nil leaves the present one.
  func described(name: Text?, seen: Timestamp?) -> Self {
    var device = self
    device.name = name ?? device.name
    device.seen = seen ?? device.seen
    return device
  }
}

/// `devices name`: names this device. Makes its identifier if there is none.
struct NameDeviceRule: ChangeRule {
  let name: Text
  var basis: Basis { Basis(whole: [.devices, .identifiers]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard registry[.device].flatMap({ registry.devices[$0.value] })?.name != name else {
      return Decision(reply: .done)
    }
    guard let context else { return nil }
    var plan = Plan(registry)
    if registry[.device] == nil { plan.put(try registry.fresh(.device, cause: .firstUse, context)) }
    guard let own = plan.registry[.device]?.value, var device = plan.registry.devices[own] else {
      throw .broken("this device is not in the list")
    }
    device.name = name
    plan.add(.deviceDescribed(device))
    return Decision(changes: plan.changes, reply: .done)
  }
}

/// `devices remove`, `devices forget`: removes a device from the list.
///
/// - Throws: `notFound` if the device is not listed; `conflict` if it is this device.
struct RemoveDeviceRule: ChangeRule {
  let value: UUID
  let right: Right?
  var basis: Basis { Basis(whole: .devices) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard registry.devices[value] != nil else {
      throw .notFound("the device is not in the list")
    }
    guard value != registry[.device]?.value else {
      throw .conflict("this device cannot be removed from its own list")
    }
    return context == nil ? nil : Decision(changes: [.deviceUnlisted(value)], reply: .done)
  }
}

/// `devices forget unused=DAYS`: removes devices that have not been heard of for so many days, and counts those left for
/// the next request.
struct ForgetUnusedDevicesRule: ChangeRule {
  let days: Int
  var basis: Basis { Basis(whole: [.devices, .identifiers]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard let context else { return nil }
    let (unused, reply) = registry.devices(unused: days, at: context.now)
    return Decision(changes: unused.map { .deviceUnlisted($0.value) }, reply: reply)
  }
}

/// `devices forget unused=DAYS dry-run=yes`: lists these devices.
struct UnusedDevicesRule: QueryRule {
  let days: Int
  var basis: Basis { Basis(whole: [.devices, .identifiers]) }
  var answerKind: AnswerKind { .list }

  func answer(in registry: Registry, for peer: Peer, in surroundings: Surroundings) throws(Refusal) -> Reply {
    registry.devices(unused: days, at: surroundings.now()).reply
  }
}

extension Registry {
  /// Returns the devices of one request that have not been heard of for so many days, and the answer about them.
  fileprivate func devices(unused days: Int, at now: Timestamp) -> (unused: [ListedDevice], reply: Reply) {
    let latest = Timestamp(milliseconds: now.milliseconds - Int64(days) * 86_400_000)
    let own = self[.device]?.value
    let all = devices.filter { $0.value != own && ($0.seen ?? $0.added) <= latest }
    let unused = Array(all.prefix(Bound.forgottenTogether))
    var reply = Reply.rows(unused) { $0.describe(isSelf: false, to: &$1) }
    reply.attribute("left", .number(Int64(all.count - unused.count)))
    return (unused, reply)
  }
}
