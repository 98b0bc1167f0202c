import FleetWire

/// Devices that have come with another key, although this device knows of no removal: they have lost their state and
/// joined again, or a member speaks in their names.
struct OtherKeys: Sendable {
  /// The greatest number of devices. A member that has gone bad can invent more.
  static let most = 16

  /// The devices in the order in which they came, each with the key that it has come with.
  fileprivate var found: [(tag: DeviceTag, key: PublicKey)] = []
}

extension Member {
  /// The records of these devices, as far as they still have these keys: a device that joins again after a removal has
  /// another one.
  var otherKeys: [SignedMessage] {
    rekeyed.found.compactMap { device in
      roster[device.tag].flatMap { $0.kind == .record && $0.signer == device.key ? $0 : nil }
    }
  }

  /// Notes a record that has come just now, if it has another key than the one before.
  ///
  /// On a new connection, messages arrive that others publish again. A device that was away may not have seen a removal
  /// before such a message, so it waits for its last reading of these.
  mutating func noteOtherKey(
    of message: SignedMessage, at tag: DeviceTag, since former: SignedMessage, _ actions: inout [Action]
  ) {
    guard message.kind == .record, former.kind == .record, message.signer != former.signer, readings.areSettled else {
      return
    }
    if let index = rekeyed.found.firstIndex(where: { $0.tag == tag }) {
      rekeyed.found[index].key = message.signer
    } else if rekeyed.found.count < OtherKeys.most {
      rekeyed.found.append((tag, message.signer))
      actions.append(.rekeyed(message))
    }
  }
}
