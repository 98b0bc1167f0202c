import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Simulations of newcomers that join beside a lying broker.
@Suite(.tags(.trial)) struct JoinTrialTests {
  private static let seeds = UInt64(Trial.rounds(20, long: 2_000))
  private static let peace = 2 * 1_200_000 + 600_000

  /// Returns two live devices, of which the first has invited.
  private func inviting(_ seed: UInt64) throws -> PlayedFleet {
    var fleet = try PlayedFleet(seed: seed, devices: 2)
    for device in 0..<2 { fleet.start(device) }
    fleet.run(for: 60_000)
    if !seed.isMultiple(of: 3) {
      fleet.rotate(at: 1)
      fleet.run(for: 120_000)
      #expect(fleet.devices[0].disk.epoch != .first)
    }
    try fleet.invite(at: 0)
    return fleet
  }

  /// Returns the topics of invitations on which the broker has a message.
  private func meetings(_ fleet: PlayedFleet) -> [String] {
    fleet.broker.retained.keys.filter { $0.contains("/join/") }.sorted()
  }

  @Test func `with an honest broker, a newcomer is a member in seconds, and nothing is left of the invitation`() throws
  {
    for seed in 0..<Self.seeds {
      var fleet = try inviting(seed)
      fleet.run(for: Int(seed % 5) * 1_000)
      let newcomer = try fleet.addNewcomer("phone")
      fleet.run(for: 20_000)
      #expect(fleet.devices[0].told == ["newcomer phone", "used"], "\(fleet.story(of: seed))")
      #expect(fleet.devices[newcomer].told == ["joined"], "\(fleet.story(of: seed))")
      #expect(meetings(fleet).isEmpty)
      // The code is burned.
      let second = try fleet.addNewcomer("thief")
      fleet.run(for: 120_000)
      #expect(fleet.devices[second].told == ["not joined, notInvited"], "\(fleet.story(of: seed))")
      fleet.run(for: Self.peace)
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }

  @Test func `of two newcomers with one code, the inviting device names both`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try inviting(seed)
      fleet.run(for: 5_000)
      let newcomers = [try fleet.addNewcomer("phone"), try fleet.addNewcomer("thief")]
      fleet.run(for: 120_000)
      let joined = newcomers.filter { fleet.devices[$0].told.first?.hasPrefix("joined") == true }
      let told = Set(fleet.devices[0].told)
      #expect(told.contains("used") && told.filter { $0.hasPrefix("newcomer") }.count == 1)
      #expect(told.contains { $0.hasPrefix("another") } == (joined.count == 2), "\(fleet.story(of: seed))")
      #expect(!joined.isEmpty && meetings(fleet).isEmpty, "\(fleet.story(of: seed))")
    }
  }

  @Test func `a newcomer beside a lying broker joins in the end, or knows that it did not`() throws {
    var (joined, wrong) = (0, 0)
    for seed in 0..<Self.seeds {
      var fleet = try inviting(seed)
      fleet.broker.lies = PlayedBroker.Lies()
      let newcomer = try fleet.addNewcomer("phone")
      fleet.run(for: 300_000)
      fleet.broker.lies = nil
      let isMember = fleet.devices[newcomer].isMember
      #expect(fleet.devices[newcomer].told.count == 1, "\(fleet.story(of: seed))")
      #expect(isMember == (fleet.devices[newcomer].told.first?.hasPrefix("joined") == true))
      if isMember { joined += 1 }
      fleet.run(for: Self.peace)
      let found = fleet.disagreements()
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
      let end = fleet.devices[0].told.last
      let isTold = isMember ? end == "used" || end == "expired" : end == "expired"
      #expect(isTold, "\(fleet.story(of: seed))")
      if !found.isEmpty || !isTold { wrong += 1 }
    }
    #expect(joined > Self.seeds / 2)
    try Trial("newcomers with a code beside a lying broker").report(
      tried: Int(Self.seeds), lost: wrong, "\(joined) of them joined")
  }
}
