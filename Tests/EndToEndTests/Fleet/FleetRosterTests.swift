import Foundation
import TestSupport
import Testing

extension FleetClusterTests {
  @Test func `a roster of 520 devices is read whole, by a newcomer and in parts`() throws {
    let cluster = try OneCluster.running()
    let desk = try fleet.fleet(["desk"], at: cluster)[0]
    try fleet.agree([desk], on: ["desk"])
    let others = try PlayedDevices(520, in: desk)
    try cluster.publish(all: (0..<520).map { try others.record($0, named: "first\($0)", counter: 1) })
    let laptop = try fleet.device("laptop", at: cluster)
    try fleet.join(laptop, by: desk)
    let names = (0..<520).map { "first\($0)" } + ["desk", "laptop"]
    for device in [desk, laptop] {
      try device.wait("all are listed") { try device.daemon.ask("devices") == "OK 522" }
    }
    // With more than 512 known devices, the next connection reads the roster in sixteen parts.
    desk.end(with: SIGKILL)
    try cluster.publish(all: (0..<40).map { try others.record($0, named: "second\($0)", counter: 2) })
    try desk.start()
    try fleet.agree([desk, laptop], on: (0..<40).map { "second\($0)" } + names.dropFirst(40))
  }
}

extension FleetServiceTests {
  @Test(.enabled(if: Trial.isLong, "it writes and stores ten thousand records"))
  func `an account of ten thousand devices is read within a minute, and a change within five seconds`() throws {
    let broker = try BrokerUnderTest("allow_anonymous true\nmax_queued_messages 0")
    let desk = try fleet(["desk"], at: broker)[0]
    try agree([desk], on: ["desk"])
    let others = try PlayedDevices(10_000, in: desk)
    desk.end(with: SIGKILL)
    try broker.publish(all: (0..<10_000).map { try others.record($0, named: "device\($0)", counter: 1) })
    try desk.start()
    try desk.wait("all are listed", for: 60) { try desk.daemon.ask("devices") == "OK 10001" }
    try desk.wait(state: "live")
    let client = try desk.daemon.client()
    _ = try client.ask("subscribe devices")
    try broker.publish(all: [others.record(7, named: "changed", counter: 2)])
    try desk.wait("the change is stored", for: 5) {
      try client.line()?.contains(" devices changed value=\(others[7]) ") == true
    }
  }
}
