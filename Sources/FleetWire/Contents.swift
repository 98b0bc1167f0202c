package import IdentityCore

/// The description of a device in its record.
package struct DeviceDescription: Equatable, Sendable {
  /// A device's finding that another one speaks with its keys.
  package enum TwinMark: UInt8, Sendable {
    /// Either of the two may be the copy.
    case undecided = 1
    /// The author of the record is the copy.
    case copy = 2
  }

  /// The display name.
  package var name: Text
  /// The Ed25519 key, which checks the signatures of the device.
  package var signingKey: PublicKey
  /// The X25519 key, to which messages for this device are sealed.
  package var boxKey: PublicKey
  /// The time the device joined the account.
  package var joined: Timestamp
  /// The fingerprint of the machine.
  package var home: Home
  /// The operating system; nil if the record does not tell.
  package var system: Text?
  /// Set if another device speaks with the same keys.
  package var twin: TwinMark?
  /// The public proof keys; nil if there are none.
  package var proofKeys: PublishedKeys?
  /// The greatest version of envelopes that the device reads, which may be one that this release does not know.
  package var readableVersion: UInt8

  package init(
    name: Text, signingKey: PublicKey, boxKey: PublicKey, joined: Timestamp, home: Home, system: Text? = nil,
    twin: TwinMark? = nil, proofKeys: PublishedKeys? = nil, readableVersion: UInt8 = EnvelopeVersion.one.rawValue
  ) {
    self.name = name
    self.signingKey = signingKey
    self.boxKey = boxKey
    self.joined = joined
    self.home = home
    self.system = system
    self.twin = twin
    self.proofKeys = proofKeys
    self.readableVersion = readableVersion
  }

  /// Reads the fields of a record; nil if a required field is missing.
  package init?(_ fields: Fields) {
    guard let name = fields[.name], let signing = fields[.signingKey].flatMap({ PublicKey($0) }),
      let box = fields[.boxKey].flatMap({ PublicKey($0) }), let joined = fields[.joined],
      let home = fields[.home].flatMap({ Home(bytes: $0) })
    else { return nil }
    self.init(
      name: Text(trusted: name), signingKey: signing, boxKey: box,
      joined: Timestamp(unsignedMilliseconds: UInt64(bigEndian: joined)), home: home,
      system: fields[.system].map { Text(trusted: $0) },
      // A later release may write a mark that this release does not know.
      twin: fields[.twin].map { TwinMark(rawValue: $0[0]) ?? .undecided }, proofKeys: PublishedKeys(fields),
      readableVersion: fields[.readableVersion]?.first ?? EnvelopeVersion.one.rawValue)
  }

  /// The fields of a record.
  package var fields: Fields {
    var fields = Fields()
    fields[.name] = name.bytes
    fields[.signingKey] = signingKey.bytes
    fields[.boxKey] = boxKey.bytes
    fields[.joined] = joined.unsignedMilliseconds.bigEndianBytes
    fields[.home] = home.bytes
    fields[.system] = system?.bytes
    fields[.twin] = twin.map { [$0.rawValue] }
    proofKeys?.add(to: &fields)
    if readableVersion > EnvelopeVersion.one.rawValue { fields[.readableVersion] = [readableVersion] }
    return fields
  }
}

/// The reason why a device is no longer in the account.
package enum RemovalReason: UInt8, Sendable, CaseIterable {
  /// A member removed the device.
  case removed = 1
  /// The device left.
  case left = 2
  /// The device has another identifier now.
  case replaced = 3
}

/// The statement of a tombstone.
package struct Removal: Equatable, Sendable {
  /// The reason.
  package let reason: RemovalReason
  /// The device's new identifier; nil if the device has none.
  package let successor: UUID?

  package init(_ reason: RemovalReason, successor: UUID? = nil) {
    self.reason = reason
    self.successor = successor
  }

  /// Reads the fields of a tombstone; nil if the reason is missing.
  package init?(_ fields: Fields) {
    guard let reason = fields[.reason] else { return nil }
    // A later release may write a reason that this release does not know. The device is removed in any case.
    self.init(
      RemovalReason(rawValue: reason[0]) ?? .removed, successor: fields[.successor].flatMap { UUID(bytes: $0) })
  }

  /// Returns the fields of a tombstone.
  ///
  /// - Parameter signingKey: the key of the author.
  package func fields(signingKey: PublicKey) -> Fields {
    var fields = Fields()
    fields[.signingKey] = signingKey.bytes
    fields[.successor] = successor?.bytes
    fields[.reason] = [reason.rawValue]
    return fields
  }
}
