package import ConfigurationFiles
package import FleetWire
import IdentityCore

/// The settings of `identity-fleet.conf`.
package struct FleetConfiguration: Equatable, Sendable {
  /// The user that this device is at the brokers.
  package enum User: Equatable, Sendable {
    /// The account, with the password that follows from its root.
    case account
    /// A user with this name, and the password in the credential `fleet.password`.
    case named(String)
  }

  /// The consequence of the finding that this machine is a copy.
  package enum TwinPolicy: String, CaseIterable, Sendable {
    /// Tell the admins.
    case report
    /// Take another device identifier, too.
    case renew
  }

  /// A sender of push messages, to which this device tells its push tokens.
  package struct Sender: Equatable, Sendable {
    /// The name, for messages to people.
    package let name: String
    /// The X25519 key, to which the tokens are sealed.
    package let boxKey: PublicKey
    /// The Ed25519 key, which checks the sender's feedback.
    package let signingKey: PublicKey
  }

  /// The greatest number of brokers.
  package static let mostBrokers = 8
  /// The greatest number of senders.
  package static let mostSenders = 8

  /// The brokers.
  package var brokers: [BrokerPattern] = []
  /// Whether connections to other machines may be unencrypted.
  package var allowsPlaintext = false
  /// The path of the file with the certificates of the authorities that are trusted.
  package var authorities = "/etc/ssl/certs/ca-certificates.crt"
  /// The path of this device's certificate; nil for the credential `fleet.crt`, if there is one.
  package var certificate: String?
  /// The path of the key of that certificate; nil for the credential `fleet.key`.
  package var certificateKey: String?
  /// The user; nil to be anonymous, or known by the certificate.
  package var user: User?
  /// The longest time between two publications of this device's record, in seconds.
  package var heartbeat = 86_400
  /// The time between two readings of the roster, in seconds.
  package var resync = 21_600
  /// The silence in seconds after which device and broker make sure that the other one is still there.
  package var keepAlive = 60
  /// How far apart devices connect again after a broker's return, in seconds.
  package var spread = 5
  /// Whether this device tells others that it is connected.
  package var presence = true
  /// The consequence of the finding that this machine is a copy.
  package var onTwin = TwinPolicy.report
  /// The X25519 key of the site, to which reports are sealed; nil for no reports.
  package var siteKey: PublicKey?
  /// The senders that get the push tokens.
  package var senders: [Sender] = []

  /// The group whose members may use the service's socket, like root; nil for none.
  package var adminGroup: String?

  package init() {}

  /// Reads the configuration.
  ///
  /// - Parameters:
  ///   - file: the only file to read, which must exist; nil to search `folders`.
  ///   - folders: the folders, in descending order of precedence.
  /// - Throws: the first fault.
  package static func load(
    file: String?, folders: [String]
  ) throws(ConfigurationFailure) -> LoadedConfiguration<FleetConfiguration> {
    let search = ConfigurationSearch(name: "identity-fleet.conf", folders: folders)
    let loaded = try LoadedConfiguration<FleetConfiguration>(search, file: file, limit: Bound.fileLength)
    try loaded.configuration.check()
    return loaded
  }

  /// Checks the settings against each other.
  private func check() throws(ConfigurationFailure) {
    func refuse(_ reason: String) -> ConfigurationFailure { ConfigurationFailure(place: "[Fleet]", reason: reason) }
    if let broker = brokers.first(where: { !$0.isEncrypted && !$0.isLoopback }), !allowsPlaintext {
      throw refuse(
        "Broker=\(broker) is neither encrypted nor on this machine; use mqtts://, or set AllowPlaintext=yes")
    }
    guard (certificate == nil) == (certificateKey == nil) else {
      throw refuse("Certificate= and Key= need each other; set both or neither")
    }
  }
}
