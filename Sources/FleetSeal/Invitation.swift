import CSodium
package import FleetWire
package import IdentityCore

/// The content of an invitation: everything that makes a newcomer a member.
package struct Invitation: Sendable {
  /// The first line of a file with an invitation.
  package static let fileHead = "identity-fleet-invitation 1\n"

  /// The name of the account.
  package let name: Text
  /// The root of the account.
  package let root: SecretKey
  /// The key of the present epoch.
  package let epoch: EpochKey
  /// The number of devices in the account, which tells the newcomer how to read the roster.
  package let rosterSize: UInt32
  /// The time after which the invitation is void.
  package let expiry: Timestamp
  /// The devices that were removed before the epoch.
  package let removed: [UUID]

  package init(
    name: Text, root: SecretKey, epoch: EpochKey, rosterSize: UInt32, expiry: Timestamp, removed: [UUID] = []
  ) {
    self.name = name
    self.root = root
    self.epoch = epoch
    self.rosterSize = rosterSize
    self.expiry = expiry
    self.removed = removed
  }

  /// Reads the fields of an invitation; nil if one is missing, for epoch 0, or without memory for the keys.
  ///
  /// - Parameter fields: the fields, out of which the keys are taken in any case. Unless the fields were copied, no
  ///   other copy of the keys remains.
  package init?(taking fields: inout Fields) {
    var rootBytes = fields.remove(.root) ?? []
    var keyBytes = fields.remove(.epochKey) ?? []
    defer {
      unsafe sodium_memzero(&rootBytes, rootBytes.count)
      unsafe sodium_memzero(&keyBytes, keyBytes.count)
    }
    guard let name = fields[.name], let number = fields[.epoch], let size = fields[.rosterSize],
      let expiry = fields[.expiry], let root = SecretKey(consuming: &rootBytes),
      let key = SecretKey(consuming: &keyBytes)
    else { return nil }
    let epoch = EpochKey(number: UInt32(bigEndian: number), key: key)
    guard epoch.number > 0 else { return nil }
    self.init(
      name: Text(trusted: name), root: root, epoch: epoch, rosterSize: UInt32(bigEndian: size),
      expiry: Timestamp(unsignedMilliseconds: UInt64(bigEndian: expiry)))
  }

  /// Signs and seals the invitation under the key of a join code.
  ///
  /// - Parameters:
  ///   - body: the body, of which the invitation sets the fields.
  ///   - meeting: the topics and the key.
  ///   - author: the keys of the inviting device.
  /// - Returns: the message without its fields, since they contain keys; nil for fields that are too long.
  package func sealed(_ body: Body, for meeting: JoinCode.Meeting, by author: DeviceKeys) -> SignedMessage? {
    var body = body
    body.fields = fields(signingKey: author.signingKey)
    var message = meeting.key.seal(.invitation, body, on: .invitation(meeting.rendezvous), by: author)
    // Without the message's share, the values can be wiped in place.
    message?.body.fields = Fields()
    for type in [FieldType.root, .epochKey] {
      guard var value = body.fields.remove(type) else { continue }
      unsafe sodium_memzero(&value, value.count)
    }
    return message
  }

  /// Returns the fields of the invitation. The caller wipes the keys in them.
  ///
  /// - Parameter signingKey: the key of the inviting device.
  func fields(signingKey: PublicKey) -> Fields {
    var fields = Fields()
    fields[.name] = name.bytes
    fields[.signingKey] = signingKey.bytes
    fields[.root] = root.copy()
    fields[.epoch] = epoch.number.bigEndianBytes
    fields[.epochKey] = epoch.key.copy()
    fields[.rosterSize] = rosterSize.bigEndianBytes
    fields[.expiry] = expiry.unsignedMilliseconds.bigEndianBytes
    fields[.removed] = removed.isEmpty ? nil : removed.flatMap(\.bytes)
    return fields
  }
}
