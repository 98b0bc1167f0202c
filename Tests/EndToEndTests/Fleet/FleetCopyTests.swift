import Foundation
import TestSupport
import Testing

// The advice about copies, followed to its end: by the copy, while the original and a third member look on.
extension FleetServiceTests {
  /// A machine-id that no machine has.
  private static let foreign = "0123456789abcdef0123456789abcdef"

  /// The finding of `identityctl check` about the fleet.
  private func finding(about device: FleetUnderTest) throws -> Diagnosis.Entry {
    try device.daemon.diagnosis()["fleet"]
  }

  /// The identifiers in the list of a device, in their order.
  private func identifiers(at device: FleetUnderTest) throws -> [String] {
    try device.daemon.client().ask("devices").dropLast().map { String($0.split(separator: " ")[1]) }
  }

  @Test(arguments: [nil, foreign], [user, nil])
  func `a copy that follows the advice leaves the original in its account`(machineID: String?, user: String?) throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker, as: user)
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let listed = try identifiers(at: devices[1])
    let copy = try FleetUnderTest(
      copying: try devices[0].snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0", as: user,
      machineID: machineID)
    if machineID == nil {
      for twin in [devices[0], copy] { try twin.wait("both tell") { try isSuspect(twin) } }
      let cause = try copy.daemon.diagnosis()["machine-id"].cause
      #expect(cause?.contains("On the copy, 'identityctl --socket=\(copy.daemon.socket) renew device'") == true)
      let renewed = try copy.identityctl("renew", "device", "--yes")
      #expect(renewed.status == 0, "\(renewed)")
      #expect(try devices[0].identityctl("machine", "acknowledge").status == 0)
      // Without a restart, the others hear of it, and nothing is wrong any more.
      try devices[0].wait("the service forgets it") { try finding(about: devices[0]).result == "ok" }
      try devices[1].wait("the member hears of it") {
        try row(about: desk, at: devices[1])?.contains("suspect") == false
      }
    } else {
      #expect(try copy.identityctl("check", "--json").output.contains("identityd found another machine"))
      #expect(try copy.identityctl("machine", "acknowledge").status == 0)
    }
    let all = devices + [copy]
    try agree(all, on: ["desk", "desk", "laptop"])
    // The original is where it was, under its name.
    #expect(try devices[0].daemon.uuid("get device") == desk && copy.daemon.uuid("get device") != desk)
    #expect(try identifiers(at: devices[1]).prefix(2) == listed[...])
    #expect(try row(about: desk, at: devices[1])?.contains(" name=desk ") == true)
    for (name, twin) in zip(["table", "copy"], [devices[0], copy]) {
      #expect(try twin.daemon.ask("devices name \(name)") == "OK")
    }
    try agree(all, on: ["copy", "laptop", "table"])
    for twin in [devices[0], copy] {
      twin.end(with: SIGKILL)
      try twin.start()
      try agree(all, on: ["copy", "laptop", "table"])
      #expect(try !isSuspect(twin))
      #expect(try finding(about: twin).result == "ok")
    }
    // No member heard of the end of a device.
    #expect(try !devices[1].daemon.client().ask("fleet records").contains { $0.contains(" gone=yes ") })
  }

  @Test func `a copy tells no sender about the push tokens of the original`() throws {
    let broker = try BrokerUnderTest()
    let sender = Data([9] + [UInt8](repeating: 0, count: 31) + [UInt8](repeating: 1, count: 32)).base64EncodedString()
    let device = try fleet(["desk"], at: broker, "Sender=push \(sender)")[0]
    func messages() throws -> [String] { try broker.retained("identityd/v1/sender/+/+/+") }
    try device.wait("the sender has a message") { try messages().count == 1 }
    let empty = try messages()
    #expect(try device.daemon.ask("token put fcm one").hasPrefix("OK created "))
    try device.wait("the sender has the token") { try messages().count == 1 && messages() != empty }
    let said = try messages()
    let copy = try FleetUnderTest(
      copying: try device.snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\nSender=push \(sender)",
      as: Self.user, machineID: Self.foreign)
    try agree([device, copy], on: ["desk", "desk"])
    // A change that the copy tells its sender shows that the copy has looked at its tokens.
    #expect(try copy.daemon.ask("token put fcm one").hasSuffix(" state=invalid reason=copied"))
    #expect(try copy.daemon.ask("token invalidate fcm one") == "OK invalidated")
    #expect(try copy.daemon.ask("token put apns own").hasPrefix("OK created "))
    try copy.wait("the copy has a message of its own") { try messages().count == 2 }
    #expect(try messages().contains(said[0]), "the original's stays as it was")
    #expect(try copy.daemon.ask("token delete apns") == "OK")
    try copy.wait("the copy has none") { try messages() == said }
  }

  @Test func `boots with a foreign machine-id change nothing once the former one is back`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    for _ in 1...2 {
      for (machineID, names) in [(Self.foreign, ["desk", "desk", "laptop"]), (nil, ["desk", "laptop"])] {
        devices[0].daemon.end()
        try devices[0].boot(machineID: machineID)
        try agree(devices, on: names)
        #expect(try (devices[0].daemon.uuid("get device") == desk) == (machineID == nil))
      }
    }
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try agree(devices, on: ["laptop", "table"])
    #expect(try !isSuspect(devices[0]))
  }

  @Test func `a machine that comes back after its former entry was removed keeps its new keys`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    devices[0].daemon.end()
    try devices[0].boot(machineID: Self.foreign)
    try agree(devices, on: ["desk", "desk", "laptop"])
    #expect(try devices[1].daemon.ask("devices forget \(desk)") == "OK")
    try agree(devices, on: ["desk", "laptop"])
    devices[0].daemon.end()
    try devices[0].boot()
    try agree(devices, on: ["desk", "desk", "laptop"])
    /// The generation of the machine's record, which rises if a start takes other keys.
    func generation() throws -> Substring? {
      let record = try devices[1].daemon.client().ask("fleet records").first { $0.hasPrefix("* \(desk) ") }
      return record?.firstMatch(of: /generation=\d+ counter=\d+ gone=no/).flatMap { $0.0.split(separator: " ").first }
    }
    let joined = try #require(try generation())
    devices[0].end(with: SIGKILL)
    try devices[0].start()
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try agree(devices, on: ["desk", "laptop", "table"])
    #expect(try generation() == joined)
  }

  @Test func `a renewal of a repaired original ends its former identifier, if it says so`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[0].daemon.ask("fleet twin copy=no") == "OK")
    #expect(try isSuspect(devices[0]))
    let renewed = try devices[0].identityctl("renew", "device", "--replaces", "--yes")
    #expect(renewed.status == 0, "\(renewed)")
    let present = try devices[0].daemon.uuid("get device")
    try devices[1].wait("the list has the present identifier") { try identifiers(at: devices[1]).contains(present) }
    try agree(devices, on: ["desk", "laptop"])
  }

  @Test func `a device that was removed is told how to come back`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let laptop = try devices[1].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(laptop)") == "OK")
    try devices[1].wait(state: "no-account")
    try devices[1].wait("the service tells") { try devices[1].ask("fleet status").contains("* removed=alice") }
    let removed = "another device has removed this one from the account alice"
    #expect(try finding(about: devices[1]).cause?.contains(removed) == true)
    devices[1].end(with: SIGKILL)
    try devices[1].start()
    #expect(try finding(about: devices[1]).cause?.contains(removed) == true)
    try joinWithCode(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    #expect(try finding(about: devices[1]).cause?.contains(removed) != true)
    // A device that leaves by itself knows it.
    #expect(try devices[1].identityctl("account", "leave", "--yes").status == 0)
    try devices[1].wait(state: "no-account")
    #expect(try !devices[1].ask("fleet status").contains { $0.hasPrefix("* removed=") })
  }

  @Test func `a restored device is told that its keys are missing, and joins at once`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let another = try restored(devices[1], at: broker)
    try another.wait("the service tells") { try another.ask("fleet status").contains("* keys=missing") }
    #expect(try another.daemon.client().ask("status").contains("* fleet-said=keys=missing"))
    #expect(try finding(about: another).cause?.contains("of which the fleet has no keys") == true)
    let refused = try another.identityctl("account", "invite")
    #expect(refused.status != 0 && refused.errors.contains("join it with 'identityctl account join'"), "\(refused)")
    try joinWithCode(another, by: devices[0])
    try agree([devices[0], another], on: ["desk", "laptop"])
    #expect(try finding(about: another).cause?.contains("no keys") != true)
  }

  /// Makes a device join the account of another one with a code, as `check` advises.
  private func joinWithCode(_ device: FleetUnderTest, by other: FleetUnderTest) throws {
    let invited = try other.identityctl("account", "invite")
    let code = try #require(invited.output.firstMatch(of: /[0-9A-Z]{4}(-[0-9A-Z]{4}){3}/), "\(invited)").0
    let joined = try device.identityctl("account", "join", String(code))
    #expect(joined.status == 0, "\(joined)")
  }
}
