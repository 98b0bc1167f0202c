import Foundation
import LinuxSystem
import Systemd
import TestSupport
import Testing

// The tests share slices. The first test that needs a slice creates and removes it.
@Suite(.serialized) struct PeerUnitTests {
  private let digits = "0123456789abcdeffedcba9876543210"
  private let number = Invocation(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
  private let unit = "\(controlGroupName()).service"
  private let manager = "user.slice/user-54321.slice/user@54321.service"

  @Test(.enabled(if: Peer.canBeMade, "no control group can be made here"))
  func `the peer of a system service has its unit and its invocation`() throws {
    let peer = try Peer(in: "system.slice/\(unit)")
    let look = { try PeerUnit.look(up: peer.socket) }
    let without = try #require(try look())
    #expect(without.name == unit)
    #expect(without.owner == nil)
    #expect(without.invocation == nil && without.controlGroup == nil)
    let folder = "/run/systemd/units"
    let link = "\(folder)/invocation:\(unit)"
    // If systemd is not running, its folders do not exist.
    let made: [String] = ["/run/systemd", folder].filter { (path: String) in unsafe mkdir(path, 0o755) == 0 }
    defer { for path in made.reversed() { unsafe rmdir(path) } }
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: digits)
    defer { try? FileManager.default.removeItem(atPath: link) }
    #expect(try look()?.invocation == number)
    // Each access to the invocation looks it up, so the result belongs to the present run.
    #expect(without.invocation == number)
  }

  @Test(.enabled(if: Peer.canBeMade, "no control group can be made here"), arguments: ["", "/below/further"])
  func `the peer of a user's service has its unit and a control group that differs by run`(below: String) throws {
    func look() throws -> PeerUnit {
      let peer = try Peer(in: "\(manager)/app.slice/\(unit)\(below)")
      let found = try #require(try PeerUnit.look(up: peer.socket))
      #expect(try PeerUnit.look(up: peer.socket) == found)
      return found
    }
    let first = try look()
    #expect(first.name == unit)
    #expect(first.owner == 54_321)
    #expect(first.invocation == nil)
    #expect(first.controlGroup != nil)
    #expect(try look().controlGroup != first.controlGroup)
  }

  @Test(
    .enabled(if: Peer.canBeMade, "no control group can be made here"),
    arguments: ["system.slice/identity-test.scope", "user.slice/user-54321.slice/session-1.scope"])
  func `a peer in no service has no unit`(group: String) throws {
    let peer = try Peer(in: group)
    #expect(try PeerUnit.look(up: peer.socket) == nil)
  }

  @Test func `a file has no peer`() throws {
    let file = try MemoryFile(named: "test")
    let number = file.descriptor.number
    do {
      _ = try PeerUnit.look(up: number)
      Issue.record("found")
    } catch {
      #expect(error.call == "sd_peer_get_unit")
      #expect(error.code == ENOTSOCK)
    }
    withExtendedLifetime(file.descriptor.number) {}
  }

  static let groups: [(unit: String, group: String, expected: String?)] = [
    ("a.service", "/user.slice/user@1.service/a.service", "/user.slice/user@1.service/a.service"),
    (
      "a.service", "/user.slice/user@1.service/app.slice/a.service/x/y",
      "/user.slice/user@1.service/app.slice/a.service"
    ),
    ("a.service", "/user@1.service/app.slice/a.service/a.service", "/user@1.service/app.slice/a.service"),
    ("a.service", "/a.service/user@1.service/b.slice/a.service", "/a.service/user@1.service/b.slice/a.service"),
    ("cpu.service", "/user@1.service/_cpu.service", "/user@1.service/_cpu.service"),
    ("user@2.service", "/user@1.service/user@2.service", "/user@1.service/user@2.service"),
    ("a.service", "/user@1.service/b.service", nil),
    ("a.service", "/system.slice/a.service", nil),
    ("a.service", "/user@1.service", nil),
    ("a.service", "/user@1.slice/a.service", nil),
    ("a.service", "/", nil),
    ("a.service", "", nil),
  ]

  @Test(arguments: groups)
  func `row 37: the control group of a unit is found in the path of its process`(
    unit: String, group: String, expected: String?
  ) {
    #expect(PeerUnit.controlGroup(ofUserUnit: unit, in: group) == expected)
  }
}
