import FleetWire

/// Devices that have come with another key, although this device knows of no removal: they have lost their state and
/// joined again, or a member speaks in their names.
struct OtherKeys: Sendable {
  /// The greatest number of devices. A member that has gone bad can invent more.
  static let most = 16

  /// The devices, in the order in which they came.
  fileprivate var tags: [DeviceTag] = []
}

extension Member {
  /// The records of these devices, as far as they are not removed since.
  var otherKeys: [SignedMessage] { rekeyed.tags.compactMap { roster[$0] }.filter { $0.kind == .record } }

  /// Notes a record that has come just now, if it has another key than the one before.
  ///
  /// On a new connection, messages arrive that others publish again. A device that was away may not have seen a removal
  /// before such a message, so it waits for its last reading of these.
  mutating func noteOtherKey(
    of message: SignedMessage, at tag: DeviceTag, since former: SignedMessage, _ actions: inout [Action]
  ) {
    guard message.kind == .record, former.kind == .record, message.signer != former.signer, isSettledIn,
      !rekeyed.tags.contains(tag), rekeyed.tags.count < OtherKeys.most
    else { return }
    rekeyed.tags.append(tag)
    actions.append(.rekeyed(message))
  }
}
