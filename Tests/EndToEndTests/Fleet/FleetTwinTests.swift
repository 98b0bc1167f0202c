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
      copying: try devices[0].snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0",
      as: FleetServiceTests.user)
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

  @Test func `row 68: a copied disk takes another identifier, if the configuration says so`() throws {
    let broker = try BrokerUnderTest()
    let settings = "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\nOnTwin=renew"
    let devices = try fleet(["desk", "laptop"], at: broker, "OnTwin=renew")
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let copy = try FleetUnderTest(copying: try devices[0].snapshot(), settings, as: FleetServiceTests.user)
    let all = devices + [copy]
    try agree(all, on: ["desk", "desk", "laptop"])
    let twins = try [devices[0], copy].map { try $0.daemon.uuid("get device") }
    #expect(twins[0] == desk && twins[1] != desk, "\(twins)")
    // Each has a record of its own, and speaks for itself.
    for (name, twin) in zip(["table", "copy"], [devices[0], copy]) {
      #expect(try twin.daemon.ask("devices name \(name)") == "OK")
    }
    try agree(all, on: ["copy", "laptop", "table"])
    #expect(try copy.daemon.client().ask("history device").contains { $0.contains(" cause=cloned ") })
    #expect(try !isSuspect(copy))
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

  @Test func `row 68: where nothing tells which of two is the copy, neither renews`() throws {
    let broker = try BrokerUnderTest()
    let settings = "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0\nOnTwin=renew"
    let devices = try fleet(["desk", "laptop"], at: broker, "OnTwin=renew")
    try agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let subscriber = try devices[0].daemon.client()
    #expect(try subscriber.subscribe("device").last?.hasPrefix("OK ") == true)
    // Then neither of the two knows the run of the other.
    devices[0].end(with: SIGKILL)
    let copy = try FleetUnderTest(copying: try devices[0].snapshot(), settings, as: FleetServiceTests.user)
    try devices[0].start()
    for twin in [devices[0], copy] { try twin.wait("both tell") { try isSuspect(twin) } }
    #expect(try subscriber.answer().last?.contains(" cause=cloned copy=unknown ") == true)
    // The last words of both have been read, so neither of them decides later.
    try agree(devices + [copy], on: ["desk", "laptop"])
    #expect(try [devices[0], copy].allSatisfy { try $0.daemon.uuid("get device") == desk })
  }

  /// Ends a device, and returns another machine on which its backup was restored.
  func restored(_ device: FleetUnderTest, at broker: BrokerUnderTest) throws -> FleetUnderTest {
    let backup = try device.daemon.backup()
    device.daemon.end(with: SIGKILL)
    device.end(with: SIGKILL)
    let another = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    _ = try another.daemon.restore(backup, "adopt-device=yes")
    return another
  }

  @Test func `row 69: a device that was restored from a backup joins again`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let another = try restored(devices[1], at: broker)
    try join(another, by: devices[0])
    #expect(try another.daemon.ask("devices name notebook") == "OK")
    try agree([devices[0], another], on: ["desk", "notebook"])
  }
}
