import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Simulations of rotations with a broker that lies.
@Suite(.tags(.trial)) struct RotationTrialTests {
  private static let seeds = UInt64(Trial.rounds(6, long: 2_000))
  private static let peace = 2 * 1_200_000 + 600_000
  /// The authors of tombstones may be removed themselves.
  private static let lies = PlayedBroker.Lies(damagesVersions: false)

  /// Returns a fleet of live devices that know each other.
  private func fleet(_ seed: UInt64) throws -> PlayedFleet {
    var fleet = try PlayedFleet(seed: seed, devices: 4 + Int(seed % 3))
    fleet.endure(60_000, lies: Self.lies)
    fleet.run(for: Self.peace)
    #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    return fleet
  }

  /// Takes the removed device from the broker, and checks that the others agree without it.
  private func check(_ fleet: inout PlayedFleet, without removed: Int, _ seed: UInt64) throws {
    fleet.kill(removed)
    fleet.devices[removed].isMember = false
    fleet.run(for: Self.peace)
    // With its old keys, it can change nothing any more.
    fleet.haunt(removed, isReckless: true)
    fleet.run(for: Self.peace)
    #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    let members = fleet.devices.indices.filter { fleet.devices[$0].isMember }
    #expect(members == fleet.devices.indices.filter { $0 != removed }, "\(fleet.story(of: seed))")
    let epoch = try #require(fleet.devices.last).disk.epoch.number
    #expect(epoch > 1, "\(fleet.story(of: seed))")
    #expect(fleet.devices.last?.fleet.roster[fleet.devices[removed].disk.tag]?.kind == .tombstone)
    #expect(!fleet.isReadable(epoch, at: removed), "\(fleet.story(of: seed))")
    let without = fleet.made.filter { $0.removed.contains(fleet.devices[removed].disk.device) }
    #expect(!without.isEmpty, "\(fleet.story(of: seed))")
    for made in without { #expect(!fleet.isReadable(made.number, at: removed), "\(fleet.story(of: seed))") }
    for member in members {
      #expect(fleet.devices[member].fleet.roster[fleet.devices[member].disk.tag]?.epoch == epoch)
    }
  }

  @Test func `the remaining devices agree after a rotation, and the removed one can read nothing more`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      let initiator = 1 + Int(seed % UInt64(fleet.devices.count - 1))
      fleet.rotate(at: initiator, without: [0])
      fleet.thief = 0
      fleet.endure(300_000, lies: Self.lies)
      fleet.run(for: Self.peace)
      // The process may have ended before the key was stored, and a person then does it again.
      if fleet.devices[initiator].disk.epoch == .first { fleet.rotate(at: initiator, without: [0]) }
      fleet.run(for: Self.peace)
      try check(&fleet, without: 0, seed)
    }
  }

  @Test(arguments: [true, false])
  func `two rotations at once become one, without the device that one of them removed`(isLying: Bool) throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      let other = 2 + Int(seed % UInt64(fleet.devices.count - 2))
      fleet.rotate(at: 1, without: [0])
      fleet.run(for: Int(seed % 4) * 30)
      fleet.rotate(at: other)
      // Once more, before it has heard of the first device's rotation.
      fleet.run(for: Int(seed % 5) * 40)
      if seed.isMultiple(of: 2) { fleet.rotate(at: other) }
      if isLying { fleet.endure(300_000, lies: Self.lies) }
      fleet.run(for: Self.peace)
      // The process may have ended before the key was stored, and a person then does it again.
      if isLying, fleet.isReadable(fleet.devices[1].disk.epoch.number, at: 0) { fleet.rotate(at: 1, without: [0]) }
      fleet.run(for: Self.peace)
      try check(&fleet, without: 0, seed)
    }
  }

  @Test func `rotations at random, also several at once, end with one epoch`() throws {
    var (wrong, rotated) = (0, 0)
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      fleet.isRotating = true
      fleet.endure(300_000, lies: Self.lies)
      fleet.run(for: Self.peace)
      let found = fleet.disagreements()
      if !found.isEmpty { wrong += 1 }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
      if fleet.devices[0].fleet.rotations > 0 { rotated += 1 }
    }
    // In a few rounds, no device can store a key.
    #expect(rotated > Int(Self.seeds) / 2)
    try Trial("rotations of a fleet beside a lying broker").report(tried: Int(Self.seeds), lost: wrong)
  }

  @Test func `a removed device stays out of the rotations at random that follow`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      fleet.rotate(at: 1, without: [0])
      for _ in 0..<1_000 where fleet.devices[1].disk.epoch == .first { fleet.run(for: 50) }
      #expect(fleet.devices[1].disk.epoch != .first, "\(fleet.story(of: seed))")
      fleet.isRotating = true
      fleet.thief = 0
      fleet.endure(300_000, lies: Self.lies)
      fleet.run(for: Self.peace)
      try check(&fleet, without: 0, seed)
    }
  }

  @Test func `a device that was away through several rotations comes back`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      fleet.kill(1)
      for initiator in [2, 3, 2] {
        fleet.rotate(at: initiator, without: [0])
        fleet.run(for: 30_000)
      }
      fleet.rename(2, "another")
      fleet.run(for: 30_000)
      fleet.start(1)
      fleet.run(for: 60_000)
      #expect(fleet.devices[1].disk.epoch.number == fleet.devices[2].disk.epoch.number, "\(fleet.story(of: seed))")
      try check(&fleet, without: 0, seed)
    }
  }
}
