// The account and its devices (protocol, section 3, "Devices of one account").
extension Registry {
  var accountReply: Reply {
    .done(account.map(Reply.Value.text) ?? .string(""))
  }

  /// Another account has other devices, and no account none: this one stays alone in the list. The first account takes
  /// over what is listed.
  func accountChanges(to name: Text?) -> [Change] {
    let keepsThem = name != nil && (account == nil || account == name)
    let others = keepsThem ? [] : devices.map(\.value).filter { $0 != self[.device]?.value }
    // The last one first: the others need not move up then.
    return (name == account ? [] : [.accountSet(name)]) + others.reversed().map { .deviceUnlisted($0) }
  }

  /// `devices`: this device is always among them, so nil where it has no identifier yet.
  ///
  /// An app with a device identifier of its own sees no other.
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

  /// `devices` at its first use.
  func listOwnDevice(_ context: Context) throws(Refusal) -> Decision {
    guard let peer = context.peer else { throw .unattested }
    var plan = Plan(self)
    plan.put(try fresh(deviceScope(of: peer.app), cause: .firstUse, context))
    guard let reply = plan.registry.deviceRows(for: peer) else { throw .broken("the device has no identifier") }
    return Decision(changes: plan.changes, reply: reply)
  }

  /// Whether a device is in the list with nothing new said of it.
  ///
  /// - Throws: `invalidUUID` for a value that is nobody's identifier; `limit` where the list is full.
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

  /// - Throws: `notFound` for a device that is not listed; `conflict` for this one.
  func mayRemove(_ value: UUID) throws(Refusal) {
    guard devices.contains(where: { $0.value == value }) else { throw .notFound("no such device is listed") }
    guard value != self[.device]?.value else { throw .conflict("this device itself is always in the list") }
  }
}
