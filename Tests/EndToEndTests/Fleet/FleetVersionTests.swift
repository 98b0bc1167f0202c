import FleetWire
import Foundation
import TestSupport
import Testing

// Devices of an earlier release, which do not read version 2 of the envelope (identity-fleet-protocol(7)).
extension FleetServiceTests {
  @Test func `devices write version 2 until one comes that does not read it, and again once it is updated`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    let others = try PlayedDevices(1, in: devices[0])
    /// Waits until the records of both devices have a version.
    func wait(forVersion version: UInt8) throws {
      let other = others.topic(of: others[0]).text
      try devices[0].wait("both write version \(version)") {
        let records = try broker.messages("identityd/v1/+/d/+/+").filter { $0.topic != other }
        return records.map { $0.payload[2] } == [version, version]
      }
    }
    func status(_ place: Int) throws -> [String] { try devices[place].ask("fleet status") }

    // The first record of each tells that the device reads version 2. The next one has it.
    for (device, name) in zip(devices, ["one", "two"]) {
      #expect(try device.daemon.ask("devices name \(name)") == "OK")
    }
    try wait(forVersion: 2)
    let earlier = try others.record(0, named: "early", counter: 1, readableVersion: 1)
    try broker.publish(earlier.payload, to: earlier.topic)
    try agree(devices, on: ["early", "one", "two"])
    try wait(forVersion: 1)
    for place in devices.indices { #expect(try status(place).contains("* earlier-releases=1")) }
    // A new start reads both versions from the store.
    devices[1].end(with: SIGTERM)
    try devices[1].start()
    try agree(devices, on: ["early", "one", "two"])

    let updated = try others.record(0, named: "later", counter: 2)
    try broker.publish(updated.payload, to: updated.topic)
    try agree(devices, on: ["later", "one", "two"])
    for place in devices.indices {
      #expect(try !status(place).contains { $0.contains("earlier-releases") })
      #expect(try devices[place].daemon.ask("devices name \(place)") == "OK")
    }
    try wait(forVersion: 2)
    try agree(devices, on: ["0", "1", "later"])
    devices[0].end(with: SIGTERM)
    try devices[0].start()
    try devices[0].wait(state: "live")
    try agree(devices, on: ["0", "1", "later"])
    for place in devices.indices { #expect(try !status(place).contains { $0.contains("dropped") }, "\(place)") }
  }
}
