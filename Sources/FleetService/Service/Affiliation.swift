import FleetCore
import FleetSeal
import FleetWire
import IdentityCore

/// The account that this device is in: its name in identityd, and its keys in the fleet.
struct Affiliation {
  /// The name of the account in identityd, with or without a fleet; nil for none.
  var name: Text?
  /// The account of the fleet; nil for none.
  var account: Account?
  /// The least generation of this device, if the broker has shown that it was in the account before.
  private(set) var leastGeneration: UInt32 = 0

  /// Returns whether a message about this device is from an earlier membership, of which nothing is left here. This
  /// device then starts anew with a higher generation, which outranks the message.
  mutating func outranks(_ message: SignedMessage) -> Bool {
    guard let account, account.isNewcomer, message.signer != account.keys.signingKey,
      message.body.generation >= account.present.generation, message.body.generation < .max
    else { return false }
    leastGeneration = message.body.generation + 1
    return true
  }
}
