import Foundation
import IdentityCore
import IdentityWire
import TestSupport
import Testing

@Suite(.tags(.plain)) struct ClientProgramTests {
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path

  @Test func `in a pipe the client prints bare words`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(try identityctl(daemon, "get", "device").output == device + "\n")
    #expect(try identityctl(daemon, "GET", "Device").output == device + "\n")
    #expect(try identityctl(daemon, "ping").output == "")
    #expect(try identityctl(daemon, "get", "uuid", "count=3").output.split(separator: "\n").count == 3)
    #expect(try identityctl(daemon, "status").output.contains("store=ok\n"))
  }

  @Test(arguments: [
    ("plain", "557e5958d3904cbfb9282a2b19a1399a"), ("hyphen", "557e5958-d390-4cbf-b928-2a2b19a1399a"),
    ("urn", "urn:uuid:557e5958-d390-4cbf-b928-2a2b19a1399a"), ("upper", "557E5958-D390-4CBF-B928-2A2B19A1399A"),
  ])
  func `--format sets the form in which UUIDs are printed`(form: String, expected: String) throws {
    let daemon = try DaemonUnderTest().start()
    let answer = try identityctl(daemon, "--format", form, "check", "557E5958D3904CBFB9282A2B19A1399A")
    #expect(answer.output == "valid \(expected)\n")
  }

  @Test func `--json prints one JSON document with names and types`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    let document = try identityctl(daemon, "--json", "get", "device").output
    let form = #/{"uuid":"([-0-9a-f]{36})","level":"device","created":"[^"]{24}","origin":"(?:machine|random)"}\n/#
    #expect(document.wholeMatch(of: form).map { String($0.1) } == device, "\(document)")
    let listed = try identityctl(daemon, "get", "uuid", "count=2", "--json").output
    #expect((try JSONSerialization.jsonObject(with: Data(listed.utf8)) as? [[String: String]])?.count == 2)
    #expect(try identityctl(daemon, "--json", "ping").output == "{}\n")
    #expect(
      try identityctl(daemon, "--json", "--format=plain", "get", "device").output.contains(
        device.replacing("-", with: "")))
  }

  @Test(
    arguments: [
      (["frob"], "unknown-verb", 12), (["get", "uuid", "count=0"], "bad-argument", 13), ([], "usage", 2),
      (["--frob", "get"], "usage", 2), (["--format=round", "ping"], "usage", 2),
      (["--quiet", "frob"], "unknown-verb", 12), (["monitor", "frob"], "bad-argument", 13),
      (["wait", "account", "--timeout=0"], "timeout", 6), (["ping", "--socket=/nonexistent"], "unreachable", 3),
      (["monitor", "--socket=/nonexistent"], "unreachable", 3),
      (["migrate", "device", "--file=/nonexistent"], "file", 7),
      (["item", "add", "service=s", "account=a", "--data-file=/nonexistent"], "file", 7),
    ] as [([String], String, Int32)])
  func `with --json every error is a document on standard output`(words: [String], code: String, status: Int32) throws {
    let daemon = try DaemonUnderTest().start()
    // The option has its effect wherever it stands.
    for command in [words + ["--json"], ["--json"] + words] {
      let result = try run([program] + command, environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect((result.status, result.errors) == (status, ""), "\(result)")
      #expect(result.output.hasPrefix("{\"error\":{\"code\":\"\(code)\",\"message\":\""), "\(result)")
    }
  }

  @Test(
    arguments: [
      (["ping"], 0), (["check", "x"], 1), (["check", "a=b"], 1), (["--quiet"], 2), (["--frob"], 2),
      (["--format=round", "ping"], 2), (["--json=x", "ping"], 2),
      (["frob"], 12), (["get", "frob"], 13), (["get", "uuid", "count=0"], 13),
      (["get", "installation", "app=user:12345"], 16),
      (["ping", "a\u{1}b"], 13),
    ] as [([String], Int32)])
  func `the exit status reflects the result`(words: [String], status: Int32) throws {
    // Only admins may name another app.
    let expected = status == 16 && !isRoot ? ErrorCode.denied.exitStatus : status
    let daemon = try DaemonUnderTest().start()
    let result = try run([program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == expected, "\(result)")
    #expect(result.errors.isEmpty == (expected < 2))
  }

  @Test func `--quiet prints nothing and only sets the exit status`() throws {
    let daemon = try DaemonUnderTest().start()
    let good = try identityctl(daemon, "--quiet", "check", "557e5958d3904cbfb9282a2b19a1399a")
    #expect((good.status, good.output) == (0, ""))
    let bad = try identityctl(daemon, "--quiet", "check", "x")
    #expect((bad.status, bad.output) == (1, ""))
  }

  @Test func `without a daemon the error names the socket tried and the unit to start`() throws {
    let result = try run([program, "get", "device"], environment: ["IDENTITYD_SOCKET": "/nonexistent/socket"])
    #expect(result.status == 3)
    #expect(result.errors.contains("/nonexistent/socket"))
    #expect(result.errors.contains("systemctl restart identityd.socket"))
    #expect(result.output.isEmpty)
  }

  @Test func `the client gets its arguments without a /proc`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    // Uses the release build, because a sanitizer itself needs /proc.
    let program = DaemonUnderTest.released.appending(path: "identityctl").path
    let hidden = [
      "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "-",
    ]
    let result = try run(hidden + [program, "get", "device", "--socket=\(daemon.socket)"])
    #expect((result.status, result.output, result.errors) == (0, device + "\n", ""))
  }

  @Test func `a write error on standard output is a failure`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run(
      ["sh", "-c", "\(program) get device > /dev/full"], environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.status == 5)
  }

  @Test func `on a terminal the client prints names in front of values`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run(
      ["script", "--quiet", "--return", "--command", "\(program) status", "/dev/null"],
      environment: ["IDENTITYD_SOCKET": daemon.socket, "NO_COLOR": "1"])
    #expect(result.output.contains("     Store: ok"), "\(result)")
  }
}
