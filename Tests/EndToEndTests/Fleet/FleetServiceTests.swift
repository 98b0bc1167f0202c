import Foundation
import TestSupport
import Testing

/// The fleet of real devices: a daemon and a service each, and one broker. That is a cluster, if one boots in this run,
/// and else Mosquitto.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons"), .oneCluster, .tags(.slow))
struct FleetServiceTests {
  /// The user of the services, which have a manifest as the system's has. Without a user, they are those of a daemon of
  /// one's own.
  static let user: String? = "root"

  /// Returns the broker of the tests that do not depend on its kind.
  func anyBroker() throws -> any MessageBroker {
    ClusterUnderTest.missing == nil ? try OneCluster.running() : try BrokerUnderTest()
  }

  /// Starts a device with a name.
  func device(
    _ name: String, at broker: any MessageBroker, _ settings: String = "", as user: String? = user
  ) throws -> FleetUnderTest {
    let device = try FleetUnderTest("\(broker.configuration)\nSpread=0\n\(settings)", at: broker.place, as: user)
    #expect(try device.daemon.ask("devices name \(name)") == "OK")
    return device
  }

  /// Starts devices with these names, of which the first makes an account and the others join it.
  func fleet(
    _ names: [String], at broker: any MessageBroker, _ settings: String = "", as user: String? = user
  ) throws -> [FleetUnderTest] {
    let devices = try names.map { try device($0, at: broker, settings, as: user) }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    for device in devices.dropFirst() { try join(device, by: devices[0]) }
    return devices
  }

  /// Returns the name of a device's account at its broker.
  func account(of device: FleetUnderTest) throws -> String {
    String(try #require(device.ask("fleet credentials")[0].firstMatch(of: /^OK user=([0-9a-f]{32}) password=/)).1)
  }

  /// Returns the filter of all retained messages of an account, but for its invitations.
  func topics(of account: String) -> String { "identityd/v1/\(account)/+/+/+" }

  /// Makes a device join the account of another one, by a file.
  func join(_ device: FleetUnderTest, by other: FleetUnderTest) throws {
    let path = other.daemon.folder.appending(path: "invitation").path
    let invited = try other.identityctl("account", "invite", "--file=\(path)", "--no-passphrase")
    guard invited.status == 0 else { throw Failure(invited.errors) }
    let joined = try device.identityctl("account", "join", "--file=\(path)")
    guard joined.status == 0 else { throw Failure(joined.errors) }
    try FileManager.default.removeItem(atPath: path)
  }

  /// Waits until all devices list all of them, and nothing is to be published any more.
  func agree(_ devices: [FleetUnderTest], on names: [String]) throws {
    for device in devices {
      try device.wait(for: names)
      try device.wait(state: "live")
    }
  }

  /// Waits until devices have completed the readings that follow each other after a connection.
  func settleIn(_ devices: [FleetUnderTest]) throws {
    // Each takes two seconds of silence, and the answer comes before. One more meanwhile does nothing.
    for _ in 1...15 {
      for device in devices { #expect(try device.ask("fleet sync") == ["OK"]) }
      usleep(1_000_000)
    }
  }

  /// Checks that subscribers of the devices have heard of one change of each of some devices, and of nothing else.
  func expectOneChange(of devices: some Collection<FleetUnderTest>, at listeners: [Client]) throws {
    let identifiers = try devices.map { try $0.daemon.uuid("get device") }
    for listener in listeners {
      try listener.send("ping\n")
      var events: [String] = []
      while let line = try listener.line(), line != "OK" { events.append(line) }
      #expect(events.count == identifiers.count, "\(events)")
      for identifier in identifiers {
        #expect(events.count { $0.contains(" devices changed value=\(identifier) ") } == 1, "\(events)")
      }
    }
  }

  @Test func `row 64: two devices that remove each other at the same moment both leave`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let identifiers = try devices.map { try $0.daemon.uuid("get device") }
    func isRemoved(_ place: Int, at device: FleetUnderTest) throws -> Bool {
      try device.daemon.client().ask("fleet records").contains {
        $0.hasPrefix("* \(identifiers[place]) ") && $0.contains(" gone=yes ")
      }
    }
    // Neither hears of the other's removal before its own is on the way.
    broker.pause()
    for (device, other) in zip(devices, [1, 0]) {
      #expect(try device.daemon.ask("devices forget \(identifiers[other])") == "OK")
      try device.wait("the removal is written") { try isRemoved(other, at: device) }
    }
    broker.resume()
    for (device, name) in zip(devices, ["desk", "laptop"]) {
      try device.wait(state: "no-account")
      #expect(try device.devices() == [name])
    }
    try agree([devices[2]], on: ["phone"])
    #expect(try isRemoved(0, at: devices[2]) && isRemoved(1, at: devices[2]))
    #expect(try broker.retained(topics(of: try account(of: devices[2]))).count == 3)
  }

  @Test func `a device that was away while it was removed leaves, and its own removals count for nothing`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let identifiers = try devices.map { try $0.daemon.uuid("get device") }
    devices[1].end(with: SIGKILL)
    #expect(try devices[1].daemon.ask("devices forget \(identifiers[0])") == "OK")
    #expect(try devices[0].daemon.ask("devices forget \(identifiers[1])") == "OK")
    try agree([devices[0], devices[2]], on: ["desk", "phone"])
    try devices[1].start()
    try devices[1].wait(state: "no-account")
    #expect(try devices[1].devices() == ["laptop"])
    #expect(try devices[2].daemon.ask("devices name tablet") == "OK")
    try agree([devices[0], devices[2]], on: ["desk", "tablet"])
  }

  @Test func `stored messages are read in parts`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    devices[0].end(with: SIGKILL)
    let client = try devices[0].daemon.client()
    for number in 1...300 {
      let device = "11111111-1111-4111-8111-\(String(format: "%012x", number))"
      #expect(try client.ask("devices put \(device) generation=1 counter=1 record=AAAA") == ["OK added"])
    }
    func parts() throws -> Int { try client.requests("fleet records") }
    let before = try parts()
    try devices[0].start()
    // Two parts with messages, and one that shows that these were all.
    try devices[0].wait("all are read") { try parts() == before + 3 }
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try devices[1].wait(for: ["laptop", "table"])
  }

  /// As many devices as a large account may lose at once.
  private static let manyDevices = (0..<100).map { _ in UUID().uuidString.lowercased() }.joined(separator: ",")

  @Test func `only admins use the socket`() throws {
    let broker = try BrokerUnderTest()
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)")
    let stranger = try run(
      ["setpriv", "--reuid=8", "--regid=8", "--clear-groups", "socat", "-u", "UNIX-CONNECT:\(device.socket)", "-"])
    #expect(stranger.output.hasPrefix("ERR denied "), "\(stranger)")
    for (request, answer) in [
      ("account join data=AAAA", "ERR conflict "), ("account join", "ERR bad-argument "),
      ("account create", "ERR bad-argument "), ("account create a b", "ERR bad-argument "),
      ("account create a x=y", "ERR bad-argument "), ("account rename", "ERR unknown-verb "),
      ("account invite", "ERR conflict "), ("account leave", "ERR conflict "),
      ("account rotate", "ERR conflict "), ("account rotate without=x", "ERR invalid-uuid "),
      ("account rotate without=\(Self.manyDevices)", "ERR conflict "),
      ("fleet credentials", "ERR conflict "), ("fleet reports reading=+1", "ERR bad-argument "),
      ("\"", "ERR syntax "),
    ] {
      #expect(try device.ask(request)[0].hasPrefix(answer), "\(request)")
    }
    #expect(try device.ask("account create alice") == ["OK"])
    #expect(try device.ask("account create bob")[0].hasPrefix("ERR conflict "))
  }

  @Test func `a line that is too long is not carried out, and nothing behind it`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    let client = try Client(device.socket)
    try client.send("account create alice" + String(repeating: " ", count: 8_000))
    // The service reads the beginning alone.
    usleep(200_000)
    // Unread input would make the kernel drop the answer at a close.
    try client.send(String(repeating: " ", count: 100_000) + "\naccount create bob\n")
    #expect(try client.answer()[0].hasPrefix("ERR too-long "))
    #expect(try client.line() == nil)
    #expect(try device.daemon.ask("account") == "OK \"\"")
  }

  @Test func `a service that stops tells the broker`() throws {
    let broker = try BrokerUnderTest()
    // With a will, the end comes without a word, so that the broker publishes the will.
    let devices = try fleet(["desk"], at: broker, "Presence=no")
    try agree(devices, on: ["desk"])
    // A reading has a connection of its own.
    #expect(try devices[0].ask("fleet reports site=\(String(repeating: "0", count: 32))") == ["OK reading=1"])
    try devices[0].wait("both are connected") { broker.count("New client connected") == 2 }
    devices[0].end(with: SIGTERM)
    try devices[0].wait("the broker knows") { broker.count(" disconnected") == 2 }
  }

  @Test func `a group that does not exist is found by a check`() throws {
    let folder = try TemporaryFolder()
    try folder.write("identity-fleet.conf", "[Fleet]\nAdminGroup=no-such-group\n")
    let checked = try run([
      DaemonUnderTest.binaries.appending(path: "identity-fleet").path, "--check-config",
      "--config=\(folder["identity-fleet.conf"])",
    ])
    #expect(checked.status == 78 && checked.errors.contains("there is no such group"), "\(checked)")
  }

  @Test func `keys that could not be read at the start are not replaced`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    device.end(with: SIGTERM)
    #expect(try device.daemon.ask("account set alice") == "OK")
    try device.start()
    let keys = ["root", "device"].map { "service=identity-fleet account=\($0)" }
    for key in keys {
      let stored = try device.daemon.ask(
        "item put \(key) this-device-only=yes data=\(String(repeating: "A", count: 43))=")
      #expect(stored.hasPrefix("OK"), "\(stored)")
    }
    let before = try keys.map { try device.daemon.ask("item read \($0)") }
    #expect(try device.ask("account create alice")[0].hasPrefix("ERR conflict "))
    #expect(try keys.map { try device.daemon.ask("item read \($0)") } == before)
  }
}
