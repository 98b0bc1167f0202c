import Foundation
import TestSupport
import Testing

@Test(
  .enabled(if: ProcessInfo.processInfo.environment["CI"] == "true", "only a build server has to run everything"))
func `a build server has a cluster`() { #expect(ClusterUnderTest.program != nil) }

/// The fleet over a cluster of brokers, of which nodes fail.
@Suite(
  .enabled(if: isRoot, "the services act as admins of the daemons"),
  .enabled(if: ClusterUnderTest.missing == nil, Comment(rawValue: ClusterUnderTest.missing ?? "")), .serialized,
  .oneCluster, .tags(.slow))
struct FleetClusterTests {
  let fleet = FleetServiceTests()

  @Test func `row 60: a device is let in as long as its account is a user of the broker`() throws {
    let cluster = try OneCluster.running()
    let devices = try ["desk", "laptop"].map { try fleet.device($0, at: cluster, "Username=account") }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try devices[0].wait(state: "refused")
    let credentials = try devices[0].ask("fleet credentials")[0]
    let match = try #require(credentials.firstMatch(of: /user=(\S+) password=(\S+)/))
    try cluster.admit(String(match.1), password: String(match.2))
    // Nodes read their configuration when they get to it.
    try devices[0].wait("the broker lets the device in") {
      try devices[0].reload("\(cluster.configuration)\nSpread=0\nUsername=account")
      try devices[0].wait(state: "live", for: 5)
      return true
    }
    try fleet.join(devices[1], by: devices[0])
    try fleet.agree(devices, on: ["desk", "laptop"])
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try fleet.agree(devices, on: ["laptop", "table"])
    func refusals(_ device: FleetUnderTest) -> Int { device.log.matches(of: /192\.0\.2\.\d+: .*[Rr]efused/).count }
    let before = devices.map(refusals)
    try cluster.dismiss(String(match.1))
    for (device, before) in zip(devices, before) {
      try device.wait(state: "refused")
      #expect(try device.devices() == ["laptop", "table"])
      #expect(refusals(device) > before, "\(device.log)")
    }
  }

  @Test func `row 56: a node that comes back with an empty disk loses nothing`() throws {
    let cluster = try OneCluster.running()
    let devices = try fleet.fleet(["desk", "laptop"], at: cluster)
    try fleet.agree(devices, on: ["desk", "laptop"])
    for (round, node) in ClusterUnderTest.nodes.enumerated() {
      try cluster.wipe(node)
      do {
        // The other tests use the same cluster.
        defer { try? cluster.start(node) }
        #expect(try devices[round % 2].daemon.ask("devices name name\(node)") == "OK")
      }
      try cluster.waitUntilReady(node)
    }
    try fleet.agree(devices, on: ["name2", "name3"])
    let topics = fleet.topics(of: try fleet.account(of: devices[0]))
    try devices[0].wait("the broker has all records") { try cluster.retained(topics).count == 2 }
  }

  @Test func `row 67: messages that an admin purges unseen are put back`() throws {
    let cluster = try OneCluster.running()
    let devices = try fleet.fleet(["desk", "laptop"], at: cluster)
    try fleet.agree(devices, on: ["desk", "laptop"])
    let account = try fleet.account(of: devices[0])
    let last = try devices[0].daemon.ask("subscribe")
    // Only a reading shows that the record of a device that is off is absent, and it comes back after two minutes.
    if Trial.isLong { devices[1].end(with: SIGKILL) }
    #expect(try cluster.purge(account) == 2)
    try devices[0].wait("the broker has all records", for: 300) { try cluster.stored(account) == 2 }
    #expect(try devices[0].daemon.ask("subscribe") == last, "no event")
  }

  @Test func `row 57: changes on both sides of a partition are everywhere after it, each with one event`() throws {
    let cluster = try OneCluster.running()
    // Each device is in the network of a node.
    let devices = try ClusterUnderTest.nodes.map { node in
      // A device may be connected to the node that is cut, and notices the cut after a silence.
      let device = try FleetUnderTest("\(cluster.configuration)\nSpread=0\nKeepAlive=15s", at: cluster.place(of: node))
      #expect(try device.daemon.ask("devices name name\(node)") == "OK")
      return device
    }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    for device in devices.dropFirst() { try fleet.join(device, by: devices[0]) }
    try fleet.agree(devices, on: ["name1", "name2", "name3"])
    let listeners = try devices.map { try $0.daemon.client() }
    for listener in listeners { _ = try listener.ask("subscribe devices") }
    try cluster.cut(1)
    // The other tests use the same cluster.
    defer { try? cluster.heal(1) }
    #expect(try devices[0].daemon.ask("devices name minority") == "OK")
    #expect(try devices[1].daemon.ask("devices name majority") == "OK")
    for device in devices[1...] { try device.wait(for: ["majority", "name1", "name3"]) }
    #expect(try devices[0].devices() == ["minority", "name2", "name3"])
    try cluster.heal(1)
    try fleet.agree(devices, on: ["majority", "minority", "name3"])
    try fleet.expectOneChange(of: devices[..<2], at: listeners)
  }
}
