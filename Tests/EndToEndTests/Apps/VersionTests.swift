import Foundation
import TestSupport
import Testing

/// Versions (identityd-protocol(7), section "VERSIONS").
@Suite(.tags(.seldomThreads)) struct VersionTests {
  /// Sends a request from a new process, which is a session if it runs in no service.
  ///
  /// - Returns: the answer without its times.
  private func launch(_ request: String, _ daemon: DaemonUnderTest, asUser user: Int? = nil) throws -> [String] {
    let prefix = user.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
    let result = try run(
      prefix + ["socat", "-t", "20", "-", "UNIX-CONNECT:\(daemon.socket)"], input: "\(request)\nquit\n")
    let lines = result.output.split(separator: "\n").dropLast().map { timeless(String($0)) }
    try #require(!lines.isEmpty, "\(result)")
    return lines
  }

  private func timeless(_ line: String) -> String {
    line.split(separator: " ").filter { !$0.hasPrefix("installed=") && !$0.hasPrefix("last=") }.joined(separator: " ")
  }

  private func timeless(_ lines: [String]) -> [String] { lines.map(timeless) }

  @Test func `each launch is told how its version compares with the launch before`() throws {
    let daemon = try DaemonUnderTest().start()
    let launches = [
      ("1.0 build=1", "installed 1.0 build=1"),
      ("1.0 build=1", "unchanged 1.0 build=1"),
      ("1.0 build=2", "updated 1.0 build=2 previous=1.0 previous-build=1"),
      ("1.1 build=3", "upgraded 1.1 build=3 previous=1.0 previous-build=2"),
      ("1.0 build=2", "downgraded 1.0 build=2 previous=1.1 previous-build=3"),
    ]
    for (report, answer) in launches {
      #expect(try launch("version report \(report)", daemon) == ["OK \(answer)"])
      // A session without a report gets the last report of any session.
      #expect(try launch("version state", daemon) == ["OK \(answer)"])
      daemon.end(with: SIGKILL)
      try daemon.start()
      #expect(try launch("version state", daemon) == ["OK \(answer)"])
    }
  }

  @Test func `a session gets the same answer over connections, restarts and kills`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try launch("version report 1.0", daemon) == ["OK installed 1.0"])
    // All requests of this process belong to one session.
    let answer = try daemon.ask("version report 1.1")
    #expect(timeless(answer) == "OK upgraded 1.1 previous=1.0")
    #expect(try launch("version report 2.0", daemon) == ["OK upgraded 2.0 previous=1.1"])
    for signal in [nil, SIGTERM, SIGKILL] {
      if let signal {
        daemon.end(with: signal)
        try daemon.start()
      }
      let before = try daemon.client().statusValue("last-event")
      #expect(try daemon.ask("version report 1.1") == answer)
      #expect(try daemon.ask("version state") == answer)
      #expect(try daemon.client().statusValue("last-event") == before)
      #expect(try launch("version state", daemon) == ["OK upgraded 2.0 previous=1.1"])
    }
    // Another version in the same session is compared with the version of the session before.
    #expect(timeless(try daemon.ask("version report 1.2")) == "OK upgraded 1.2 previous=1.0")
    #expect(try launch("version report 1.2", daemon) == ["OK unchanged 1.2"])
  }

  @Test func `the history has the first installation of each version, also after a downgrade`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.client().ask("version history") == ["OK 0"])
    for report in ["1.0", "1.1 build=b", "1.0", "1.0"] { _ = try launch("version report \(report)", daemon) }
    let rows = try daemon.client().ask("version history")
    #expect(timeless(rows) == ["* 1.0", "* 1.1 build=b", "OK 2"])
    func time(_ name: String, _ row: String) throws -> String {
      try String(#require(row.split(separator: " ").first { $0.hasPrefix("\(name)=") }).dropFirst(name.count + 1))
    }
    #expect(try time("installed", rows[0]) < time("installed", rows[1]))
    #expect(try time("last", rows[0]) > time("last", rows[1]))
    #expect(try time("installed", rows[1]) == time("last", rows[1]))
    // The current version is stored separately, and is not always the last row.
    let state = try daemon.ask("version state")
    #expect(timeless(state) == "OK unchanged 1.0")
    #expect(try time("installed", state) == time("installed", rows[0]))
  }

  @Test func `a dry run answers like a report and changes nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try launch("version report 1.0 dry-run=yes", daemon) == ["OK installed 1.0"])
    #expect(try daemon.ask("version state").hasPrefix("ERR not-found "))
    #expect(try launch("version report 1.0", daemon) == ["OK installed 1.0"])
    let before = try daemon.client().statusValue("last-event")
    for (report, answer) in [
      ("1.0", "unchanged 1.0"), ("1.0 build=2", "updated 1.0 build=2 previous=1.0"),
      ("1.1", "upgraded 1.1 previous=1.0"), ("0.9", "downgraded 0.9 previous=1.0"),
    ] { #expect(try launch("version report \(report) dry-run=yes", daemon) == ["OK \(answer)"]) }
    #expect(try launch("version state", daemon) == ["OK installed 1.0"])
    #expect(try daemon.client().ask("version history").count == 2)
    #expect(try daemon.client().statusValue("last-event") == before)
  }

  @Test func `app forget deletes the versions and claims of the app`() throws {
    let daemon = try DaemonUnderTest().start()
    let app = "user:\(getuid())"
    _ = try launch("version report 1.0", daemon)
    #expect(try daemon.ask("version claim work") == "OK first")
    #expect(try daemon.ask("app forget \(app)") == "OK")
    #expect(try daemon.ask("version state").hasPrefix("ERR not-found "))
    #expect(try daemon.client().ask("version history") == ["OK 0"])
    #expect(try daemon.ask("version claim work").hasPrefix("ERR not-found "))
    #expect(try launch("version report 0.9", daemon) == ["OK installed 0.9"])
    #expect(try daemon.ask("version claim work") == "OK first")
  }

  @Test func `version compare uses the requested order`() throws {
    let daemon = try DaemonUnderTest().start()
    for (question, answer) in [
      ("2.0 2.00.0", "equal"), ("1.2 1.2.0.1", "less"), ("1.4.5.3.4.6. 1.4.5", "greater"), ("1.2~rc1 1.2", "equal"),
      ("1.2~rc1 1.2 order=linux", "less"), ("1.2 1.2~rc1 order=LINUX", "greater"), ("\"\" 0", "equal"),
      ("99999999999999999999999999999999 100000000000000000000000000000000", "less"),
    ] { #expect(try daemon.ask("version compare \(question)") == "OK \(answer)", "\(question)") }
    #expect(try daemon.ask("version compare 1 2 order=rpm").hasPrefix("ERR bad-argument "))
    #expect(try daemon.ask("version compare 1").hasPrefix("ERR bad-argument "))
  }

  @Test func `an invalid version is refused and changes nothing`() throws {
    let daemon = try DaemonUnderTest().start()
    let long = String(repeating: "1", count: 256)
    for request in [
      "version report", "version report \"\"", "version report \(long)", "version report 1 build=\(long)",
      "version report 1 2", "version report 1 of=os", "version state of=device", "version state of=os app=x",
      "version claim \"\"", "version claim \(long)",
    ] { #expect(try daemon.ask(request).hasPrefix("ERR bad-argument "), "\(request)") }
    #expect(try daemon.client().ask("version history") == ["OK 0"])
    #expect(try daemon.ask("version report \(long.dropLast()) build=\(long.dropLast())").hasPrefix("OK installed "))
  }

  @Test(.enabled(if: isRoot, "acting as two users needs root"))
  func `only the app itself and an admin may use its versions`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try launch("version report 1.0", daemon, asUser: 65_534) == ["OK installed 1.0"])
    for request in ["report 2.0", "state", "history", "claim work"] {
      #expect(try launch("version \(request) app=user:65534", daemon, asUser: 1)[0].hasPrefix("ERR denied "))
    }
    #expect(try launch("version state", daemon, asUser: 1)[0].hasPrefix("ERR not-found "))
    #expect(try launch("version report 1.1 app=user:65534", daemon) == ["OK upgraded 1.1 previous=1.0"])
    #expect(try launch("version state", daemon, asUser: 65_534) == ["OK upgraded 1.1 previous=1.0"])
    // Another user may ask for the version of the system.
    #expect(try launch("version state of=os", daemon, asUser: 1)[0].hasPrefix("OK installed "))
  }

  @Test func `the daemon reports the version of the system once per boot`() throws {
    let daemon = try DaemonUnderTest().start()
    let text = try String(contentsOf: URL(filePath: "/etc/os-release"), encoding: .utf8)
    func value(_ name: String) -> String? {
      text.split(separator: "\n").first { $0.hasPrefix("\(name)=") }?.dropFirst(name.count + 1)
        .replacing("\"", with: "").description
    }
    let version = try #require(value("VERSION_ID"))
    let expected =
      "OK installed \(version)\(value("BUILD_ID").map { " build=\($0)" } ?? "") id=\(value("ID") ?? "linux")"
    let state = try daemon.ask("version state of=os")
    #expect(timeless(state) == expected)
    try daemon.waitForLog("The system is \(value("ID") ?? "linux") \(version)")
    for signal in [SIGTERM, SIGKILL] {
      daemon.end(with: signal)
      try daemon.start()
      #expect(try daemon.ask("version state of=os") == state)
      #expect(try daemon.client().ask("version history of=os").count == 2)
      #expect(try daemon.client().statusValue("last-event") == "1")
    }
  }

  // MARK: Claims

  @Test func `of many concurrent claims exactly one is the first`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.ask("version report 1.0")
    for round in 0..<20 {
      let clients = try (0..<50).map { _ in try daemon.client() }
      for client in clients { try client.send("version claim work-\(round)\n") }
      let answers = try clients.map { try $0.answer() }
      #expect(answers.count { $0 == ["OK first"] } == 1)
      #expect(answers.count { $0 == ["OK again"] } == 49)
    }
  }

  @Test func `kill -9 gives no claim twice and loses none that was answered`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.ask("version report 1.0")
    for round in 0..<20 {
      let clients = try (0..<20).map { _ in try daemon.client() }
      for client in clients { try client.send("version claim work-\(round)\n") }
      usleep(.random(in: 0...3_000))
      daemon.end(with: SIGKILL)
      try daemon.start()
      // Sends the claim again for each client without an answer.
      let early = clients.compactMap { try? $0.answer() }
      let late = try (0..<(20 - early.count)).map { _ in try daemon.client().ask("version claim work-\(round)") }
      let firsts = (early + late).count { $0 == ["OK first"] }
      // The first answer may have been lost with the daemon. Then no client learns that it was the first.
      #expect(firsts == 1 || firsts == 0 && early.isEmpty, "round \(round): \(early) \(late)")
      #expect((early + late).allSatisfy { $0 == ["OK first"] || $0 == ["OK again"] })
      #expect(try daemon.ask("version claim work-\(round)") == "OK again")
    }
  }

  @Test func `a claim is for one version, whatever its build`() throws {
    let daemon = try DaemonUnderTest().start()
    for (report, answer) in [
      ("1.0 build=1", "first"), ("1.0 build=2", "again"), ("1.1", "first"), ("1.0", "again"), ("1.1", "again"),
    ] {
      _ = try launch("version report \(report)", daemon)
      #expect(try launch("version claim work", daemon) == ["OK \(answer)"], "\(report)")
      #expect(try launch("version claim work", daemon) == ["OK again"], "\(report)")
    }
    #expect(try launch("version claim other", daemon) == ["OK first"])
  }
}
