import Foundation
import Mosquitto
import TestSupport
import Testing

/// Connections over TLS, with certificates of both sides.
struct ProtectionTests {
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
    #expect(try caller.end().contains("unexpected eof"))
  }

  @Test func `a device without a certificate is not let in`() throws {
    // The broker answers CONNECT by closing. If that resets the connection, its alert is lost, and the library finds a
    // protocol error.
    #expect(try Caller(access(certificate: nil)).end().contains(/certificate|Protocol error/))
    try wait("the broker tells why") { broker.log.contains("peer did not return a certificate") }
  }

  @Test func `a broker with a certificate for another name is not trusted`() throws {
    let caller = try Caller(access())
    try caller.wait(for: .connected)
    // The second from libmosquitto 2.1, which leaves the comparison to OpenSSL.
    #expect(try Caller(access(host: "localhost")).end().contains(/host name|certificate verify failed/))
  }

  @Test func `a broker with a certificate of another authority is not trusted`() throws {
    let other = try CertificatesUnderTest()
    var access = access()
    access.protection = .tls(authorities: other["authority.crt"], nil)
    #expect(try Caller(access).end().contains("certificate verify failed"))
  }

  @Test func `a flood ends the connection before it fills the memory`() throws {
    // Mosquitto puts a message into records of its own. openssl(1) does not, and then libmosquitto reads on.
    let content = Array(repeating: UInt8(ascii: "x"), count: 30_000)
    let length = content.count + 3
    let message = [0x30, UInt8(length & 127 | 128), UInt8(length >> 7 & 127 | 128), UInt8(length >> 14), 0, 1, 0x61]
    let flood = try TemporaryFolder()
    var bytes = Data([0x20, 2, 0, 0])
    for _ in 1...400 { bytes += message + content }
    try bytes.write(to: URL(filePath: flood["flood"]))
    let (descriptor, port) = try BrokerUnderTest.listener()
    close(descriptor)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = [
      "s_server", "-accept", "127.0.0.1:\(port)", "-naccept", "1", "-quiet", "-cert", certificates["broker.crt"],
      "-key", certificates["broker.key"],
    ]
    process.standardInput = try FileHandle(forReadingFrom: URL(filePath: flood["flood"]))
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    defer { process.terminate() }
    let row = String(format: ":%04X 00000000:0000 0A", Int(port))
    while try !String(contentsOfFile: "/proc/net/tcp", encoding: .utf8).contains(row) { usleep(5_000) }
    var access = access(certificate: nil)
    access.port = port
    let caller = try Caller(access)
    // A fast broker goes on until the bound ends the connection. TCP holds a slow one back long before.
    let deadline = Date(timeIntervalSinceNow: patience)
    var (written, since) = ("", Date())
    while process.isRunning, Date() < deadline, Date().timeIntervalSince(since) < 3 {
      usleep(20_000)
      let now = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/io", encoding: .utf8)) ?? ""
      if now != written { (written, since) = (now, Date()) }
    }
    // The bound, and the message that reached it.
    #expect((1...4 << 20 + content.count).contains(caller.waitingBytes()))
    try caller.wait(for: .connected)
    var (received, reason) = (0, String?.none)
    while reason == nil {
      switch try caller.next() {
      case .received: received += 1
      case .ended(let text): reason = text
      default: break
      }
    }
    #expect(
      reason == "messages arrive faster than this device takes them" || received == 400,
      "\(received) messages, and \(reason ?? "")")
  }

  @Test func `a file that is missing is named`() throws {
    let reason = try Caller(access(authorities: "nothing.crt")).end()
    #expect(reason.contains("cannot be read") && reason.contains("nothing.crt"))
  }
}
