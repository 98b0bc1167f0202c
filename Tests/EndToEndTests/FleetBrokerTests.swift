import Foundation
import TestSupport
import Testing

// Brokers that fail, forget, flood or are replaced.
extension FleetServiceTests {
  @Test func `without a broker the list stays, and status tells why`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    broker.kill()
    try devices[0].wait("status tells why") {
      try devices[0].daemon.client().ask("status").contains { $0.contains("reason=Connection refused") }
    }
    #expect(try devices[0].devices() == ["desk", "laptop"])
    #expect(try devices[0].daemon.client().ask("status").contains("* fleet=waiting"))
  }

  @Test func `a new configuration is used at once`() throws {
    let broker = try BrokerUnderTest()
    let other = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    broker.kill()
    for device in devices { try device.reload("Broker=mqtt://127.0.0.1:\(other.port)\nSpread=0") }
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try agree(devices, on: ["laptop", "table"])
    // A configuration with a fault changes nothing.
    try devices[0].reload("Broker=nonsense")
    try devices[0].wait("the fault is logged") { devices[0].log.contains("configuration refused") }
    try agree(devices, on: ["laptop", "table"])
  }

  @Test func `a flood of foreign messages is read slowly, and disturbs nothing`() throws {
    let broker = try BrokerUnderTest("allow_anonymous true\nmax_queued_messages 0")
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let credentials = try devices[0].ask("fleet credentials")[0]
    let account = try #require(credentials.firstMatch(of: /user=([0-9a-f]{32})/)).1
    let flood = ["-q", "0", "-l", "-t", "identityd/v1/\(account)/d/0/none"]
    let count = 10_000
    let sent = try run(
      ["mosquitto_pub", "-p", "\(broker.port)"] + flood, input: String(repeating: "flood\n", count: count))
    #expect(sent.status == 0, "\(sent)")
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    for device in devices {
      try device.wait("all are dropped") { try device.ask("fleet status").contains("* foreign=\(count)") }
    }
    try agree(devices, on: ["desk", "notebook"])
    guard Trial.isLong else { return }
    let flooding = Process()
    flooding.executableURL = URL(filePath: "/bin/sh")
    flooding.arguments = ["-c", "yes flood | exec mosquitto_pub -p \(broker.port) \(flood.joined(separator: " "))"]
    try flooding.run()
    defer { flooding.terminate() }
    for device in devices {
      try device.wait("the connection is given up", for: 300) {
        device.log.contains("the broker sends more messages than this device opens")
      }
    }
  }

  @Test func `row 55: a broker that lost everything gets everything back, and nobody notices`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    // The record of a device that is off comes from another one, after two minutes.
    if Trial.isLong { devices[2].end(with: SIGKILL) }
    let topics = topics(of: try account(of: devices[0]))
    let before = try broker.retained(topics)
    let epoch = try devices[0].daemon.ask("subscribe")
    try broker.forget()
    try devices[0].wait("the broker has all records", for: 300) { try broker.retained(topics) == before }
    try agree(Array(devices[..<2]), on: ["desk", "laptop", "phone"])
    #expect(try devices[0].daemon.ask("subscribe") == epoch, "no event")
  }
}
