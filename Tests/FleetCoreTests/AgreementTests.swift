import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Simulations with a broker that lies. Once it is honest, all devices and the broker agree.
@Suite(.tags(.trial)) struct AgreementTests {
  private static let seeds = UInt64(Trial.rounds(20, long: 2_000))

  /// The time after which a broker's last lie is put right: the next readings, and the rules for absent messages.
  private static let peace = 2 * 1_200_000 + 600_000

  /// Lies for tests with tombstones, whose authors may be removed themselves.
  private static let removingLies = PlayedBroker.Lies(damagesVersions: false)

  @Test func `devices agree after lies, crashes and lost connections`() throws {
    var wrong = 0
    for seed in 0..<Self.seeds {
      var fleet = try PlayedFleet(seed: seed, devices: 2 + Int(seed % 5))
      fleet.endure(600_000)
      fleet.run(for: Self.peace)
      let found = fleet.disagreements()
      if !found.isEmpty { wrong += 1 }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
      #expect(fleet.devices.allSatisfy { $0.suspicions.isEmpty }, "\(fleet.story(of: seed))")
    }
    try Trial("devices of a fleet beside a lying broker").report(tried: Int(Self.seeds), lost: wrong)
  }

  @Test func `a publication that the broker acknowledged, echoed and lost is repeated long before the next reading`()
    throws
  {
    for seed in 0..<Self.seeds {
      var fleet = try PlayedFleet(seed: seed, devices: 3)
      for device in 0..<3 { fleet.start(device) }
      fleet.run(for: 200_000)
      fleet.broker.lies = PlayedBroker.Lies(
        dropped: .max, unretained: 1, omitted: .max, repeated: .max, unacknowledged: .max, delay: 10)
      fleet.rename(Int(seed % 3), "another")
      fleet.run(for: Int(seed % 20) * 100 + 300)
      #expect(!fleet.disagreements().isEmpty, "\(fleet.story(of: seed))")
      fleet.broker.lies = nil
      // The longest pause between two attempts so soon, and the time that a question takes.
      fleet.run(for: 15_000)
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }

  /// Lies of a broker that drops most messages, and keeps what it gets.
  private static func dropping(_ dropped: Int) -> PlayedBroker.Lies {
    PlayedBroker.Lies(
      dropped: dropped, unretained: .max, omitted: .max, repeated: .max, unacknowledged: .max, delay: 100)
  }

  @Test func `a change that did not get to all devices does so within a minute after the lie`() throws {
    for seed in 0..<Self.seeds {
      // Long after the last reading.
      var fleet = try rested(3 + Int(seed % 4), seed, for: 1_000_000 + Int(seed) * 7_000)
      #expect(fleet.disagreements().isEmpty, "\(fleet.story(of: seed))")
      fleet.broker.lies = Self.dropping(1 + Int(seed % 3))
      fleet.rename(Int(seed % 3), "another")
      // Up to ten minutes pass, in which most messages are dropped.
      fleet.run(for: 12_000 + Int(seed % 20) * 25_000)
      fleet.broker.lies = nil
      fleet.run(for: 60_000)
      // An author may have a reading back ahead of it.
      let found = fleet.disagreements().filter { !$0.hasSuffix("is not settled") }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
    }
  }

  @Test func `a change gets to the devices of a node that goes on showing the former record`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try rested(3, seed)
      let link = try #require(fleet.devices[Int(seed % 3)].link)
      fleet.broker.stale = PlayedBroker.StaleNode(links: [link], retained: fleet.broker.retained)
      fleet.rename(Int(seed / 3 % 3), "another")
      let time = 5_000 + Int(seed) * 5_000
      fleet.run(for: time)
      fleet.broker.stale?.isCutOff = false
      // A minute after a change of the last ten, and a quarter of an hour after an older one.
      fleet.run(for: time < 590_000 ? 60_000 : 900_000)
      let found = fleet.disagreements().filter { !$0.hasSuffix("is not settled") }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
    }
  }

  @Test func `so does a device that comes back to such a node, however old the change is`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try rested(3, seed)
      fleet.kill(2)
      let former = fleet.broker.retained
      fleet.rename(Int(seed % 2), "another")
      fleet.run(for: 1_000_000 + Int(seed) * 10_000)
      fleet.start(2)
      let link = try connect(2, of: &fleet)
      fleet.broker.stale = PlayedBroker.StaleNode(links: [link], retained: former, isCutOff: false)
      fleet.run(for: 60_000)
      let found = fleet.disagreements().filter { !$0.hasSuffix("is not settled") }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
    }
  }

  @Test func `a device that was removed and joined again is suspicious to nobody, also after an absence`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try rested(4, seed)
      fleet.kill(2)
      fleet.kill(3)
      let former = fleet.broker.retained
      fleet.remove(1, at: 0)
      fleet.run(for: 60_000)
      try fleet.rejoin(1)
      fleet.run(for: 1_000_000 + Int(seed) * 10_000)
      // One comes to a node that is out of date, and the other one to the broker.
      fleet.start(2)
      fleet.broker.stale = PlayedBroker.StaleNode(
        links: [try connect(2, of: &fleet)], retained: former, isCutOff: false)
      fleet.start(3)
      fleet.run(for: 300_000)
      let found = fleet.disagreements().filter { !$0.hasSuffix("is not settled") }
      #expect(found.isEmpty, "\(found)\n\(fleet.story(of: seed))")
      #expect(!fleet.log.contains { $0.contains("warns of another key") }, "\(fleet.story(of: seed))")
    }
  }

  /// Returns devices whose next reading is hours away, after some time without a lie.
  private func rested(_ devices: Int, _ seed: UInt64, for duration: Int = 1_000_000) throws -> PlayedFleet {
    let settings = Settings(spread: 5_000, resync: 21_600_000)
    var fleet = try PlayedFleet(seed: seed, devices: devices, settings: settings)
    for device in fleet.devices.indices { fleet.start(device) }
    fleet.run(for: duration)
    return fleet
  }

  /// Lets time pass until a device is connected, and returns the connection.
  private func connect(_ device: Int, of fleet: inout PlayedFleet) throws -> Int {
    for _ in 1...10_000 where fleet.devices[device].link == nil { fleet.run(for: 1) }
    return try #require(fleet.devices[device].link)
  }

  @Test func `an older change does so within a quarter of an hour`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try rested(2 + Int(seed % 4), seed)
      fleet.broker.lies = Self.dropping(1)
      fleet.rename(0, "another")
      fleet.run(for: 900_000 + Int(seed) * 10_000)
      fleet.broker.lies = nil
      fleet.run(for: 900_000)
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }

  @Test func `at rest, devices send fewer than one message in ten minutes, all together`() throws {
    var fleet = try rested(5, 1, for: 2_000_000)
    let before = fleet.sent
    fleet.run(for: 6 * 600_000)
    #expect((1...6).contains(fleet.sent - before), "\(fleet.sent - before)")
  }

  @Test func `devices that are removed and join again are so at all devices`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try PlayedFleet(seed: seed, devices: 3 + Int(seed % 4))
      fleet.endure(200_000, lies: Self.removingLies)
      fleet.run(for: Self.peace)
      let remover = fleet.devices.indices.last ?? 0
      fleet.remove(0, at: remover)
      fleet.remove(1, at: remover)
      fleet.endure(300_000, lies: Self.removingLies)
      fleet.run(for: Self.peace)
      #expect(!fleet.devices[0].isMember && !fleet.devices[1].isMember, "\(fleet.story(of: seed))")
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
      try fleet.rejoin(0)
      fleet.endure(300_000, lies: Self.removingLies)
      fleet.run(for: Self.peace)
      #expect(fleet.devices[0].isMember && !fleet.devices[1].isMember, "\(fleet.story(of: seed))")
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }

  @Test func `of two devices that remove each other, one or both leave`() throws {
    for seed in 0..<Self.seeds {
      var fleet = try PlayedFleet(seed: seed, devices: 4)
      fleet.endure(100_000, lies: Self.removingLies)
      fleet.run(for: Self.peace)
      fleet.remove(0, at: 1)
      fleet.remove(1, at: 0)
      fleet.endure(300_000, lies: Self.removingLies)
      fleet.run(for: Self.peace)
      let left = fleet.devices.map { !$0.isMember }
      #expect((left[0] || left[1]) && !left[2] && !left[3], "\(fleet.story(of: seed))")
      #expect(fleet.disagreements().isEmpty, "\(fleet.disagreements())\n\(fleet.story(of: seed))")
    }
  }
}
