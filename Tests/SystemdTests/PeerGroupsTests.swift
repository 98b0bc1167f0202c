import Foundation
import LinuxSystem
import Systemd
import TestSupport
import Testing

/// Cached facts about a control group hold for that group alone.
@Suite(.serialized, .enabled(if: Peer.canBeMade, "no control group can be made here")) struct PeerGroupsTests {
  private let name = controlGroupName()
  private func group(_ unit: String) -> String { "system.slice/\(name)-\(unit)" }

  @Test func `a known group is not looked up again`() throws {
    let groups = PeerGroups(atMost: 4)
    let peer = try Peer(in: group("a.service"))
    let number = try Peer.number(of: group("a.service"))
    let found = try groups.look(up: peer.socket, in: number)
    #expect(found.unit?.name == "\(name)-a.service")
    #expect(groups.count == 1)
    // A lookup with an invalid socket fails, so this answer comes from the cache.
    #expect(try groups.look(up: -1, in: number) == found)
    #expect(throws: SystemdError.self) { _ = try groups.look(up: -1, in: number + 1) }
    #expect(throws: SystemdError.self) { _ = try groups.look(up: -1, in: nil) }
    #expect(groups.count == 1)
  }

  @Test func `a group without a service is cached too`() throws {
    let groups = PeerGroups(atMost: 4)
    let peer = try Peer(in: group("a.scope"))
    let number = try Peer.number(of: group("a.scope"))
    #expect(try groups.look(up: peer.socket, in: number).unit == nil)
    #expect(groups.count == 1)
    #expect(try groups.look(up: -1, in: number).unit == nil)
  }

  @Test func `a container's group is recognised, except for the daemon's own container`() throws {
    let id = String(repeating: "0123456789abcdef", count: 4)
    let path = "system.slice/\(name)/docker-\(id).scope/init"
    let peer = try Peer(in: path)
    let number = try Peer.number(of: path)
    for group in [number, nil] {
      let found = try PeerGroups(atMost: 4).look(up: peer.socket, in: group)
      #expect((found.unit, found.container?.name) == (nil, id))
    }
    let own = PeerGroups(atMost: 4, own: "/system.slice/\(name)/docker-\(id).scope/other")
    #expect(try own.look(up: peer.socket, in: number).container == nil)
  }

  @Test func `a group below a scope is told apart, also from the cache`() throws {
    let groups = PeerGroups(atMost: 4)
    let path = "system.slice/\(name)-a.scope/machine-victim.scope"
    let peer = try Peer(in: path)
    let number = try Peer.number(of: path)
    for socket in [peer.socket, -1] {
      let found = try groups.look(up: socket, in: number)
      #expect(found.place == .below(unit: "\(name)-a.scope"))
      #expect(found.unit == nil && found.container == nil)
    }
  }

  // '+' is no character of a unit name, so libsystemd sees no unit there.
  @Test(arguments: [("+54321", nil), ("054321", "user@054321.service"), ("54321x", "user@54321x.service")])
  func `a manager without a user's ID is a service of the system`(text: String, unit: String?) throws {
    let path = "user.slice/user-\(text).slice/user@\(text).service/app.slice/\(name).service"
    let peer = try Peer(in: path)
    let found = try PeerGroups(atMost: 4).look(up: peer.socket, in: nil)
    #expect(found.unit?.name == unit && found.unit?.owner == nil)
    #expect(found.user == nil)
  }

  @Test func `without a group from the kernel each peer is looked up`() throws {
    let groups = PeerGroups(atMost: 4)
    let peer = try Peer(in: group("a.service"))
    #expect(try groups.look(up: peer.socket, in: nil).unit?.name == "\(name)-a.service")
    #expect(groups.count == 0)
  }

  @Test func `a result for another group than the kernel's is not cached`() throws {
    let groups = PeerGroups(atMost: 4)
    let peer = try Peer(in: group("a.service"))
    let first = try Peer.number(of: group("a.service"))
    // The process moves to another group between the kernel's report and the lookup.
    try peer.move(to: group("b.service"))
    #expect(try groups.look(up: peer.socket, in: first).unit?.name == "\(name)-b.service")
    // The root of the hierarchies, where the kernel places every process that is in none of its groups.
    for root in [1, 2] as [UInt64] { _ = try groups.look(up: peer.socket, in: root) }
    #expect(groups.count == 0)
    let second = try Peer.number(of: group("b.service"))
    #expect(try groups.look(up: peer.socket, in: second).unit?.name == "\(name)-b.service")
    #expect(groups.count == 1)
  }

  @Test func `a group that is made again under the same name is another group`() throws {
    let groups = PeerGroups(atMost: 1_000)
    var numbers: Set<UInt64> = []
    for round in 0..<20 {
      let unit = round % 3 == 2 ? "a.scope" : "a.service"
      let peer = try Peer(in: group(unit))
      let number = try Peer.number(of: group(unit))
      #expect(numbers.insert(number).inserted)
      let process = try PeerCredentials.processDescriptor(number: peer.processID)
      if let told = ProcessFacts.controlGroup(of: process) { #expect(told == number) }
      let found = try groups.look(up: peer.socket, in: number)
      #expect(found.unit?.name == (unit == "a.scope" ? nil : "\(name)-a.service"))
    }
    #expect(groups.count == 20)
  }

  @Test func `the cache does not exceed its bound, and each group is found again`() throws {
    let groups = PeerGroups(atMost: 2)
    let peers = try ["a", "b", "c", "d", "e"].map { try (unit: $0, peer: Peer(in: group("\($0).service"))) }
    for (unit, peer) in peers + peers {
      let number = try Peer.number(of: group("\(unit).service"))
      #expect(try groups.look(up: peer.socket, in: number).unit?.name == "\(name)-\(unit).service")
      #expect(try groups.look(up: -1, in: number).unit?.name == "\(name)-\(unit).service")
      #expect((1...2).contains(groups.count))
    }
  }
}

/// The numbers of control groups. Only a group of the unified hierarchy has one.
struct GroupNumberTests {
  @Test(arguments: ["/no-such-group", "/../..", "/../../proc", "/memory"])
  func `a path outside of the unified hierarchy has no group number`(path: String) {
    #expect(PeerUnit.number(ofGroup: path) == nil)
  }
}
