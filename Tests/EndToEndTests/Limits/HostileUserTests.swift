import Foundation
import IdentityCore
import TestSupport
import Testing

/// Bounds on each user's share of the daemon, which keep the service available to other users.
@Suite(.enabled(if: isRoot, "acting as other users needs root")) struct HostileUserTests {
  /// Runs a Python script as a user other than root. The script can call `connect()`.
  private func asUser(
    _ user: Int, _ script: String, _ daemon: DaemonUnderTest, _ arguments: String...
  ) throws -> String {
    let prelude = """
      import socket, sys
      def connect():
          s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(60); return s
      """
    let result = try run(
      [
        "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "/usr/bin/python3", "-c",
        "\(prelude)\n\(script)", daemon.socket,
      ] + arguments)
    guard result.status == 0 else { throw Failure(result.errors) }
    return result.output
  }

  @Test func `row 29: unread output of a user is bounded, and arrives complete once the user reads`() throws {
    let limits = "[Limits]\nOutputPerConnection=4K\nOutputPerUser=64K\n"
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start(configuration: limits)
    let before = try daemon.peakMemory()
    // 32 connections ask for 39 KB twenty times each, 25 MB in total, and at first read nothing.
    let script = """
      held = [connect() for _ in range(32)]
      for s in held: s.sendall(b"get uuid count=1000\\n" * 20 + b"quit\\n")
      # Its other clients do not have to wait for these.
      other = connect()
      for _ in range(2_000): other.sendall(b"ping\\n"); assert other.recv(10) == b"OK\\n"
      lines = 0
      for s in held:
          for chunk in iter(lambda: s.recv(1 << 16), b""): lines += chunk.count(b"\\n")
      print(lines)
      """
    #expect(try asUser(65_534, script, daemon) == "\(32 * (20 * 1_001 + 1))\n")
    #expect(try daemon.peakMemory() - before < 10_000_000)
  }

  @Test func `row 29: a user who does not read does not delay another user`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nOutputPerUser=64K\n")
    let hostile = try OtherUser(65_534, of: daemon)
    for _ in 0..<200 { try hostile.send("get uuid count=10000") }
    for _ in 0..<50 { #expect(try identityctl(daemon, "get", "device", asUser: 65_533).status == 0) }
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test func `row 30: a user's changes beyond the limit wait, keep their order and are all made`() throws {
    let limits = "[Limits]\nChangesPerConnection=2\nChangesPerUser=3\nChangesPerCommit=2\n"
    let daemon = try DaemonUnderTest().start(configuration: limits)
    let script = """
      held = [connect() for _ in range(8)]
      for n, s in enumerate(held):
          s.sendall(b"".join(b"item put service=s%d account=a%d data=QUFB\\n" % (n, i % 10) for i in range(100)) + b"quit\\n")
      for s in held:
          answers = b"".join(iter(lambda: s.recv(1 << 16), b"")).decode().split("\\n")
          print(answers[:100] == ["OK created"] * 10 + ["OK replaced"] * 90)
      """
    #expect(try asUser(65_534, script, daemon) == String(repeating: "True\n", count: 8))
    #expect(try daemon.client().statusValue("items") == "80")
  }

  @Test func `row 30: subscribers are limited per user and in total, and root still gets in`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nSubscribers=6\nSubscribersPerUser=2\n")
    let script = """
      def ask(s, line): s.sendall(line + b"\\n"); return s.recv(200).decode().strip()
      held = [connect() for _ in range(3)]
      for s in held: print(ask(s, b"subscribe"))
      print(ask(held[0], b"subscribe device"))
      print(ask(held[0], b"unsubscribe"))
      print(ask(held[2], b"subscribe"))
      sys.stdout.flush()
      """
    let lines = try asUser(65_534, script, daemon).split(separator: "\n").map(String.init)
    #expect(lines.count == 6)
    #expect(lines[0].hasPrefix("OK ") && lines[1].hasPrefix("OK ") && lines[3].hasPrefix("OK "))
    #expect(
      lines[2] == "ERR limit uid 65534 has 2 subscribers and may have no more now ([Limits] SubscribersPerUser=)")
    #expect(lines[5].hasPrefix("OK "))
    try daemon.waitForStatus("subscribers", "0")
    let users = try (65_529...65_534).map { try OtherUser($0, of: daemon) }
    for user in users { #expect(try user.ask("subscribe").hasPrefix("OK ")) }
    let late = try OtherUser(65_528, of: daemon)
    #expect(try late.ask("subscribe").hasPrefix("ERR limit there are 6 subscribers"))
    #expect(try daemon.client().subscribe().last?.hasPrefix("OK ") == true)
  }

  // MARK: Log

  /// Has root renew the device, and waits for the entry about that.
  private func expectRenewalInLog(_ daemon: DaemonUnderTest) throws {
    let device = try daemon.ask("renew device").split(separator: " ")
    try daemon.waitForLog("The device identifier is \(device[1]) from now on (renewed).")
  }

  /// Stops the daemon, and checks that its log has a bounded number of entries about a user, and counts the others.
  ///
  /// - Parameters:
  ///   - count: the number of entries that the user has caused.
  ///   - text: the text of each of these entries.
  private func expect(_ count: Int, entries text: Regex<Substring>, of user: Int, _ daemon: DaemonUnderTest) throws {
    let row = try daemon.client().ask("stats").first { $0.hasPrefix("* log-suppressed=") }
    #expect(daemon.end() == 0)
    let written = daemon.log.split(separator: "\n").count { $0.contains(text) }
    // On a busy machine the user takes longer, and some further entries are allowed.
    #expect(written >= Bound.logBurst && written < Bound.logBurst + 50, "\(written)")
    #expect(row == "* log-suppressed=\(count - written)")
    let report = /warning: Entries that uid ([0-9]+) caused are missing here, because they were too many: ([0-9]+)\./
    let reports = daemon.log.matches(of: report)
    #expect(reports.allSatisfy { $0.output.1 == "\(user)" })
    #expect(reports.reduce(0) { $0 + (Int($1.output.2) ?? 0) } == count - written)
  }

  @Test(arguments: [
    (first: "get installation", entries: 2),
    (first: "migrate installation 00000000-0000-4000-8000-%012d commit=yes", entries: 3),
  ])
  func `row 31b: a user that installs and forgets its app does not fill the log`(first: String, entries: Int) throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      s = connect(); f = s.makefile()
      for n in range(200):
          s.sendall(((sys.argv[2] % n if "%" in sys.argv[2] else sys.argv[2]) + "\\napp forget user:65533\\n").encode())
          for _ in range(2): line = f.readline(); assert line.startswith("OK"), line
      """
    _ = try asUser(65_533, script, daemon, first)
    try expectRenewalInLog(daemon)
    try expect(200 * entries, entries: /user:65533 is |installation identifier/, of: 65_533, daemon)
  }

  @Test func `row 31b: a user whose connections are refused does not fill the log`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnectionsPerUser=1\n")
    let script = """
      first = connect(); first.sendall(b"ping\\n"); first.recv(9)
      for _ in range(400):
          s = connect(); assert s.recv(99).startswith(b"ERR busy"); s.close()
      """
    _ = try asUser(65_533, script, daemon)
    try expectRenewalInLog(daemon)
    try expect(400, entries: /A connection was refused/, of: 65_533, daemon)
  }

  @Test func `row 31b: a user that reads damaged secrets does not fill the log`() throws {
    let daemon = try DaemonUnderTest().start()
    let script = """
      s = connect(); f = s.makefile()
      for n in range(300): s.sendall((sys.argv[2] % n + "\\n").encode()); print(f.readline()[:6])
      """
    let stored = try asUser(65_533, script, daemon, "item put service=s account=a%d data=QUFB")
    #expect(stored == String(repeating: "OK cre\n", count: 300))
    daemon.end()
    try daemon.edit("UPDATE secret SET sealed = x''")
    try daemon.start()
    let read = try asUser(65_533, script, daemon, "item read service=s account=a%d")
    #expect(read == String(repeating: "ERR in\n", count: 300))
    try expectRenewalInLog(daemon)
    try expect(300, entries: /the secret of this item is damaged/, of: 65_533, daemon)
  }

  // MARK: Further bounds

  @Test func `row 21: LineLength= limits the length of a line`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nLineLength=4K\n")
    let client = try daemon.client()
    #expect(try client.ask("check \(String(repeating: "x", count: 4_089))") == ["OK invalid"])
    try client.send("check \(String(repeating: "x", count: 4_090))\n")
    #expect(try client.rest() == ["ERR too-long a line has at most 4096 bytes, including its line feed"])
  }

  @Test func `row 30: the items of all apps together are limited`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nItems=2\nItemBytes=1K\n")
    #expect(try daemon.ask("item put service=a account=a data=QUFB") == "OK created")
    let long = String(repeating: "QUFB", count: 400)
    #expect(try daemon.ask("item put service=b account=a data=\(long)").hasPrefix("ERR limit "))
    #expect(try daemon.ask("item put service=b account=a data=QUFB") == "OK created")
    #expect(try daemon.ask("item put service=c account=a data=QUFB").hasPrefix("ERR limit "))
    #expect(try daemon.ask("item put service=a account=a data=QUJD") == "OK replaced")
  }
}
