import Foundation
import TestSupport
import Testing

/// A fleet over several plain brokers, which know nothing of each other: the devices are the replicas.
@Suite struct FleetShardTests {
  let fleet = FleetServiceTests()

  /// Two brokers, and names for them that the services look up.
  private struct Shards {
    let names: TemporaryFolder
    let brokers: [BrokerUnderTest]

    init() throws {
      names = try TemporaryFolder()
      try names.write("hosts", "127.0.0.1 localhost\n")
      brokers = try Self.pair()
    }

    /// Starts two brokers at one port of two addresses. Another program may have the port at the second one.
    private static func pair() throws -> [BrokerUnderTest] {
      for _ in 1...4 {
        let first = try BrokerUnderTest(at: "127.0.0.2")
        if let second = try? BrokerUnderTest(at: "127.0.0.3", port: first.port) { return [first, second] }
      }
      throw Failure("no port is free at two addresses")
    }

    /// The command that starts another one where the names are known.
    var place: [String] {
      ["unshare", "--mount", "sh", "-c", "mount --bind '\(names["hosts"])' /etc/hosts && exec \"$@\"", "sh"]
    }

    /// Lets names stand for addresses of brokers. The services have the file mounted, so its inode has to stay.
    func set(_ hosts: [(name: String, address: String)]) throws {
      let file = try FileHandle(forWritingTo: URL(filePath: names["hosts"]))
      try file.truncate(atOffset: 0)
      try file.write(contentsOf: Data(hosts.map { "\($0.address) \($0.name)\n" }.joined().utf8))
    }

    /// Returns a configuration with brokers of these names.
    func configuration(_ names: String...) -> String {
      let lines = names.map { "Broker=mqtt://\($0):\(brokers[0].port)\n" }
      return "\(lines.joined())AllowPlaintext=yes\nSpread=0"
    }
  }

  /// Returns accounts of two devices each, at one broker each, by the first digits of their names.
  private func accounts(_ shards: Shards) throws -> (hosts: [String], devices: [[FleetUnderTest]]) {
    let configuration = shards.configuration("%a4.fleet.test")
    var hosts: [String] = []
    var accounts: [[FleetUnderTest]] = []
    for name in ["desk", "car"] {
      let devices = try [name, "\(name) 2"].map { name in
        let device = try FleetUnderTest(configuration, at: shards.place)
        #expect(try device.daemon.ask("devices name \"\(name)\"") == "OK")
        return device
      }
      #expect(try devices[0].ask("account create \(name)") == ["OK"])
      hosts.append("\(try fleet.account(of: devices[0]).prefix(4)).fleet.test")
      try shards.set(zip(hosts, shards.brokers).map { ($0, $1.address.host) })
      try devices[0].reload(configuration)
      try devices[0].wait(state: "live")
      try fleet.join(devices[1], by: devices[0])
      try fleet.agree(devices, on: [name, "\(name) 2"])
      accounts.append(devices)
    }
    // One in 65,536 pairs of accounts has one name, and then one broker.
    try #require(hosts[0] != hosts[1])
    return (hosts, accounts)
  }

  /// Returns the number of records at a broker.
  private func records(at broker: BrokerUnderTest) throws -> Int {
    try broker.retained("identityd/v1/+/d/+/+").count
  }

  /// Checks that no device has an event, also not by the readings and comparisons that follow a connection.
  private func expectNoEvents(at accounts: [[FleetUnderTest]], since before: [String]) throws {
    let devices = accounts.flatMap { $0 }
    try fleet.settleIn(devices)
    #expect(try events(devices) == before)
  }

  private func events(_ devices: [FleetUnderTest]) throws -> [String] {
    try devices.map { try $0.daemon.ask("subscribe devices") }
  }

  @Test(.enabled(if: isRoot, "only root can mount a file with names"))
  func `a shard that lost its disk gets everything back, and nobody notices`() throws {
    let shards = try Shards()
    let (_, accounts) = try accounts(shards)
    for broker in shards.brokers { try wait("the broker has the records") { try records(at: broker) == 2 } }
    let before = try events(accounts.flatMap { $0 })
    let connections = shards.brokers[0].count("New client connected")
    try shards.brokers[1].forget()
    try wait("the records are back") { try records(at: shards.brokers[1]) == 2 }
    try expectNoEvents(at: accounts, since: before)
    #expect(try accounts[1][0].daemon.ask("devices name van") == "OK")
    try fleet.agree(accounts[1], on: ["car 2", "van"])
    #expect(shards.brokers[0].count("New client connected") == connections, "the devices of the other shard stayed")
  }

  @Test(.enabled(if: isRoot, "only root can mount a file with names"))
  func `the devices of a shard that is gone bring their records to the broker that its name stands for`() throws {
    let shards = try Shards()
    let (hosts, accounts) = try accounts(shards)
    let before = try events(accounts.flatMap { $0 })
    shards.brokers[1].kill()
    let rest = shards.brokers[0]
    try shards.set(hosts.map { ($0, rest.address.host) })
    try wait("the other broker has all records") { try records(at: rest) == 4 }
    try expectNoEvents(at: accounts, since: before)
    #expect(try accounts[1][0].daemon.ask("devices name van") == "OK")
    try fleet.agree(accounts[1], on: ["car 2", "van"])
  }

  @Test(.enabled(if: isRoot, "only root can mount a file with names"))
  func `a broker has several names, of which one is enough`() throws {
    let shards = try Shards()
    let device = try FleetUnderTest(shards.configuration("%a4.one.test", "%a4.two.test"), at: shards.place)
    #expect(try device.ask("account create alice") == ["OK"])
    let digits = try fleet.account(of: device).prefix(4)
    let address = shards.brokers[0].address.host
    for (known, other) in [("one", "two"), ("two", "one")] {
      // Nobody listens at the other address, as if its network were down.
      try shards.set([("\(digits).\(known).test", address), ("\(digits).\(other).test", "127.0.0.9")])
      shards.brokers[0].kill()
      try shards.brokers[0].start()
      try device.wait("the device is connected by the name \(known)") {
        let status = try device.ask("fleet status")
        return status.contains("* state=live")
          && status.contains("* broker=mqtt://%a4.\(known).test:\(shards.brokers[0].port)")
      }
    }
  }

  @Test func `an account moves to another broker, one device after the other, while it lives`() throws {
    let brokers = try [BrokerUnderTest(), BrokerUnderTest()]
    let devices = try fleet.fleet(["desk", "laptop", "phone"], at: brokers[0])
    try fleet.agree(devices, on: ["desk", "laptop", "phone"])
    let listeners = try devices.map { try $0.daemon.client() }
    for listener in listeners { _ = try listener.ask("subscribe devices") }
    func move(_ device: FleetUnderTest) throws {
      try device.reload("\(brokers[1].configuration)\nSpread=0")
      try device.wait("the device is at the other broker") {
        try device.ask("fleet status").contains("* broker=mqtt://127.0.0.1:\(brokers[1].port)")
      }
      try device.wait(state: "live")
    }
    try move(devices[0])
    // Both halves go on with the list that they have.
    #expect(try devices[0].daemon.ask("devices name moved") == "OK")
    #expect(try devices[1].daemon.ask("devices name stayed") == "OK")
    try devices[2].wait(for: ["desk", "phone", "stayed"])
    #expect(try devices[0].devices() == ["laptop", "moved", "phone"])
    // The first one brings the records of the others along, too.
    let account = try fleet.account(of: devices[0])
    try devices[0].wait("all records are at the other broker", for: 300) {
      try brokers[1].retained(fleet.topics(of: account)).count == 3
    }
    try move(devices[1])
    try move(devices[2])
    brokers[0].kill()
    try fleet.agree(devices, on: ["moved", "phone", "stayed"])
    try fleet.expectOneChange(of: devices[..<2], at: listeners)
  }
}
