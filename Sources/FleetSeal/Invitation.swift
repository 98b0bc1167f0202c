package import FleetWire
package import IdentityCore

/// The content of an invitation: everything that makes a newcomer a member.
package struct Invitation: Sendable {
  /// The name of the inviting device.
  package let name: Text
  /// The root of the account.
  package let root: SecretKey
  /// The key of the present epoch.
  package let epoch: EpochKey
  /// The number of devices in the account, which tells the newcomer how to read the roster.
  package let rosterSize: UInt32
  /// The time after which the invitation is void.
  package let expiry: Timestamp

  /// Creates an invitation.
  package init(name: Text, root: SecretKey, epoch: EpochKey, rosterSize: UInt32, expiry: Timestamp) {
    self.name = name
    self.root = root
    self.epoch = epoch
    self.rosterSize = rosterSize
    self.expiry = expiry
  }

  /// Reads the fields of an invitation; nil if one is missing, for epoch 0, or without memory for the keys.
  package init?(_ fields: Fields) {
    guard let name = fields[.name], var root = fields[.root], let number = fields[.epoch], var key = fields[.epochKey],
      let size = fields[.rosterSize], let expiry = fields[.expiry], let root = SecretKey(consuming: &root),
      let key = SecretKey(consuming: &key)
    else { return nil }
    let epoch = EpochKey(number: UInt32(bigEndian: number), key: key)
    guard epoch.number > 0 else { return nil }
    self.init(
      name: Text(trusted: name), root: root, epoch: epoch, rosterSize: UInt32(bigEndian: size),
      expiry: Timestamp(milliseconds: Int64(bitPattern: UInt64(bigEndian: expiry))))
  }

  /// Returns the fields of an invitation.
  ///
  /// - Parameter signingKey: the key of the inviting device.
  package func fields(signingKey: PublicKey) -> Fields {
    var fields = Fields()
    fields[.name] = name.bytes
    fields[.signingKey] = signingKey.bytes
    fields[.root] = root.copy()
    fields[.epoch] = epoch.number.bigEndianBytes
    fields[.epochKey] = epoch.key.copy()
    fields[.rosterSize] = rosterSize.bigEndianBytes
    fields[.expiry] = UInt64(bitPattern: expiry.milliseconds).bigEndianBytes
    return fields
  }
}
