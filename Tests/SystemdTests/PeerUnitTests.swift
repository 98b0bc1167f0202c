import Foundation
import LinuxSystem
import Systemd
import TestSupport
import Testing

/// A control group made for one test, and a process in it that has connected.
private final class Peer {
  private static let mount = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].first {
    FileManager.default.fileExists(atPath: "\($0)/cgroup.procs")
      && FileManager.default.fileExists(atPath: "\($0)/cgroup.controllers")
  }

  /// Whether this process may make control groups where libsystemd looks for them.
  static let canBeMade: Bool = {
    guard let mount else { return false }
    let folder = "\(mount)/identity-test-\(UUID().uuidString)"
    return unsafe mkdir(folder, 0o755) == 0 && rmdir(folder) == 0
  }()

  private let temporary: TemporaryFolder
  private let process = Process()
  private let input = Pipe()
  private var made: [String] = []
  private var connection: Int32 = -1
  var socket: Int32 { connection }

  init(in group: String) throws {
    temporary = try TemporaryFolder()
    guard var path = Self.mount else { throw Failure("no control groups") }
    for part in group.split(separator: "/") {
      path += "/\(part)"
      if unsafe mkdir(path, 0o755) == 0 { made.append(path) }
    }
    let listener = try boundSocket(SOCK_STREAM, to: temporary["socket"])
    let number = listener.number
    try system("listen") { listen(number, 1) }
    // Enters the group, connects, says so, and stays until its input ends.
    let script = """
      use Socket; open(G, '>', "$ARGV[1]/cgroup.procs") or die $!; print G $$ or die $!; close(G) or die $!;
      socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!;
      $| = 1; print "connected\\n"; <STDIN>;
      """
    process.executableURL = URL(filePath: "/usr/bin/perl")
    process.arguments = ["-e", script, temporary["socket"], path]
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard output.fileHandleForReading.availableData == Data("connected\n".utf8),
      let accepted = try UnixSocket.accept(on: listener)
    else { throw Failure("not connected") }
    connection = accepted.release()
  }

  deinit {
    if connection >= 0 { close(connection) }
    try? input.fileHandleForWriting.close()
    if process.processIdentifier > 0 { process.waitUntilExit() }
    for folder in made.reversed() { unsafe rmdir(folder) }
  }
}

// The tests share slices, which the first to need one makes and removes.
@Suite(.serialized) struct PeerUnitTests {
  private let digits = "0123456789abcdeffedcba9876543210"
  private let number = Invocation(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
  private let unit = "identity-test-\(UUID().uuidString).service"
  private let manager = "user.slice/user-54321.slice/user@54321.service"

  @Test(.enabled(if: Peer.canBeMade, "no control group can be made here"))
  func `the peer of the system's service is known with its invocation`() throws {
    let peer = try Peer(in: "system.slice/\(unit)")
    let look = { try PeerUnit.look(up: peer.socket) }
    let without = try #require(try look())
    #expect(without.name == unit)
    #expect(without.owner == nil)
    #expect(without.invocation == nil && without.controlGroup == nil)
    let folder = "/run/systemd/units"
    let link = "\(folder)/invocation:\(unit)"
    // Where systemd does not run, its folders are not there.
    let made: [String] = ["/run/systemd", folder].filter { (path: String) in unsafe mkdir(path, 0o755) == 0 }
    defer { for path in made.reversed() { unsafe rmdir(path) } }
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: digits)
    defer { try? FileManager.default.removeItem(atPath: link) }
    #expect(try look()?.invocation == number)
    #expect(try look() != without)
  }

  @Test(.enabled(if: Peer.canBeMade, "no control group can be made here"), arguments: ["", "/below/further"])
  func `the peer of a user's service is known with its control group, which the next run has not`(below: String) throws
  {
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

  @Test func `what is no socket has no peer`() throws {
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
  func `row 37: a unit's own control group is on the way to its processes`(
    unit: String, group: String, expected: String?
  ) {
    #expect(PeerUnit.controlGroup(ofUserUnit: unit, in: group) == expected)
  }
}
