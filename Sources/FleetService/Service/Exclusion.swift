import IdentityCore

/// The end of a membership that this device has not asked for. `identityctl check` tells of it until the device is in an
/// account again.
struct Exclusion {
  /// The cause. The raw value is a word in `status`.
  enum Cause: String, CaseIterable {
    /// Another device has removed this one.
    case removed
    /// Another machine has joined in the name of this device.
    case superseded
  }

  let cause: Cause
  /// The name of the account.
  let account: Text
}

extension DaemonLink {
  // Beside the keys, which end with the membership.
  private static let exclusions = "identity-fleet-exclusion"

  /// Returns the last exclusion, if the device has not been in an account since.
  func lastExclusion() throws(DaemonFault) -> Exclusion? {
    for cause in Exclusion.Cause.allCases {
      let name = try item(cause.rawValue, of: Self.exclusions).flatMap { Text(validating: $0) }
      if let name { return Exclusion(cause: cause, account: name) }
    }
    return nil
  }

  /// Notes an exclusion; nil while the device is in an account.
  func noteExclusion(_ exclusion: Exclusion?) throws(DaemonFault) {
    try deleteItems(of: Self.exclusions)
    if let exclusion { try putItem(exclusion.cause.rawValue, of: Self.exclusions, exclusion.account.bytes) }
  }
}
