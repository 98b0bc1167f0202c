import Mosquitto
import TestSupport
import Testing

/// Connections over TLS, with certificates of both sides.
@Suite struct ProtectionTests {
  private let certificates: CertificatesUnderTest
  private let broker: BrokerUnderTest

  /// Starts a broker that wants a certificate from everybody.
  init() throws {
    certificates = try CertificatesUnderTest()
    try certificates.issue("broker", for: "IP:127.0.0.1")
    try certificates.issue("device", for: "DNS:device")
    broker = try BrokerUnderTest(
      """
      allow_anonymous true
      cafile \(certificates["authority.crt"])
      certfile \(certificates["broker.crt"])
      keyfile \(certificates["broker.key"])
      require_certificate true
      """)
  }

  private func access(
    host: String = "127.0.0.1", authorities: String = "authority.crt", certificate: String? = "device"
  ) -> BrokerAccess {
    let own = certificate.map {
      BrokerAccess.Certificate(file: certificates["\($0).crt"], key: certificates["\($0).key"])
    }
    return BrokerAccess(host: host, port: broker.port, protection: .tls(authorities: certificates[authorities], own))
  }

  @Test func `certificates of both sides make a connection`() throws {
    let caller = try Caller(access())
    try caller.wait(for: .connected)
    try caller.subscribe(to: "a")
    caller.publish("over TLS", to: "a")
    #expect(try caller.message().text == "a over TLS")
    broker.kill()
    #expect(try !caller.end().isEmpty)
  }

  @Test func `a device without a certificate is not let in`() throws {
    #expect(try Caller(access(certificate: nil)).end().contains("certificate"))
  }

  @Test func `a broker with a certificate for another name is not trusted`() throws {
    #expect(try Caller(access(host: "localhost")).end().contains("host name"))
  }

  @Test func `a broker with a certificate of another authority is not trusted`() throws {
    let other = try CertificatesUnderTest()
    var access = access()
    access.protection = .tls(authorities: other["authority.crt"], nil)
    #expect(try Caller(access).end().contains("certificate verify failed"))
  }

  @Test func `a file that is missing is named`() throws {
    let reason = try Caller(access(authorities: "nothing.crt")).end()
    #expect(reason.contains("cannot be read") && reason.contains("nothing.crt"))
  }
}
