import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

// Members that write in the name of others.
extension FleetServiceTests {
  @Test func `row 62: messages that a member forges are dropped, counted and put right`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    // The first one forges. The second one is away.
    let others = try PlayedDevices(2, in: devices[0])
    let absent = try others.record(1, named: "tablet", counter: 1)
    try broker.publish(all: [try others.record(0, named: "phone", counter: 1), absent])
    try agree(devices, on: ["desk", "laptop", "phone", "tablet"])
    let laptop = try #require(UUID(Text(devices[1].daemon.uuid("get device"))))
    let topics = topics(of: try account(of: devices[0]))
    let present = try broker.messages(topics)
    func state() throws -> [[String]] {
      try devices.map { device in
        let client = try device.daemon.client()
        return try ["devices", "fleet records", "subscribe"].flatMap { try client.ask($0) }
      }
    }
    let before = try state()
    /// Publishes a message, waits until all have dropped it, and then until the broker has other messages again.
    func attack(_ name: String, _ forged: PlayedDevices.Note, leaves expected: [PlayedDevices.Note]) throws {
      let counts = try devices.map { try dropped(by: $0) }
      try broker.publish(forged.payload, to: forged.topic)
      for (device, count) in zip(devices, counts) {
        try device.wait("\(name) is dropped") { try dropped(by: device) > count }
      }
      try devices[0].wait("\(name) is put right") {
        try broker.retained(topics, count: present.count).map(BrokerUnderTest.message).elementsEqual(expected, by: ==)
      }
    }

    let own = others.topic(of: laptop).text
    let fields = others.fields(0, "forged")
    func forged(about subject: IdentityCore.UUID, by author: IdentityCore.UUID) throws -> PlayedDevices.Note {
      try others.message(.record, about: subject, by: author, signer: 0, fields, counter: 1_000, on: laptop)
    }
    let tooLong = Array(repeating: UInt8(0x69), count: 70_000)
    let attacks: [(name: String, message: PlayedDevices.Note)] = try [
      ("a record in the name of its device", forged(about: laptop, by: laptop)),
      ("a record by another device", forged(about: laptop, by: others[0])),
      ("a record on another topic", forged(about: others[0], by: others[0])),
      ("a moved record", (own, others.record(0, named: "phone", counter: 3).payload)),
      ("a message that is too long", (own, tooLong)),
      (
        "a record of a device that is away",
        others.message(.record, about: others[1], by: others[1], signer: 0, fields, counter: 1_000)
      ),
    ]
    for (name, message) in attacks { try attack(name, message, leaves: present) }
    // A later release may have written a message of an unknown version, so the message stays, but not at its author.
    var unwritten = try #require(present.first { $0.topic == own })
    unwritten.payload[2] = 3
    try attack("a later version at its author", unwritten, leaves: present)
    var later = try others.record(0, named: "later", counter: 2)
    later.payload[2] = 3
    try attack("a later version", later, leaves: present.map { $0.topic == later.topic ? later : $0 })
    #expect(try state() == before, "no event, and no other record")

    // A record of a higher generation is another membership, which a member can begin in the name of another device.
    try settleIn([devices[1]])
    let desk = try #require(UUID(Text(devices[0].daemon.uuid("get device"))))
    let second = try others.message(.record, about: desk, by: desk, signer: 0, fields, generation: 2, counter: 1)
    try broker.publish(second.payload, to: second.topic)
    try devices[0].wait(state: "no-account")
    #expect(devices[0].log.contains("another machine has joined the account in the name of this device"))
    try devices[1].wait(for: ["forged", "laptop", "phone", "tablet"])
    // The others have to believe it, and name it.
    try devices[1].wait("the other key is named") {
      try devices[1].ask("fleet status").contains("* other-key=\"\(desk) forged\"")
    }
    #expect(devices[1].log.contains("forged (\(desk)) has come with another key, and this device knows of no removal"))

    // Every member may remove a device. The log tells that the author has not signed this removal.
    let removal = try others.removal(of: laptop, by: others[1], signer: 0)
    try broker.publish(removal.payload, to: removal.topic)
    try devices[1].wait(state: "no-account")
    #expect(devices[1].log.contains("a device that calls itself \(others[1]) has removed this device"))
  }
}
