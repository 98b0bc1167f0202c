import IdentityCore
import Testing

struct VersionEventTests {
  @Test func `an event compares the new version with the current one`() throws {
    var life = Life()
    for (number, (version, build))
      in ([
        ("1.0", "1"), ("1.0", "1"), ("1.0", "2"), ("1.1", "3"), ("1.0", "2"), ("1.0.0", "2"), ("2", nil), ("3", nil),
      ] as [(Text, Text?)]).enumerated()
    {
      try life.ask(.report(version, build), as: alice.session(Int32(number)))
    }
    #expect(
      life.told(of: .version) == [
        "installed of=app app=user:1000 version=1.0 build=1",
        "updated of=app app=user:1000 version=1.0 build=2 previous=1.0 previous-build=1",
        "upgraded of=app app=user:1000 version=1.1 build=3 previous=1.0 previous-build=2",
        "downgraded of=app app=user:1000 version=1.0 build=2 previous=1.1 previous-build=3",
        "updated of=app app=user:1000 version=1.0.0 build=2 previous=1.0 previous-build=2 same-order=yes",
        "upgraded of=app app=user:1000 version=2 previous=1.0.0 previous-build=2",
        "upgraded of=app app=user:1000 version=3 previous=2",
      ])
  }

  @Test func `an event follows the current version, not the session's previous one`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.report("2"), as: alice.session(2))
    let last = life.registry.lastEvent
    // The answer compares with the session's predecessor: installed. The event compares with the current
    // version: upgraded.
    #expect(try life.ask(.report("3"), as: alice.session(1)) == ["OK installed 3 installed=t3"])
    // The answer is unchanged, while the event is a downgrade.
    #expect(try life.ask(.report("1"), as: alice.session(2)) == ["OK unchanged 1 installed=t1"])
    // The session's report differs, but this version is current already, so there is no event.
    #expect(try life.ask(.report("1"), as: alice.session(1)) == ["OK installed 1 installed=t1"])
    // The session repeats its own report.
    try life.ask(.report("1"), as: alice.session(2))
    #expect(
      life.told(of: .version, from: last + 1) == [
        "upgraded of=app app=user:1000 version=3 previous=2", "downgraded of=app app=user:1000 version=1 previous=3",
      ])
    #expect(life.registry.lastEvent == last + 2)
  }

  @Test func `changes of version within a session cause events too`() throws {
    var life = Life()
    for version in ["2", "3", "1", "1.0"] as [Text] { try life.ask(.report(version), as: alice.session(1)) }
    #expect(
      life.told(of: .version) == [
        "installed of=app app=user:1000 version=2", "upgraded of=app app=user:1000 version=3 previous=2",
        "downgraded of=app app=user:1000 version=1 previous=3",
        "updated of=app app=user:1000 version=1.0 previous=1 same-order=yes",
      ])
  }

  // MARK: Audiences

  @Test func `version events go only to the app and to admins`() throws {
    var life = Life.withThreeApps()
    try life.ask(.report("1"), as: orgA.session(1))
    let audience = try #require(life.events.last?.audience)
    #expect(audience == .app("org.a"))
    // Even an app of the same vendor does not see the event.
    for (peer, sees) in [(orgA, true), (root, true), (orgB, false), (orgC, false), (alice, false)] {
      #expect(life.registry.may(peer, see: audience) == sees, "\(peer.app)")
    }
  }

  @Test func `system version events go to apps that share the device identifier`() throws {
    var life = Life()
    life.install([
      "org.a": Manifest("org.v"), "org.b": Manifest("org.v", device: .vendor), "org.c": Manifest("org.v", device: .app),
    ])
    try life.boot(1, Release(distribution: "debian", version: "12"))
    let audience = try #require(life.events.last?.audience)
    for (peer, sees) in [
      (orgA, true), (root, true), (alice, true), (orgB, false), (orgC, false), (peer("org.x"), false),
    ] {
      #expect(life.registry.may(peer, see: audience) == sees, "\(peer.app)")
      let refusals = [RegistryCommand.systemState, .systemVersions].map { life.refusal(of: $0, as: peer) }
      #expect(refusals.allSatisfy { ($0 == nil) == sees }, "\(peer.app)")
    }
    #expect(
      life.refusal(of: .systemState, as: orgB)
        == .denied(app: "org.b", userID: 998, grant: "DeviceIdentifier=shared in its manifest"))
  }

  // MARK: Snapshot

  private func snapshot(_ life: Life, for peer: Peer, of topics: Set<Topic> = [.version]) -> [String] {
    life.lines(life.registry.snapshot(of: topics, for: peer))
  }

  @Test func `a snapshot has the current versions that the peer may see`() throws {
    var life = Life.withThreeApps()
    life.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.v", device: .app)])
    #expect(snapshot(life, for: root) == [])
    try life.boot(1, Release(distribution: "debian", version: "12", build: "i"))
    for (number, version) in (["1", "2"] as [Text]).enumerated() {
      try life.ask(.report(version, "b"), as: orgA.session(Int32(number)))
    }
    try life.ask(.report("7"), as: orgB.session(1))
    // A session that repeats its older report does not change the current version.
    try life.ask(.report("1", "b"), as: orgA.session(0))
    let os = "* version of=os version=12 build=i id=debian"
    let (a, b) = ("* version of=app app=org.a version=2 build=b", "* version of=app app=org.b version=7")
    #expect(snapshot(life, for: root) == [os, a, b])
    #expect(snapshot(life, for: orgA) == [os, a])
    #expect(snapshot(life, for: orgB) == [b])
    #expect(snapshot(life, for: alice) == [os])
    #expect(snapshot(life, for: peer("org.x")) == [])
    #expect(
      snapshot(life, for: root, of: Set(Topic.allCases).subtracting([.version])).allSatisfy { !$0.contains("version") })
    life.install([:])
    #expect(snapshot(life, for: root) == [os])
    #expect(snapshot(life, for: orgA) == [])
  }
}
