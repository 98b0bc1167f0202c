// The account and its devices (identityd-protocol(7), section "Devices of an account").
extension Registry {
  var accountReply: Reply {
    .done(account.map(Reply.Value.text) ?? .string(""))
  }

  /// Returns the changes that set or remove the account's name.
  ///
  /// The first account takes over the listed devices. With another account, or none, only this device stays in
  /// the list.
  func accountChanges(to name: Text?) -> [Change] {
    let keepsThem = name != nil && (account == nil || account == name)
    let others = keepsThem ? [] : devices.map(\.value).filter { $0 != self[.device]?.value }
    // Last device first, so that the remaining ones need not move up.
    return (name == account ? [] : [.accountSet(name)]) + others.reversed().map { .deviceUnlisted($0) }
  }

  /// `devices`: lists the devices. Returns nil if this device, which is always listed, has no identifier yet.
  ///
  /// An app with a device identifier of its own sees only this device, by that identifier.
  func deviceRows(for peer: Peer) -> Reply? {
    let scope = deviceScope(of: peer.app)
    guard let own = self[scope] else { return nil }
    let visible = scope == .device ? devices : [ListedDevice(value: own.value, added: own.created)]
    return .rows(visible) { device, reply in
      reply.word(.uuid(device.value))
      reply.attribute("self", .yesOrNo(device.value == own.value))
      reply.attribute("name", device.name.map(Reply.Value.text))
      reply.attribute("seen", device.seen.map(Reply.Value.time))
      reply.attribute("added", .time(device.added))
    }
  }

  /// `devices` before this device has an identifier: makes the identifier and lists the devices.
  func listOwnDevice(_ context: Context) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    var plan = Plan(self)
    plan.put(try fresh(deviceScope(of: peer.app), cause: .firstUse, context))
    guard let reply = plan.registry.deviceRows(for: peer) else { throw .broken("the device has no identifier") }
    return Decision(changes: plan.changes, reply: reply)
  }

  /// Returns whether a device is listed with this name and time, so that nothing has to change.
  ///
  /// - Throws: `invalidUUID` for a placeholder UUID; `limit` if the device is not listed and the list is full.
  func isListed(_ value: UUID, name: Text?, seen: Timestamp?) throws(Refusal) -> Bool {
    guard !value.isPlaceholder else { throw .invalidUUID(Text("\(value)")) }
    guard let device = devices.first(where: { $0.value == value }) else {
      guard devices.count < Bound.devices else {
        throw .limit("an account has at most \(Bound.devices) devices")
      }
      return false
    }
    return (name ?? device.name) == device.name && (seen ?? device.seen) == device.seen
  }

  func deviceChange(_ value: UUID, name: Text?, seen: Timestamp?, at now: Timestamp) throws(Refusal) -> Change {
    guard var device = devices.first(where: { $0.value == value }) else {
      return .deviceListed(ListedDevice(value: value, name: name, seen: seen, added: now))
    }
    device.name = name ?? device.name
    device.seen = seen ?? device.seen
    return .deviceDescribed(device)
  }

  /// Checks that a device can be removed.
  ///
  /// - Throws: `notFound` if the device is not listed; `conflict` if it is this device.
  func mayRemove(_ value: UUID) throws(Refusal) {
    guard devices.contains(where: { $0.value == value }) else { throw .notFound("no such device is listed") }
    guard value != self[.device]?.value else { throw .conflict("this device itself is always in the list") }
  }
}
