import Attestation
package import IdentityCore

/// The settings of the administrator that the loop uses.
package struct ServerSettings: Equatable, Sendable {
  /// The bounds of `[Limits]`.
  package var limits = Limits()
  /// The time for which the loop polls for events before it sleeps, in microseconds (`PollMicroseconds=`).
  package var pollMicroseconds: UInt64 = 0
  /// The group ID of `AdminGroup=`; nil if there is none.
  package var adminGroup: UInt32?
  /// The group ID of `MonitorGroup=`; nil if there is none.
  package var monitorGroup: UInt32?
  /// The policy for containers that no manifest admits.
  package var containers = ContainerPolicy.own
  /// The ranges of user IDs of regular users and of services.
  package var userRanges = UserRanges()
  /// The manifest folders, most important first.
  package var appDirectories: [String] = []
  /// The days after which unused and suspended apps are uninstalled.
  package var forgetting = ForgetPolicy(suspendedDays: 30)
  /// The policy for the identifiers after a change of the machine-id, applied only when the daemon starts.
  package var onMachineChange = MachinePolicy.renew
  /// The policy for the identifiers after a change of the hardware under the same machine-id, applied only when the
  /// daemon starts.
  package var onHardwareChange = MachinePolicy.keep

  /// The settings about proofs.
  package var proofs = ProofSettings()

  /// The policy for a credential of a unit that is not stored.
  package var missingCredential = MissingCredential.fail

  package init() {}

  /// The settings about peers.
  var attestation: AttestationSettings {
    var settings = AttestationSettings()
    settings.adminGroup = adminGroup
    settings.monitorGroup = monitorGroup
    settings.containers = containers
    settings.ranges = userRanges
    return settings
  }
}

/// The reason why a configuration was refused.
package struct ConfigurationRefusal: Error {
  /// The file and line or the setting, and the allowed values.
  package let reason: String

  /// Takes the reason.
  package init(reason: String) { self.reason = reason }
}
