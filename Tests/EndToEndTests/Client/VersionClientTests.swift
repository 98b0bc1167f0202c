import Foundation
import TestSupport
import Testing

/// Versions and push tokens in scripts, which read the answer from the exit status of the client.
@Suite(.tags(.plain)) struct VersionClientTests {
  private func status(_ daemon: DaemonUnderTest, _ line: String) throws -> Int32 {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    return try run(
      [program] + line.split(separator: " ").map(String.init), environment: ["IDENTITYD_SOCKET": daemon.socket]
    ).status
  }

  @Test func `version changed tells whether the version is new since the last session`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try status(daemon, "version changed") == 16)
    for (version, expected) in [
      ("1.0", 0), ("1.0", 1), ("1.0 build=7", 0), ("build=7 1.0", 1), ("1.1", 0), ("1.0", 0), ("1.0", 1),
    ] as [(String, Int32)] {
      // A question reports nothing, so that failed work can be repeated.
      for _ in 0..<2 { #expect(try status(daemon, "VERSION Changed \(version)") == expected, "\(version)") }
      #expect(try status(daemon, "version report \(version)") == 0)
      // Without a version, the answer is about the last report.
      #expect(try status(daemon, "version changed") == expected, "\(version)")
      #expect(try status(daemon, "--quiet version changed") == expected, "\(version)")
    }
    // A version that is only written differently is another one.
    #expect(try status(daemon, "version changed 1.0.0") == 0)
    #expect(try identityctl(daemon, "--json", "version", "changed", "1.0.0").output.contains("\"same-order\":\"yes\""))
    #expect(try status(daemon, "version changed of=os") == 0)
    #expect(try status(daemon, "version changed 1.0 of=os") == 13)
    #expect(try status(daemon, "version changed app=nobody-knows") == 16)
  }

  @Test func `version claim exits with 0 for the first and with 1 for all others`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try status(daemon, "version claim work") == 16)
    #expect(try status(daemon, "version report 1.0") == 0)
    #expect(try status(daemon, "version claim work") == 0)
    #expect(try status(daemon, "version claim work") == 1)
    #expect(try status(daemon, "--json version claim work") == 1)
  }

  @Test func `version compare with an operator answers through its exit status`() throws {
    let daemon = try DaemonUnderTest().start()
    let names = [["lt", "<"], ["le", "<="], ["eq", "=="], ["ne", "!="], ["ge", ">="], ["gt", ">"]]
    for (left, right, holding) in [
      ("1.2", "1.10", [true, true, false, true, false, false]),
      ("2.0", "2.00.0", [false, true, true, false, true, false]),
      ("1.10", "1.2", [false, false, false, true, true, true]),
    ] {
      for (spellings, holds) in zip(names, holding) {
        for spelling in spellings {
          let result = try identityctl(daemon, "version", "compare", left, spelling, right)
          #expect(result.status == (holds ? 0 : 1), "\(left) \(spelling) \(right)")
          #expect(result.output == "" && result.errors == "")
        }
      }
    }
    #expect(try status(daemon, "version compare 1.2~rc1 lt 1.2 order=linux") == 0)
    // The client chooses the order by the form of the versions, and the verb does not.
    #expect(try status(daemon, "version compare 1.2~rc1 lt 1.2") == 0)
    #expect(try status(daemon, "version compare 1.2~rc1 eq 1.2 order=numeric") == 0)
    #expect(try status(daemon, "version compare v1.9.0 lt v2.0.0") == 0)
    #expect(try status(daemon, "version compare 1.0-1+b1 lt 1.0-1+b2") == 0)
    #expect(try status(daemon, "version compare 1.0.0-rc.1 lt 1.0.0 order=semver") == 0)
    #expect(try status(daemon, "version compare 2:9.1 lt 2:10.1 order=debian") == 0)
    #expect(try daemon.ask("version compare 1.2~rc1 1.2") == "OK equal")
    // Builds have no order.
    for (relation, holds) in [("eq", 1), ("ne", 0), ("lt", 1), ("le", 1), ("gt", 1), ("ge", 1)] as [(String, Int32)] {
      #expect(try status(daemon, "version compare 1.2 \(relation) 1.2 build=7 build2=8") == holds)
    }
    #expect(try status(daemon, "version compare 1.2 eq 1.2 build=7 build2=7") == 0)
    #expect(try status(daemon, "version compare 1.2 like 1.2") == 2)
    #expect(try identityctl(daemon, "version", "compare", "1.2", "1.10").output == "less\n")
  }

  @Test func `an account that is named like a negative answer is no negative answer`() throws {
    let daemon = try DaemonUnderTest().start()
    for name in ["invalid", "again", "unchanged"] where isRoot {
      #expect(try daemon.ask("account set \(name)") == "OK")
      #expect(try identityctl(daemon, "account").output == "\(name)\n")
      #expect(try identityctl(daemon, "account").status == 0)
    }
    #expect(try status(daemon, "check nonsense") == 1)
  }

  // MARK: Tokens

  @Test func `a token is read from a file or standard input, without its final line end`() throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "token").path
    let token = "first line\nsecond \"line\" \\ ü=x"
    try Data((token + "\n").utf8).write(to: URL(filePath: file))
    #expect(try identityctl(daemon, "token", "put", "fcm", "topic=news", "--token-file", file).status == 0)
    let quoted = "\"first line\\nsecond \\\"line\\\" \\\\ ü=x\""
    #expect(try daemon.ask("token get fcm").hasPrefix("OK \(quoted) provider=fcm "))
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let environment = ["IDENTITYD_SOCKET": daemon.socket]
    let invalidated = try run(
      [program, "token", "invalidate", "fcm", "--token-file=-"], environment: environment, input: token)
    #expect(invalidated.status == 0 && invalidated.output == "invalidated\n")
    #expect(try daemon.ask("token get fcm").contains(" state=invalid "))
    let long = String(repeating: "x", count: 4_096)
    #expect(
      try run([program, "token", "put", "a", "--token-file=-"], environment: environment, input: long + "\n").status
        == 0)
    #expect(
      try run([program, "token", "put", "a", "--token-file=-"], environment: environment, input: long + "y").status
        == 19)
    #expect(
      try run([program, "token", "put", "a", "--token-file=-"], environment: environment, input: long + "yz").status
        == 7)
    #expect(
      try run([program, "token", "put", "a", "--token-file=-"], environment: environment, input: "a\0b").status == 7)
    for line in ["token put --token-file=\(file)", "token put fcm x --token-file=\(file)", "ping --token-file=\(file)"]
    {
      #expect(try status(daemon, line) == 2, "\(line)")
    }
    #expect(try status(daemon, "token put fcm --token-file=/nonexistent") == 7)
  }
}
