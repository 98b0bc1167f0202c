/// The address of a broker, and everything that this device shows to be let in.
package struct BrokerAccess: Sendable {
  /// The protection of a connection.
  package enum Protection: Equatable, Sendable {
    /// None: everybody on the way can read and alter the connection.
    case none
    /// TLS 1.2 or later. The broker's certificate has to be valid for the host, and signed by one of the authorities in
    /// a file.
    case tls(authorities: String, Certificate?)
  }

  /// The files with a certificate of this device and its key, in PEM.
  package struct Certificate: Equatable, Sendable {
    /// The path of the certificate.
    package let file: String
    /// The path of the key, which has no passphrase.
    package let key: String

    package init(file: String, key: String) {
      self.file = file
      self.key = key
    }
  }

  /// A user of a broker.
  package struct User: Equatable, Sendable {
    /// The name.
    package let name: String
    /// The password; nil for a user without one.
    package let password: String?

    package init(name: String, password: String?) {
      self.name = name
      self.password = password
    }
  }

  /// The name or the IP address of the broker.
  package var host: String
  /// The TCP port.
  package var port: UInt16
  /// The protection of the connection.
  package var protection: Protection
  /// The user; nil to be anonymous, or known by the certificate.
  package var user: User?
  /// The silence in seconds after which both sides make sure that the other one is still there.
  package var keepAlive: Int
  /// The message that the broker publishes when the connection ends; nil for none. Not retained.
  package var will: Publication?
  /// How long the broker may take from the attempt to connect to its answer, in milliseconds. The time in which its name
  /// is resolved does not count.
  package var answerPatience = 10_000

  package init(host: String, port: UInt16, protection: Protection, user: User? = nil, keepAlive: Int = 60) {
    self.host = host
    self.port = port
    self.protection = protection
    self.user = user
    self.keepAlive = keepAlive
  }
}
