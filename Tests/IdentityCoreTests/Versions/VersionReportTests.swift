import IdentityCore
import Testing

struct VersionReportTests {
  @Test func `a report compares the version with that of the launch before`() throws {
    var life = Life()
    let launches: [(Text, Text, String)] = [
      ("1.0", "1", "OK installed 1.0 build=1 installed=t1"), ("1.0", "1", "OK unchanged 1.0 build=1 installed=t1"),
      ("1.0", "2", "OK updated 1.0 build=2 previous=1.0 previous-build=1 installed=t3"),
      ("1.1", "3", "OK upgraded 1.1 build=3 previous=1.0 previous-build=2 installed=t4"),
      ("1.0", "2", "OK downgraded 1.0 build=2 previous=1.1 previous-build=3 installed=t3"),
      ("1.1", "3", "OK upgraded 1.1 build=3 previous=1.0 previous-build=2 installed=t4"),
      ("1.1", "3", "OK unchanged 1.1 build=3 installed=t4"),
    ]
    for (number, (version, build, answer)) in launches.enumerated() {
      #expect(try life.ask(.report(version, build), as: alice.session(Int32(number))) == [answer])
    }
  }

  @Test(
    arguments: [
      (nil, nil, "unchanged"), ("1", "1", "unchanged"), ("1", "2", "updated"), ("2", "1", "updated"),
      (nil, "1", "updated"), ("1", nil, "updated"), ("1", "01", "updated"), ("a", "A", "updated"),
    ] as [(Text?, Text?, String)])
  func `builds are equal or different and have no order`(before: Text?, now: Text?, state: String) throws {
    var life = Life()
    try life.ask(.report("1", before), as: alice.session(1))
    #expect(try life.ask(.report("1", now), as: alice.session(2))[0].hasPrefix("OK \(state) 1 "))
    // The same version in another spelling.
    #expect(try life.ask(.report("1.0", now), as: alice.session(3))[0].hasPrefix("OK updated 1.0 "))
  }

  @Test func `a missing build is left out of the answer`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    #expect(try life.ask(.report("1", "b"), as: alice.session(2)) == ["OK updated 1 build=b previous=1 installed=t2"])
    #expect(
      try life.ask(.report("2"), as: alice.session(3)) == ["OK upgraded 2 previous=1 previous-build=b installed=t3"])
  }

  // MARK: Sessions

  @Test func `a repeated report of a session gets its first answer and changes nothing`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    let answer = try life.ask(.report("2", "b"), as: alice.session(2))
    #expect(answer == ["OK upgraded 2 build=b previous=1 installed=t2"])
    let before = life.registry
    for _ in 0..<3 { #expect(try life.ask(.report("2", "b"), as: alice.session(2)) == answer) }
    #expect(try life.ask(.report("1"), as: alice.session(1)) == ["OK installed 1 installed=t1"])
    #expect(life.registry == before)
  }

  @Test func `a dry run answers like a report and changes nothing`() throws {
    var life = Life()
    let launches: [(Text, Text?)] = [("1", nil), ("1", nil), ("1", "b"), ("2", nil), ("1", nil)]
    for (number, (version, build)) in launches.enumerated() {
      for session in [Int32(number), Int32(number), 0] {
        let before = life.registry
        let told = try life.ask(.preview(version, build), as: alice.session(session))
        #expect(life.registry == before)
        var other = life
        let answer = try other.ask(.report(version, build), as: alice.session(session))
        // A release that was never reported gets its installation time only from the report.
        #expect(told == answer || told.map { "\($0) installed=t\(other.now)" } == answer)
      }
      try life.ask(.report(version, build), as: alice.session(Int32(number)))
    }
    #expect(life.refusal(of: .preview("1"), as: alice) == .unavailable("no session"))
  }

  @Test func `a repeated report gets its answer whatever other sessions reported meanwhile`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    let answer = try life.ask(.report("2"), as: alice.session(2))
    try life.ask(.report("3"), as: alice.session(3))
    try life.ask(.report("1"), as: alice.session(4))
    // Other sessions bring the release back and replace it again.
    try life.ask(.report("2"), as: alice.session(5))
    try life.ask(.report("1"), as: alice.session(6))
    let before = life.registry
    #expect(try life.ask(.report("2"), as: alice.session(2)) == answer)
    #expect(try life.ask(.state(), as: alice.session(2)) == answer)
    #expect(life.registry == before)
    // The repeated report did not become the current one.
    #expect(try life.ask(.state(), as: alice) == ["OK downgraded 1 previous=2 installed=t1"])
  }

  @Test func `another report of a session is compared with the session before it`() throws {
    var life = Life()
    try life.ask(.report("2"), as: alice.session(1))
    let two = alice.session(2)
    #expect(try life.ask(.report("3"), as: two) == ["OK upgraded 3 previous=2 installed=t2"])
    #expect(try life.ask(.report("1"), as: two) == ["OK downgraded 1 previous=2 installed=t3"])
    #expect(try life.ask(.report("2"), as: two) == ["OK unchanged 2 installed=t1"])
    // A report of another session in between does not change the session's predecessor.
    try life.ask(.report("9"), as: alice.session(3))
    #expect(try life.ask(.report("4"), as: two) == ["OK upgraded 4 previous=2 installed=t6"])
    #expect(try life.ask(.report("3"), as: two) == ["OK upgraded 3 previous=2 installed=t2"])
    #expect(life.registry.versions[.app("user:1000")].current?.release.version == "3")
    #expect(try life.ask(.report("3"), as: alice.session(4)) == ["OK unchanged 3 installed=t2"])
  }

  @Test func `the first session is told installed for each of its reports`() throws {
    var life = Life()
    let one = alice.session(1)
    #expect(try life.ask(.report("1"), as: one) == ["OK installed 1 installed=t1"])
    #expect(try life.ask(.report("2"), as: one) == ["OK installed 2 installed=t2"])
    try life.ask(.report("5"), as: alice.session(2))
    #expect(try life.ask(.report("1"), as: one) == ["OK installed 1 installed=t1"])
  }

  @Test func `a new session follows the session that reported last`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.report("2"), as: alice.session(2))
    try life.ask(.report("0"), as: alice.session(1))
    #expect(try life.ask(.report("1"), as: alice.session(3)) == ["OK upgraded 1 previous=0 installed=t1"])
  }

  @Test func `apps that share a session have separate versions`() throws {
    var life = Life.withThreeApps()
    try life.ask(.report("2"), as: orgA.session(1))
    #expect(try life.ask(.report("1"), as: orgB.session(1)) == ["OK installed 1 installed=t3"])
    #expect(try life.ask(.report("1", of: "org.c"), as: root.session(1)) == ["OK installed 1 installed=t4"])
    #expect(try life.ask(.report("3", of: "org.a"), as: root.session(9)) == ["OK upgraded 3 previous=2 installed=t5"])
  }

  @Test func `a peer without a session cannot report`() throws {
    var life = Life()
    #expect(life.refusal(of: .report("1"), as: alice) == .unavailable("no session"))
    try life.ask(.report("1"), as: alice.session(1))
    let before = life.registry
    #expect(life.refusal(of: .report("1"), as: alice) == .unavailable("no session"))
    #expect(try life.ask(.state(), as: alice) == ["OK installed 1 installed=t1"])
    #expect(life.registry == before)
    #expect(try life.ask(.claim("n"), as: alice) == ["OK first"])
    #expect(try life.ask(.claim("n"), as: alice.session(1)) == ["OK again"])
  }

  @Test func `only the latest sessions are known, and a forgotten one counts as new`() throws {
    var life = Life()
    for number in 0..<40 { try life.ask(.report(Text("1.\(number)")), as: alice.session(Int32(number))) }
    let reports = life.registry.versions[.app("user:1000")].reports
    #expect(reports.map(\.release.version) == (8..<40).map { Text("1.\($0)") })
    #expect(try life.ask(.report("1.8"), as: alice.session(8)) == ["OK upgraded 1.8 previous=1.7 installed=t9"])
    #expect(try life.ask(.report("1.7"), as: alice.session(7)) == ["OK downgraded 1.7 previous=1.39 installed=t8"])
    #expect(life.registry.versions[.app("user:1000")].reports.count == 32)
    // A session that reports another release keeps its place and displaces no other session.
    #expect(life.registry.versions[.app("user:1000")].reports.first?.release.version == "1.9")
    try life.ask(.report("2"), as: alice.session(20))
    #expect(life.registry.versions[.app("user:1000")].reports.first?.release.version == "1.9")
    #expect(life.registry.versions[.app("user:1000")].reports.count == 32)
  }

  // MARK: State

  @Test func `version state is the session's own report, or else the last one`() throws {
    var life = Life()
    #expect(life.refusal(of: .state(), as: alice.session(1)) == .notFound("user:1000 has not reported a version"))
    #expect(life.registry.apps.count == 0)
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.report("2"), as: alice.session(2))
    let before = life.registry
    #expect(try life.ask(.state(), as: alice.session(1)) == ["OK installed 1 installed=t1"])
    for peer in [alice.session(2), alice.session(3), alice] {
      #expect(try life.ask(.state(), as: peer) == ["OK upgraded 2 previous=1 installed=t2"])
    }
    #expect(life.registry == before)
  }

  // MARK: Orders

  @Test func `VersionOrder= in the manifest selects the order`() throws {
    var life = Life()
    life.install(["org.n": Manifest("org.v", order: .numeric), "org.l": Manifest("org.v", order: .linux)])
    for (app, state) in [("org.n", "updated"), ("org.l", "upgraded")] as [(Text, String)] {
      try life.ask(.report("1.2~rc1"), as: peer(app).session(1))
      #expect(try life.ask(.report("1.2"), as: peer(app).session(2))[0].hasPrefix("OK \(state) 1.2 "))
    }
    // The new order applies to later reports, not to earlier answers.
    life.install(["org.n": Manifest("org.v", order: .linux), "org.l": Manifest("org.v", order: .linux)])
    #expect(try life.ask(.state(), as: peer("org.n").session(2))[0].hasPrefix("OK updated 1.2 "))
    #expect(try life.ask(.report("1.2~rc1"), as: peer("org.n").session(3))[0].hasPrefix("OK downgraded 1.2~rc1 "))
  }

  @Test(arguments: VersionOrder.allCases)
  func `a name before the number is skipped if both versions have it`(order: VersionOrder) throws {
    for name in ["v", "V", "release-", "player-"] {
      var life = Life()
      life.install(["org.n": Manifest("org.v", order: order)])
      let states = try ["1.9.0", "2.0.0", "1.10.0", "1.9.0"].enumerated().map { number, version in
        let report = RegistryCommand.report(Text("\(name)\(version)"))
        return try life.ask(report, as: peer("org.n").session(Int32(number)))[0].split(separator: " ")[1]
      }
      #expect(states == ["installed", "upgraded", "downgraded", "downgraded"])
    }
  }

  // MARK: Rights

  @Test func `a report installs an app without a manifest, and no query does`() throws {
    var life = Life()
    for command in [.state(), .versions(), .claim("n")] as [RegistryCommand] {
      _ = try? life.ask(command, as: alice.session(1))
    }
    #expect(life.registry.apps.count == 0)
    try life.ask(.report("1"), as: alice.session(1))
    #expect(life.registry.apps["user:1000"]?.installed == Timestamp(milliseconds: 4))
    #expect(
      life.told() == [
        "1 app installed app=user:1000 vendor=user:1000 > vendor user:1000",
        "2 version installed of=app app=user:1000 version=1 > app user:1000",
      ])
  }

  @Test(arguments: RegistryCommand.everyVersionOrTokenVerb(of: "org.a"))
  func `only an admin may name another app`(command: RegistryCommand) throws {
    let life = Life.withThreeApps()
    let isForFleet = "\(command)".contains("InvalidateTokenRule")
    let grant = "admin rights " + (isForFleet ? "or Rights=fleet in its manifest" : "to name another app")
    for peer in [orgB.session(1), alice.session(1)] {
      #expect(life.refusal(of: command, as: peer) == .denied(app: peer.app, userID: peer.userID, grant: grant))
    }
    #expect(life.refusal(of: command, as: orgA.session(1)).map { "\($0)".hasPrefix("denied") } != true)
    #expect(life.refusal(of: command, as: root.session(1)).map { "\($0)".hasPrefix("denied") } != true)
  }

  @Test(arguments: RegistryCommand.everyVersionOrTokenVerb(of: "org.gone"))
  func `a named app has to be installed`(command: RegistryCommand) throws {
    #expect(
      Life.withThreeApps().refusal(of: command, as: root.session(1)) == .notFound("no such app is installed"))
  }

  @Test(arguments: RegistryCommand.everyVersionOrTokenVerb())
  func `an app whose manifest is gone can make and read nothing`(command: RegistryCommand) throws {
    var life = Life.withThreeApps()
    try life.ask(.report("1"), as: orgA.session(1))
    try life.ask(.token("p", "t"), as: orgA)
    life.install([:])
    #expect(life.refusal(of: command, as: orgA.session(1)) == .notFound("org.a is no longer installed"))
  }
}
