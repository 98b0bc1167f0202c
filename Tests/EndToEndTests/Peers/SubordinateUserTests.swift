import Foundation
import TestSupport
import Testing

/// A user and its subordinate users, which are one principal: the use of many users evades no limit.
@Suite(
  .enabled(
    if: isRoot && FileManager.default.fileExists(atPath: "/etc/subuid"),
    "to be many users takes root, and a file to put another one in the place of"))
struct SubordinateUserTests {
  /// Starts a daemon in a mount namespace in which a file of this test is /etc/subuid.
  private func daemon(_ ranges: String, _ configuration: String) throws -> (DaemonUnderTest, subuid: URL) {
    let daemon = try DaemonUnderTest()
    let subuid = daemon.folder.appending(path: "subuid")
    try Data(ranges.utf8).write(to: subuid)
    try daemon.configure(configuration)
    try start(daemon, subuid)
    return (daemon, subuid)
  }

  private func start(_ daemon: DaemonUnderTest, _ subuid: URL) throws {
    let script = #"mount --bind "$0" /etc/subuid && exec "$@""#
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", script, subuid.path])
  }

  private func first(_ daemon: DaemonUnderTest, _ user: Int, _ request: String) throws -> String {
    let peer = try PeerConnection(user, of: daemon)
    return try peer.ask(request).last ?? ""
  }

  @Test func `row 30b: the quotas for apps and items of a user include its subordinate users`() throws {
    let (daemon, subuid) = try daemon("2001:200000:65536\n", "[Limits]\nAppsPerUser=10\nItemsPerUser=5\n")
    for user in 200_000..<200_010 { #expect(try first(daemon, user, "get installation").hasPrefix("OK ")) }
    for user in [200_010, 265_535, 2_001] {
      let refused = try first(daemon, user, "get installation")
      #expect(refused.hasPrefix("ERR limit uid 2001 has 10 apps"), "\(refused)")
    }
    for user in [265_536, 2_002] { #expect(try first(daemon, user, "get installation").hasPrefix("OK ")) }
    let put = "item put service=s account=a data=eA=="
    for user in 200_000..<200_005 { #expect(try first(daemon, user, put) == "OK created") }
    #expect(try first(daemon, 200_005, put).hasPrefix("ERR limit uid 2001 may have 5 items"))
    #expect(try first(daemon, 2_002, put) == "OK created")
    // The limits survive a restart.
    daemon.end()
    try start(daemon, subuid)
    #expect(try first(daemon, 200_010, "get installation").hasPrefix("ERR limit uid 2001 has 10 apps"))
    #expect(try first(daemon, 200_005, put).hasPrefix("ERR limit uid 2001 may have 5 items"))
  }

  @Test func `row 30b: the limits for connections and subscriptions include a user's subordinate users`() throws {
    let (daemon, _) = try daemon(
      "2001:200000:65536\n", "[Limits]\nConnections=100\nConnectionsPerUser=20\nSubscribers=8\nSubscribersPerUser=4\n")
    let held = try (0..<20).map { try PeerConnection(200_000 + $0, of: daemon) }
    for peer in held { #expect(try peer.ask("ping") == ["OK"]) }
    for user in [200_020, 2_001] {
      let refused = try PeerConnection(user, of: daemon)
      #expect(try refused.line()?.hasPrefix("ERR busy uid 2001 has 20 connections") == true)
    }
    #expect(try first(daemon, 2_002, "ping") == "OK")
    let answers = try held.prefix(6).map { try $0.subscribe("device").last?.prefix(9) }
    #expect(answers.filter { $0?.hasPrefix("OK") == true }.count <= 4)
    #expect(answers.last == "ERR limit")
    #expect(try first(daemon, 2_002, "subscribe device").hasPrefix("OK"))
  }

  @Test func `subordinate ranges are read again when the file changes`() throws {
    let (daemon, subuid) = try daemon("", "[Limits]\nAppsPerUser=1\n")
    #expect(try first(daemon, 200_000, "get installation").hasPrefix("OK "))
    #expect(try first(daemon, 200_001, "get installation").hasPrefix("OK "))
    // Overwrites the file in place, because this inode is mounted.
    try Data("2001:200000:65536\n".utf8).write(to: subuid)
    kill(daemon.process.processIdentifier, SIGHUP)
    let deadline = Date(timeIntervalSinceNow: patience)
    var answer = ""
    var user = 200_002
    repeat {
      answer = try first(daemon, user, "get installation")
      user += 1
    } while answer.hasPrefix("OK ") && Date() < deadline
    #expect(answer.hasPrefix("ERR limit uid 2001 has "), "\(answer)")
  }

  @Test func `a malformed line is logged, and the other lines count`() throws {
    let (daemon, _) = try daemon("what\n2001:200000:65536\n:1:2\n", "[Limits]\nAppsPerUser=1\n")
    try daemon.waitForLog("subuid:1: the line is not OWNER:FIRST:COUNT; it is ignored")
    #expect(try first(daemon, 200_000, "get installation").hasPrefix("OK "))
    #expect(try first(daemon, 200_001, "get installation").hasPrefix("ERR limit"))
  }
}
