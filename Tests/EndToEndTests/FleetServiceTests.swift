import Foundation
import TestSupport
import Testing

/// The fleet of real devices: a daemon and a service each, and one broker. That is a cluster, if one boots in this run,
/// and else Mosquitto.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons"), .oneCluster) struct FleetServiceTests {
  /// Returns the broker of the tests that do not depend on its kind.
  func anyBroker() throws -> any MessageBroker {
    ClusterUnderTest.missing == nil ? try OneCluster.running() : try BrokerUnderTest()
  }

  /// Starts a device with a name.
  func device(_ name: String, at broker: any MessageBroker, _ settings: String = "") throws -> FleetUnderTest {
    let device = try FleetUnderTest("\(broker.configuration)\nSpread=0\n\(settings)", at: broker.place)
    #expect(try device.daemon.ask("devices name \(name)") == "OK")
    return device
  }

  /// Starts devices with these names, of which the first makes an account and the others join it.
  func fleet(_ names: [String], at broker: any MessageBroker, _ settings: String = "") throws
    -> [FleetUnderTest]
  {
    let devices = try names.map { try device($0, at: broker, settings) }
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

  @Test func `devices of an account know each other, and their names`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    #expect(try devices[2].daemon.ask("devices name pocket") == "OK")
    try agree(devices, on: ["desk", "laptop", "pocket"])
    // The broker has one message for each device, and learns no name.
    let account = try account(of: devices[1])
    let retained = try broker.retained(topics(of: account))
    #expect(retained.count == 3)
    #expect(retained.allSatisfy { $0.hasPrefix("identityd/v1/\(account)/d/") })
    #expect(!retained.contains { $0.contains("6465736b") }, "desk in hexadecimal digits")
  }

  @Test func `a device that another one removes forgets the account`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let phone = try devices[2].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(phone)") == "OK")
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    try devices[2].wait(state: "no-account")
    #expect(try devices[2].devices() == ["phone"])
    #expect(try devices[2].daemon.ask("account") == "OK \"\"")
    #expect(try devices[2].daemon.uuid("get device") == phone, "it keeps its identifier")
    #expect(try devices[2].daemon.ask("item read service=identity-fleet account=root").hasPrefix("ERR not-found "))
    // It can join again, which outranks the removal.
    try join(devices[2], by: devices[1])
    try agree(devices, on: ["desk", "laptop", "phone"])
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

  @Test func `a device that leaves is gone everywhere`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let left = try devices[1].identityctl("account", "leave", "--yes")
    #expect(left.status == 0, "\(left)")
    try devices[0].wait(for: ["desk"])
    try devices[1].wait(state: "no-account")
    #expect(try devices[1].devices() == ["laptop"])
  }

  @Test func `another account that an admin enters stays, and the keys are deleted`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[1].daemon.ask("account set bob") == "OK")
    try devices[1].wait(state: "no-account")
    devices[0].end(with: SIGKILL)
    #expect(try devices[0].daemon.ask("account set carol") == "OK")
    try devices[0].start()
    try devices[0].wait(state: "no-account")
    for (device, account) in zip(devices, ["carol", "bob"]) {
      #expect(try device.daemon.ask("account") == "OK \(account)")
      #expect(try device.devices().count == 1)
      #expect(try device.daemon.ask("item read service=identity-fleet account=root").hasPrefix("ERR not-found "))
    }
  }

  @Test func `row 58: a service that is killed loses nothing`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    for round in 1...5 {
      devices[1].end(with: SIGKILL)
      // Changes on both sides, while the service is away.
      #expect(try devices[0].daemon.ask("devices name desk\(round)") == "OK")
      #expect(try devices[1].daemon.ask("devices name laptop\(round)") == "OK")
      try devices[1].start()
      try agree(devices, on: ["desk\(round)", "laptop\(round)"])
    }
    for device in devices {
      #expect(try !device.daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") }, "no false twin")
    }
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

  @Test func `row 58: a daemon that is killed is found again, and a removal meanwhile is carried out`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    devices[0].end(with: SIGKILL)
    let phone = try devices[2].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(phone)") == "OK")
    devices[0].daemon.end(with: SIGKILL)
    try devices[0].daemon.start()
    try devices[0].start()
    try devices[2].wait(state: "no-account")
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    devices[1].daemon.end(with: SIGKILL)
    try devices[1].daemon.start()
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
  }

  @Test func `a device with another identifier takes its place`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let former = try devices[1].daemon.uuid("get device")
    let subscriber = try devices[0].daemon.client()
    #expect(try subscriber.subscribe("devices").last?.hasPrefix("OK ") == true)
    let renewed = try devices[1].daemon.uuid("renew device")
    #expect(renewed != former)
    // Another name in the same run belongs to the later identifier.
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    try subscriber.send("ping\n")
    var events: [String] = []
    while let line = try subscriber.line(), line != "OK" { events.append(line) }
    try #require(!events.isEmpty)
    #expect(events[0].contains(" devices replaced value=\(renewed) previous=\(former) "), "\(events)")
    #expect(events.allSatisfy { $0.contains(" value=\(renewed) ") && !$0.contains(" devices added ") }, "\(events)")
    // The others know the tombstone, too, and the new record.
    let known = try devices[0].daemon.client().ask("fleet records")
    #expect(known.contains { $0.hasPrefix("* \(former) ") && $0.contains(" gone=yes ") }, "\(known)")
    #expect(known.contains { $0.hasPrefix("* \(renewed) ") && $0.contains(" gone=no ") }, "\(known)")
  }

  @Test func `devices tell each other that they are connected`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    func wait(for count: Int, _ listening: [FleetUnderTest]) throws {
      for device in listening {
        try device.wait("\(count) others are connected") {
          let row = try device.ask("fleet status").first { $0.hasPrefix("* connected=") }
          return row == (count == 0 ? nil : "* connected=\(count)")
        }
      }
    }
    try wait(for: 2, devices)
    devices[2].end(with: SIGKILL)
    try wait(for: 1, Array(devices[..<2]))
    devices[1].end(with: SIGTERM)
    try wait(for: 0, [devices[0]])
    try devices[2].start()
    try wait(for: 1, [devices[0], devices[2]])
    try devices[0].reload("\(broker.configuration)\nSpread=0\nPresence=no")
    try wait(for: 0, [devices[0], devices[2]])
    #expect(try broker.retained(topics(of: try account(of: devices[0]))).count == 3, "no word is retained")
  }

  @Test func `a device that a rotation removed reads nothing new`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let phone = try devices[2].daemon.uuid("get device")
    devices[2].end(with: SIGKILL)
    let rotated = try devices[0].identityctl("account", "rotate", "without=\(phone)", "--yes")
    #expect(rotated.status == 0, "\(rotated)")
    for device in devices[..<2] {
      try device.wait("the key is replaced") { try device.ask("fleet status").contains("* rotations=1") }
    }
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(Array(devices[..<2]), on: ["desk", "notebook"])
    // Both go on after an end, and can invite to the new epoch.
    for device in devices[..<2] {
      device.end(with: SIGKILL)
      try device.start()
    }
    let tablet = try device("tablet", at: broker)
    try join(tablet, by: devices[1])
    try agree(Array(devices[..<2]) + [tablet], on: ["desk", "notebook", "tablet"])
    // A thief keeps the tombstone from the phone, and shows it everything else. It can open none of that.
    let thief = try BrokerUnderTest()
    let messages = try broker.messages(topics(of: try account(of: tablet)))
    try thief.publish(all: messages.filter { !$0.payload.starts(with: [0x69, 0x46, 1, 2]) })
    try devices[2].move(to: thief)
    try devices[2].start()
    try devices[2].wait(state: "live")
    try devices[2].wait("the phone sees messages that it cannot open") {
      try devices[2].ask("fleet status").contains { $0.hasPrefix("* dropped=") }
    }
    #expect(try devices[2].devices() == ["desk", "laptop", "phone"], "as it was before")
    // It hears of its removal once nobody keeps that from it.
    devices[2].end(with: SIGTERM)
    try devices[2].move(to: broker)
    try devices[2].start()
    try devices[2].wait(state: "no-account")
    try agree(Array(devices[..<2]) + [tablet], on: ["desk", "notebook", "tablet"])
    try join(devices[2], by: tablet)
    try agree(devices + [tablet], on: ["desk", "notebook", "phone", "tablet"])
  }

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
      ("account rotate", "ERR conflict "), ("account rotate without=x", "ERR bad-argument "),
      ("fleet credentials", "ERR conflict "),
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
    try client.send(String(repeating: " ", count: 500) + "\naccount create bob\n")
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

  @Test func `a device whose state was lost joins again under its identifier`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let laptop = try devices[1].daemon.uuid("get device")
    let another = try device("phone", at: broker)
    #expect(try another.daemon.ask("migrate device \(laptop) commit=yes force=yes").hasPrefix("OK "))
    try join(another, by: devices[0])
    try agree([devices[0], another], on: ["desk", "phone"])
    // The earlier one cannot speak for the device any more.
    try devices[1].wait(state: "no-account")
    #expect(devices[1].log.contains("another machine has joined the account"))
  }
}
