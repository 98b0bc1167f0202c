import Foundation
import IdentityWire
import TestSupport
import Testing

@Suite struct ClientProgramTests {
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

  @Test func `--json prints one valid JSON document`() throws {
    let daemon = try DaemonUnderTest().start()
    for words in [["get", "device"], ["status"], ["get", "uuid", "count=2"], ["help"], ["frob"]] {
      let text = try run([program, "--json"] + words, environment: ["IDENTITYD_SOCKET": daemon.socket]).output
      let document = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      #expect(document["ok"] as? Bool == (words != ["frob"]))
      if words == ["frob"] { #expect(document["code"] as? String == "unknown-verb") }
      if words == ["get", "device"] { #expect((document["attributes"] as? [String: String])?["level"] == "device") }
    }
  }

  @Test(
    arguments: [
      (["ping"], 0), (["check", "x"], 1), (["check", "a=b"], 1), ([], 2), (["--frob"], 2),
      (["--format=round", "ping"], 2),
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
    #expect(result.errors.contains("systemctl start identityd.socket"))
    #expect(result.output.isEmpty)
  }

  @Test func `help and version need no daemon`() throws {
    let help = try run([program, "--help"], environment: ["IDENTITYD_SOCKET": "/nonexistent"])
    #expect(help.status == 0)
    for verb in VerbTable.verbs { #expect(help.output.contains(verb.usage)) }
    #expect(try run([program, "--version"]).output.hasPrefix("identityctl "))
    #expect(try run([program, "--help", "get", "uuid"]).output.contains("[count=N]"))
    #expect(try run([program, "--help", "Wait"]).output.hasPrefix("  wait TOPIC [TOPIC…]  "))
    let version = try run([program, "--help", "version", "compare"]).output
    #expect(
      version.contains("compare A B ") && version.contains("compare A lt|le|eq|ne|ge|gt B ")
        && !version.contains("changed"))
    #expect(try run([program, "--help", "wait", "device"]).status == 2)
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
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(result.output.contains("     Store: ok"), "\(result)")
  }
}
