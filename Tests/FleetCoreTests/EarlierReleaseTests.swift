import FleetSeal
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetCore

/// Devices of an earlier release, which neither read nor write version 2 of the envelope.
@Suite(.tags(.trial)) struct EarlierReleaseTests {
  private static let seeds = UInt64(Trial.rounds(20, long: 2_000))
  /// Readings, and the rules for absent messages.
  private static let peace = 2 * 1_200_000 + 600_000

  @Test func `version 2 is written while all records tell that their devices read it`() throws {
    var talk = try Conversation()
    talk.readableVersion = 2
    let other = try talk.record(1, 1)
    _ = try talk.settle([other])
    #expect(talk.fleet.version == .two && talk.fleet.roster.earlierReleases == 0)
    talk.readableVersion = 1
    try talk.hear(talk.record(1, 2))
    #expect(talk.fleet.version == .one && talk.fleet.roster.earlierReleases == 1)
    // Version 3 includes this one.
    talk.readableVersion = 3
    try talk.hear(talk.record(1, 3))
    #expect(talk.fleet.version == .two)
    talk.readableVersion = 1
    try talk.hear(talk.record(2, 1))
    #expect(talk.fleet.version == .one)
    // A removed device reads nothing.
    try talk.hear(talk.tombstone(2, 2, by: 1))
    #expect(talk.fleet.version == .two)
  }

  @Test
  func `the own record is written again for a device that does not read it, and others are their authors' to write`()
    throws
  {
    var talk = try Conversation()
    talk.readableVersion = 2
    talk.version = .two
    let other = try talk.record(1, 1)
    _ = try talk.settle([other])
    talk.readableVersion = 1
    talk.version = .one
    let newcomer = try talk.hear(talk.record(2, 1))
    #expect(newcomer.filter { $0.contains("wake change") } == ["wake change 0...5000"])
    #expect(talk.tell(.woke(.change)).contains("write 0 record next(above: 10)"))
    // The next one in the same version needs no other.
    talk.readableVersion = 2
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 11)))
    talk.readableVersion = 1
    #expect(try !talk.hear(talk.record(2, 2)).contains { $0.contains("wake change ") })
  }

  @Test func `a record that was being written when the device came is written again, too`() throws {
    var talk = try Conversation()
    talk.readableVersion = 2
    _ = try talk.becomeLive([talk.record(1, 1)], shown: [talk.record(1, 1)])
    talk.tell(.woke(.change))
    talk.readableVersion = 1
    try talk.hear(talk.record(2, 1))
    talk.readableVersion = 2
    talk.version = .two
    let actions = talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 10)))
    #expect(actions.contains("wake change 200...200"), "\(actions)")
  }

  /// A member can seal a signed message of version 1 anew, with the same counter and another digest.
  @Test func `the own record in another seal is no sign of another machine`() throws {
    var talk = try Conversation()
    var own = try talk.settle([talk.record(1, 1)])
    for round in 1...3 {
      talk.nonce = UInt8(round)
      let copy = try talk.record(0, 10)
      #expect(copy.body == own.body && copy != own)
      try talk.hear(copy)
      if copy.digest.lexicographicallyPrecedes(own.digest) { continue }
      own = copy
      #expect(talk.fleet.twin == .alone && talk.fleet.roster[talk.speakers[0].tag] == copy)
    }
    #expect(talk.fleet.twin == .alone)
    // Another run is one.
    try talk.hear(talk.record(0, 11, run: 9))
    #expect(talk.fleet.twin != .alone)
  }

  @Test func `the summary leaves out the records that an earlier release does not read`() throws {
    var (one, all) = (Roster(), Roster())
    var talk = try Conversation(others: 3)
    talk.readableVersion = 2
    let earlier = try talk.record(1, 1)
    talk.version = .two
    let later = try talk.record(2, 1)
    all.adopt(later, at: talk.speakers[2].tag)
    all.adopt(earlier, at: talk.speakers[1].tag)
    one.adopt(earlier, at: talk.speakers[1].tag)
    #expect(all.digest != one.digest)
    (talk.readableVersion, talk.version) = (1, .one)
    let newcomer = try talk.record(3, 1)
    all.adopt(newcomer, at: talk.speakers[3].tag)
    one.adopt(newcomer, at: talk.speakers[3].tag)
    #expect(all.version == .one && one.version == .one && all.digest == one.digest)
  }

  @Test func `devices of two releases agree, before and after an update`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try PlayedFleet(seed: seed, devices: 3 + Int(seed % 4))
      let earlier = Set((0..<fleet.devices.count).filter { ($0 + Int(seed)).isMultiple(of: 3) })
      // Some have earlier releases from the beginning, and some join later.
      let isLate = seed.isMultiple(of: 2)
      for device in earlier {
        fleet.devices[device].disk.isEarlier = true
        fleet.devices[device].isMember = !isLate
      }
      fleet.endure(200_000)
      if isLate {
        fleet.run(for: Self.peace)
        #expect(fleet.devices.contains { $0.fleet.version == .two }, "\(fleet.story(of: seed))")
        for device in earlier { fleet.devices[device].isMember = true }
      }
      fleet.endure(300_000)
      fleet.run(for: Self.peace)
      let found = fleet.disagreements()
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
      #expect(fleet.versions == [1], "\(fleet.story(of: seed))")
      for device in earlier {
        fleet.kill(device)
        fleet.devices[device].disk.isEarlier = false
      }
      fleet.endure(300_000)
      fleet.run(for: Self.peace)
      for device in fleet.devices.indices { fleet.rename(device, Text("later \(device)")) }
      fleet.run(for: Self.peace)
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
      #expect(fleet.devices.allSatisfy { $0.suspicions.isEmpty }, "\(fleet.story(of: seed))")
      #expect(fleet.versions == [2], "\(fleet.story(of: seed))")
    }
  }

  @Test func `at rest, devices of two releases send no more than those of one`() throws {
    let settings = Settings(spread: 5_000, resync: 21_600_000)
    var fleet = try PlayedFleet(seed: 1, devices: 5, settings: settings)
    fleet.devices[0].disk.isEarlier = true
    fleet.devices[0].isMember = false
    for device in 1..<5 { fleet.start(device) }
    fleet.run(for: 1_000_000)
    // An absent device cannot write its record again.
    fleet.rename(4, "absent")
    fleet.run(for: 10_000)
    fleet.kill(4)
    fleet.devices[0].isMember = true
    fleet.start(0)
    fleet.run(for: 2_000_000)
    #expect(fleet.versions == [1, 2])
    let before = fleet.sent
    fleet.run(for: 6 * 600_000)
    #expect((1...6).contains(fleet.sent - before), "\(fleet.sent - before)")
  }
}

extension PlayedFleet {
  /// The versions of the records at the broker.
  fileprivate var versions: Set<UInt8> {
    Set(devices.compactMap { broker.retained[MessageTopic.device(account.id, $0.disk.tag).text]?[2] })
  }
}
