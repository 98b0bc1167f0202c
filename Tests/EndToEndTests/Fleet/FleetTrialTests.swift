import Foundation
import TestSupport
import Testing

/// Real devices whose disks are set back, and whose services are killed, which must not look like twins.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons"), .tags(.trial)) struct FleetTrialTests {
  private let service = FleetServiceTests()

  @Test func `row 69: a disk that was set back is no twin`() throws {
    let broker = try BrokerUnderTest()
    let devices = try service.fleet(["desk", "laptop"], at: broker, "OnTwin=renew")
    try service.agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    var lost = 0
    let rounds = Trial.rounds(1, long: 100)
    for round in 1...rounds {
      let earlier = try devices[0].snapshot()
      for name in ["table", "bench\(round)"] {
        #expect(try devices[0].daemon.ask("devices name \(name)") == "OK")
        try service.agree(devices, on: [name, "laptop"])
        devices[0].end(with: SIGKILL)
        try devices[0].start()
      }
      try service.agree(devices, on: ["bench\(round)", "laptop"])
      devices[0].end(with: SIGKILL)
      devices[0].daemon.end(with: SIGKILL)
      try FileManager.default.removeItem(at: devices[0].daemon.state)
      try FileManager.default.moveItem(at: earlier, to: devices[0].daemon.state)
      try devices[0].daemon.start()
      try devices[0].start()
      // It goes on above the counters that the broker has.
      #expect(try devices[0].daemon.ask("devices name stool\(round)") == "OK")
      try service.agree(devices, on: ["laptop", "stool\(round)"])
      if Trial.isLong, round == 1 {
        try devices[0].wait("it says so") { devices[0].log.contains("this machine was set back in time") }
      }
      if try service.isSuspect(devices[0]) { lost += 1 }
    }
    #expect(lost == 0)
    #expect(try devices[0].daemon.uuid("get device") == desk)
    try Trial("disk set back under the fleet").report(tried: rounds, lost: lost)
  }

  @Test func `row 68: each copy of a disk is found on both sides`() throws {
    let broker = try BrokerUnderTest()
    let rounds = Trial.rounds(1, long: 100)
    var durations: [Double] = []
    for _ in 1...rounds {
      let devices = try service.fleet(["desk"], at: broker)
      try service.agree(devices, on: ["desk"])
      let copy = try FleetUnderTest(
        copying: try devices[0].snapshot(), "Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0",
        as: FleetServiceTests.user)
      try copy.wait(state: "live")
      let start = Date()
      for twin in [devices[0], copy] { try twin.wait("both tell") { try service.isSuspect(twin) } }
      durations.append(Date().timeIntervalSince(start))
    }
    let longest = String(format: "%.2f", durations.max() ?? 0)
    try Trial("copies of a disk in a fleet").report(tried: rounds, lost: 0, "found within \(longest) s")
  }

  @Test func `restarts at arbitrary points raise no suspicion`() throws {
    let broker = try BrokerUnderTest()
    let devices = try service.fleet(["desk", "laptop"], at: broker, "OnTwin=renew")
    try service.agree(devices, on: ["desk", "laptop"])
    let desk = try devices[0].daemon.uuid("get device")
    let rounds = Trial.rounds(20, long: 1_000)
    var name = "desk"
    for round in 1...rounds {
      devices[0].end(with: SIGKILL)
      // A record is written with each name, at some point of the run.
      if round.isMultiple(of: 3) {
        name = "desk\(round)"
        #expect(try devices[0].daemon.ask("devices name \(name)") == "OK")
      }
      try devices[0].launch()
      usleep(.random(in: 0...(round.isMultiple(of: 5) ? 5_000_000 : 400_000)))
    }
    try service.agree(devices, on: [name, "laptop"])
    let lost = try service.isSuspect(devices[0]) ? 1 : 0
    #expect(try lost == 0 && devices[0].daemon.uuid("get device") == desk)
    #expect(try service.row(about: desk, at: devices[1])?.contains(" suspect=yes") == false)
    try Trial("restarts of the fleet's service").report(tried: rounds, lost: lost)
  }
}
