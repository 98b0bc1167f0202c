import ConfigurationFiles
import FleetService
import FleetWire
import Foundation
import TestSupport
import Testing

/// The settings of `identity-fleet.conf`, and their faults.
struct FleetConfigurationTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Reads a file with these lines in the section of the fleet.
  private func load(_ lines: String) throws -> FleetConfiguration {
    try folder.write("identity-fleet.conf", "[Fleet]\n\(lines)\n")
    let loaded = try FleetConfiguration.load(file: folder["identity-fleet.conf"], folders: [])
    #expect(loaded.warnings.isEmpty)
    return loaded.configuration
  }

  @Test func `without a file, everything has its default`() throws {
    let loaded = try FleetConfiguration.load(file: nil, folders: [folder.path])
    #expect(loaded.configuration == FleetConfiguration())
  }

  @Test func `the shipped file changes nothing, and its examples are allowed`() throws {
    let shipped = try String(
      contentsOf: Document.root.appending(path: "packaging/identity-fleet.conf"), encoding: .utf8)
    try folder.write("identity-fleet.conf", shipped)
    let path = folder["identity-fleet.conf"]
    #expect(try FleetConfiguration.load(file: path, folders: []).configuration == FleetConfiguration())
    try folder.write("identity-fleet.conf", shipped.replacing(/(?m)^#(?=[A-Z])/, with: ""))
    let loaded = try FleetConfiguration.load(file: path, folders: [])
    #expect(loaded.warnings.isEmpty)
    var expected = FleetConfiguration()
    expected.brokers = [try #require(BrokerPattern("mqtts://broker.example.org"))]
    expected.certificate = "/etc/identityd/fleet.crt"
    expected.certificateKey = "/etc/identityd/fleet.key"
    expected.user = .account
    expected.adminGroup = "adm"
    expected.siteKey = loaded.configuration.siteKey
    expected.senders = loaded.configuration.senders
    #expect(loaded.configuration == expected)
    #expect(expected.siteKey != nil && expected.senders.map(\.name) == ["push"])
    for key in FleetConfiguration.keys { #expect(shipped.contains("\n#\(key.name)="), "\(key.name)") }
  }

  @Test func `drop-ins add brokers, and an empty value removes them`() throws {
    try folder.write("identity-fleet.conf", "[Fleet]\nBroker=mqtts://a\nBroker=mqtts://b\nUsername=site\n")
    try folder.write("identity-fleet.conf.d/10.conf", "[Fleet]\nBroker=mqtts://c\n")
    let folders = [folder.path]
    #expect(try FleetConfiguration.load(file: nil, folders: folders).configuration.brokers.count == 3)
    try folder.write("identity-fleet.conf.d/20.conf", "[Fleet]\nBroker=\nUsername=\n")
    let last = try FleetConfiguration.load(file: nil, folders: folders).configuration
    #expect(last == FleetConfiguration())
  }

  @Test(
    arguments: [
      ("Heartbeat=1h", \FleetConfiguration.heartbeat, 3_600), ("Heartbeat=30d", \.heartbeat, 2_592_000),
      ("Resync=15min", \.resync, 900), ("Resync=7d", \.resync, 604_800), ("KeepAlive=15", \.keepAlive, 15),
      ("KeepAlive=15min", \.keepAlive, 900), ("Spread=0", \.spread, 0), ("Spread=10min", \.spread, 600),
      ("Spread=600s", \.spread, 600), ("Spread=7\nSpread=", \.spread, 5),
    ] as [(String, any KeyPath<FleetConfiguration, Int> & Sendable, Int)])
  func `durations have units and bounds`(
    line: String, path: any KeyPath<FleetConfiguration, Int> & Sendable, seconds: Int
  ) throws {
    #expect(try load(line)[keyPath: path] == seconds)
  }

  @Test(arguments: [
    ("Broker=broker.example.org", "Broker= cannot be 'broker.example.org'; allowed: mqtts://HOST[:PORT]"),
    ("Broker=mqtts://", "mqtts://HOST"), ("Broker=mqtts://a/b", "mqtts://HOST"), ("Broker=mqtts://u@a", "mqtts://HOST"),
    ("Broker=mqtts://a:0", "mqtts://HOST"), ("Broker=mqtts://a:65536", "mqtts://HOST"),
    ("Broker=mqtts://a:", "mqtts://HOST"), ("Broker=mqtts://%a3", "mqtts://HOST"),
    ("Broker=mqtts://[::1", "mqtts://HOST"), ("Broker=mqtts://[x]", "mqtts://HOST"),
    (Array(repeating: "Broker=mqtts://a", count: 9).joined(separator: "\n"), "at most 8 lines"),
    ("AllowPlaintext=true", "allowed: yes, no"), ("CAFile=ca.crt", "an absolute path"),
    ("Certificate=x", "an absolute path"), ("Key=x", "an absolute path"),
    ("Heartbeat=59min", "allowed: 1h to 30d, in seconds or with s, min, h or d"), ("Heartbeat=31d", "1h to 30d"),
    ("Heartbeat=1 h", "1h to 30d"), ("Heartbeat=h", "1h to 30d"), ("Heartbeat=-2h", "1h to 30d"),
    ("Heartbeat=9999999999999999999h", "1h to 30d"), ("Heartbeat=9223372036854775807d", "1h to 30d"),
    ("Resync=14min", "15min to 7d"), ("Resync=8d", "15min to 7d"), ("KeepAlive=14s", "15s to 15min"),
    ("KeepAlive=16min", "15s to 15min"), ("Spread=601", "0 to 10min"), ("Presence=1", "yes, no"),
    ("OnTwin=ignore", "report, renew"), ("SiteKey=AAAA", "32 bytes in Base64"),
    ("SiteKey=\(String(repeating: "A", count: 43))=", "32 bytes in Base64"),
    ("Sender=push \(String(repeating: "A", count: 85))Q==", "a name and two"), ("Sender=push", "a name and two"),
    ("Sender=push AAAA", "a name and two"), ("AdminGroup=two words", "the name of a group"),
    ("Certificate=/a", "Certificate= and Key= need each other"),
    ("Key=/a", "Certificate= and Key= need each other"),
    ("Broker=mqtt://broker.example.org", "neither encrypted nor on this machine"),
    ("Broker=mqtt://127.0.0.1.example.org", "neither encrypted nor on this machine"),
    ("Broker=mqtt://127.evil.example.org", "neither encrypted nor on this machine"),
    ("Broker=mqtt://127.a.b.c", "neither encrypted nor on this machine"),
    ("Broker=mqtt://127.0.0.256", "neither encrypted nor on this machine"),
    ("Broker=mqtt://127.0.0.-0", "neither encrypted nor on this machine"),
  ])
  func `a value that is not allowed is refused, with the allowed ones`(lines: String, message: String) throws {
    let failure = #expect(throws: ConfigurationFailure.self) { try load(lines) }
    #expect(failure?.description.contains(message) == true, "\(String(describing: failure))")
  }

  @Test(arguments: [
    (Data(repeating: 0x78, count: 1_025), "too"), (Data([0xff]), "UTF-8"), (Data([0x78, 0]), "UTF-8"),
  ])
  func `a password that cannot be used is named`(password: Data, reason: String) throws {
    let path = folder["fleet.password"]
    try password.write(to: URL(filePath: path))
    let failure = #expect(throws: ConfigurationFailure.self) { try Credentials(folder: folder.path) }
    #expect(failure?.place == path && failure?.reason.contains(reason) == true, "\(String(describing: failure))")
  }

  @Test func `a fault names its file and its line`() throws {
    let failure = #expect(throws: ConfigurationFailure.self) { try load("Presence=yes\nPresence=maybe") }
    #expect(failure?.place == "\(folder["identity-fleet.conf"]):3")
  }

  @Test func `a setting that does not exist is told`() throws {
    try folder.write("identity-fleet.conf", "[Fleet]\nColour=blue\n")
    let loaded = try FleetConfiguration.load(file: folder["identity-fleet.conf"], folders: [])
    #expect(loaded.warnings == ["\(folder["identity-fleet.conf"]):2: unknown setting [Fleet] Colour=; it is ignored"])
  }

  @Test(arguments: ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
  func `a broker on this machine needs no encryption`(host: String) throws {
    #expect(try load("Broker=mqtt://\(host)").brokers.count == 1)
  }

  @Test func `plaintext to other machines has to be allowed`() throws {
    #expect(try load("Broker=mqtt://broker.example.org\nAllowPlaintext=yes").brokers.count == 1)
  }

  @Test(arguments: [
    ("mqtts://broker.example.org", "broker.example.org", 8883), ("mqtt://broker.test", "broker.test", 1883),
    ("mqtts://broker:99", "broker", 99), ("mqtts://[fe80::1]", "fe80::1", 8883), ("mqtts://[::1]:7", "::1", 7),
    ("mqtts://%a2.fleet.example.org", "7e.fleet.example.org", 8883), ("mqtts://x%a2y%a2", "x7ey7e", 8883),
    ("mqtts://%a4.fleet.example.org:9", "7ef5.fleet.example.org", 9), ("mqtts://%a4.%a2.%a23", "7ef5.7e.7e3", 8883),
  ])
  func `an address has a host and a port`(text: String, host: String, port: UInt16) throws {
    let account = try #require(AccountID(hexadecimal: "7ef5b1f00fbbc099d18e604def9e140e"))
    let pattern = try #require(BrokerPattern(text))
    let address = pattern.address(for: account)
    #expect(address.host == host && address.port == port)
    #expect(pattern.dependsOnAccount == text.contains("%"))
  }
}
