import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Simulations with copied disks, disks that were set back, and restarts.
@Suite(.tags(.trial)) struct TwinTrialTests {
  private static let seeds = UInt64(Trial.rounds(20, long: 2_000))

  /// Returns a fleet of three devices that have been restarted at random, and are live.
  private func fleet(_ seed: UInt64) throws -> PlayedFleet {
    var fleet = try PlayedFleet(seed: seed, devices: 3)
    for device in 0..<3 { fleet.start(device) }
    for _ in 0..<Int(seed % 4) {
      fleet.run(for: Int(seed % 7) * 3_000)
      fleet.kill(0)
      fleet.start(0)
    }
    fleet.run(for: 30_000)
    return fleet
  }

  @Test(arguments: [true, false])
  func `a copy and its original find each other, and the members hear of it`(onSameMachine: Bool) throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      #expect(fleet.devices.allSatisfy { $0.suspicions.isEmpty }, "\(fleet.story(of: seed))")
      var disk = fleet.devices[0].disk
      if !onSameMachine { disk.home = drawn(&fleet.chance) }
      fleet.devices.append(PlayedDevice(disk))
      fleet.start(3)
      while fleet.devices[3].fleet.phase != .live { fleet.run(for: 100) }
      fleet.run(for: 2_000)
      guard case .twin(_, .no) = fleet.devices[0].fleet.twin, case .twin(_, .yes) = fleet.devices[3].fleet.twin else {
        Issue.record("\(fleet.devices[0].fleet.twin), \(fleet.devices[3].fleet.twin)\n\(fleet.story(of: seed))")
        continue
      }
      let record = try #require(fleet.devices[1].fleet.roster[disk.tag])
      #expect(DeviceDescription(record.body.fields)?.twin != nil, "\(fleet.story(of: seed))")
      // Neither of the two goes on, and all agree.
      let written = fleet.log.count { $0.contains("writes") }
      fleet.run(for: 3_600_000)
      #expect(fleet.log.count { $0.contains("writes") } <= written + 2, "\(fleet.story(of: seed))")
      #expect(fleet.devices[1].suspicions.isEmpty && fleet.devices[2].suspicions.isEmpty)
      #expect(fleet.disagreements().filter { !$0.contains("name") && !$0.contains("twice") }.isEmpty)
    }
  }

  @Test func `a machine that was set back is no twin, and goes on above its earlier counters`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      let earlier = fleet.devices[0].disk
      for round in 0...Int(seed % 5) {
        fleet.rename(0, Text("round \(round)"))
        fleet.run(for: 2_000)
        fleet.kill(0)
        fleet.start(0)
        fleet.run(for: 20_000)
      }
      fleet.kill(0)
      fleet.devices[0].disk = earlier
      fleet.start(0)
      fleet.run(for: 600_000)
      let suspicions = fleet.devices[0].suspicions
      #expect(suspicions.count == 2, "\(suspicions)\n\(fleet.story(of: seed))")
      guard case .setBack? = suspicions.last else {
        Issue.record("\(suspicions)\n\(fleet.story(of: seed))")
        continue
      }
      #expect(fleet.disagreements().filter { !$0.contains("twice") }.isEmpty, "\(fleet.story(of: seed))")
    }
  }

  @Test func `restarts raise no suspicion`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try fleet(seed)
      for _ in 0..<30 {
        fleet.run(for: Int.random(in: 0...8_000, using: &fleet.chance))
        fleet.kill(0)
        fleet.start(0)
      }
      fleet.run(for: 600_000)
      #expect(fleet.devices.allSatisfy { $0.suspicions.isEmpty }, "\(fleet.story(of: seed))")
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }
}
