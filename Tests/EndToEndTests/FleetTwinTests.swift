import Foundation
import TestSupport
import Testing

// Copied disks, which the service has to tell from restarted devices.
extension FleetServiceTests {
  /// Returns whether a device's daemon tells its admin of a twin.
  func isSuspect(_ device: FleetUnderTest) throws -> Bool {
    try device.daemon.client().ask("status").contains { $0.hasPrefix("* suspect=\"cloned ") }
  }

  /// Returns the row about a device in the list of another one; nil if there is none.
  func row(about device: String, at other: FleetUnderTest) throws -> String? {
    try other.daemon.client().ask("devices").first { $0.hasPrefix("* \(device) ") }
  }

  @Test(arguments: [false, true])
  func `row 68: a copied disk is found on both sides, and by the members`(isRestarted: Bool) throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let subscriber = try devices[0].daemon.client()
    #expect(try subscriber.subscribe("device").last?.hasPrefix("OK ") == true)
    if isRestarted { devices[0].end(with: SIGKILL) }
    let copy = try FleetUnderTest(
      copying: try devices[0].snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    // Then neither of the two knows the run of the other.
    if isRestarted { try devices[0].start() }
    for twin in [devices[0], copy] {
      try twin.wait("both tell") { try isSuspect(twin) && twin.ask("fleet status").contains("* twin=yes") }
    }
    let event = try subscriber.answer().last ?? ""
    #expect(event.contains(" device suspect value=\(desk) cause=cloned "), "\(event)")
    try devices[1].wait("the member hears of it") {
      try row(about: desk, at: devices[1])?.hasSuffix(" suspect=yes") == true
    }
    // By default, nobody takes another identifier.
    #expect(try copy.daemon.uuid("get device") == desk && devices[0].daemon.uuid("get device") == desk)
    #expect(try devices[1].devices() == ["desk", "laptop"])
  }

  @Test(arguments: [false, true])
  func `row 68: a copied disk takes another identifier, if the configuration says so`(isRestarted: Bool) throws {
    let broker = try BrokerUnderTest()
    let settings = "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\nOnTwin=renew"
    let devices = try fleet(["desk", "laptop"], at: broker, "OnTwin=renew")
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    if isRestarted { devices[0].end(with: SIGKILL) }
    let copy = try FleetUnderTest(copying: try devices[0].snapshot(), settings)
    if isRestarted { try devices[0].start() }
    let all = devices + [copy]
    try agree(all, on: ["desk", "desk", "laptop"])
    let twins = try [devices[0], copy].map { try $0.daemon.uuid("get device") }
    #expect(twins.count { $0 == desk } == 1 && (isRestarted || twins[0] == desk), "\(twins)")
    // Each has a record of its own, and speaks for itself.
    for (name, twin) in zip(["table", "copy"], [devices[0], copy]) {
      #expect(try twin.daemon.ask("devices name \(name)") == "OK")
    }
    try agree(all, on: ["copy", "laptop", "table"])
    let renewed = twins[0] == desk ? copy : devices[0]
    #expect(try renewed.daemon.client().ask("history device").contains { $0.contains(" cause=cloned ") })
    #expect(try !isSuspect(renewed))
    // Restarts end the suspicion at the others, and find nothing new.
    for twin in [devices[0], copy] {
      twin.end(with: SIGKILL)
      try twin.start()
    }
    try agree(all, on: ["copy", "laptop", "table"])
    try devices[1].wait("no member suspects a device") {
      try !devices[1].daemon.client().ask("devices").contains { $0.contains(" suspect=yes") }
    }
    #expect(try twins == [devices[0], copy].map { try $0.daemon.uuid("get device") })
  }

  @Test func `a copy that is killed while it takes another identifier goes on with that`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let copy = try FleetUnderTest(
      copying: try devices[0].snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    try copy.wait("the copy tells") { try isSuspect(copy) }
    copy.end(with: SIGKILL)
    // The first steps, as the service takes them.
    for (name, data) in [("given-up", Data(desk.utf8)), ("device", Data(repeating: 7, count: 32))] {
      let stored = try copy.daemon.ask(
        "item put service=identity-fleet account=\(name) this-device-only=yes data=\(data.base64EncodedString())")
      #expect(stored.hasPrefix("OK"), "\(stored)")
    }
    try copy.start()
    try agree(devices + [copy], on: ["desk", "desk", "laptop"])
    #expect(try devices[0].daemon.uuid("get device") == desk && copy.daemon.uuid("get device") != desk)
    // Once only, also if the device gets the identifier back one day.
    #expect(try copy.daemon.ask("item read service=identity-fleet account=given-up").hasPrefix("ERR not-found "))
  }

  @Test func `row 69: a device that was restored from a backup joins again`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let backup = try devices[1].daemon.backup()
    devices[1].daemon.end(with: SIGKILL)
    devices[1].end(with: SIGKILL)
    let another = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    _ = try another.daemon.restore(backup, "adopt-device=yes")
    try join(another, by: devices[0])
    #expect(try another.daemon.ask("devices name notebook") == "OK")
    try agree([devices[0], another], on: ["desk", "notebook"])
  }
}
