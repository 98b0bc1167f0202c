import IdentityCore
import Testing

/// The restore of versions and push tokens.
struct RestoringVersionsTests {
  private static let debian = Release(distribution: "debian", version: "12")

  /// Returns two copies of one `Life`, which draw different UUIDs: one with a past up to time 6, and a
  /// new one at time 20.
  private func lives() throws -> (old: Life, new: Life) {
    var new = Life()
    var old = new
    try old.boot(1, Self.debian)
    try old.ask(.report("1"), as: alice.session(1))
    try old.ask(.report("2", "b"), as: alice.session(2))
    try old.ask(.claim("n"), as: alice.session(2))
    try old.ask(.token("p", "one", environment: "e", topic: "t"), as: alice)
    try old.ask(.invalidate("p", "one"), as: alice)
    new.now = 20
    return (old, new)
  }

  @Test func `an up-to-date backup changes nothing in its own daemon`() throws {
    var (life, _) = try lives()
    let before = life.registry
    #expect(try life.restore(life.backup()) == ["* device kept value=m.device backup=m.device", "OK 1"])
    #expect(life.registry == before)
  }

  @Test func `after a loss of the state all are restored, with a row and an event each`() throws {
    var (old, life) = try lives()
    let backup = old.backup()
    #expect(
      try life.restore(backup) == [
        "* device restored value=m.device backup=m.device", "* app installed app=user:1000",
        "* versions restored of=os", "* versions restored of=app app=user:1000",
        "* token added app=user:1000 provider=p", "OK 5",
      ])
    #expect(
      life.told().suffix(2) == [
        "4 version installed of=app app=user:1000 version=2 build=b > app user:1000",
        "5 token created app=user:1000 provider=p device=m.device fingerprint=#one > app user:1000",
      ])
    for command in [.state(), .versions(), .systemVersions, .token(of: "p"), .tokens()]
      as [RegistryCommand]
    { #expect(try life.ask(command, as: alice) == old.ask(command, as: alice)) }
    #expect(
      try life.ask(.versions(), as: alice)
        == ["* 1 installed=t2 last=t2", "* 2 build=b installed=t3 last=t3", "OK 2"])
    #expect(try life.ask(.claim("n"), as: alice.session(3)) == ["OK again"])
    // The present version of the system comes from this machine, never from a backup.
    #expect(life.refusal(of: .systemState, as: alice)?.isNotFound == true)
    // The session that reported last continues, and a new session follows it.
    #expect(
      try life.ask(.report("2", "b"), as: alice.session(2)) == ["OK upgraded 2 build=b previous=1 installed=t3"])
    #expect(
      try life.ask(.report("1"), as: alice.session(3))
        == ["OK downgraded 1 previous=2 previous-build=b installed=t2"])
    #expect(try life.restore(backup) == ["* device kept value=m.device backup=m.device", "OK 1"])
  }

  @Test func `existing versions and tokens stay, and earlier ones are added`() throws {
    var (old, life) = try lives()
    try life.boot(2, Release(distribution: "debian", version: "13"))
    let answer = try life.ask(.report("2", "b"), as: alice.session(3))
    #expect(answer == ["OK installed 2 build=b installed=t22"])
    try life.ask(.claim("m"), as: alice.session(3))
    try life.ask(.token("p", "two"), as: alice)
    try life.ask(.token("q", "three"), as: alice)
    let token = try #require(life.registry.tokens["user:1000", "p"])
    let last = life.registry.lastEvent
    #expect(
      try life.restore(old.backup()) == [
        "* device kept value=m.device backup=m.device", "* versions restored of=os",
        "* versions restored of=app app=user:1000", "OK 3",
      ])
    #expect(life.registry.lastEvent == last)
    #expect(
      try life.ask(.versions(), as: alice)
        == ["* 1 installed=t2 last=t2", "* 2 build=b installed=t3 last=t22", "OK 2"])
    #expect(try life.ask(.state(), as: alice) == ["OK installed 2 build=b installed=t3"])
    #expect(
      try life.ask(.systemVersions, as: alice)
        == ["* 12 id=debian installed=t1 last=t1", "* 13 id=debian installed=t21 last=t21", "OK 2"])
    #expect(try life.ask(.systemState, as: alice) == ["OK installed 13 id=debian installed=t21"])
    for name in ["m", "n"] as [Text] { #expect(try life.ask(.claim(name), as: alice) == ["OK again"]) }
    #expect(life.registry.tokens["user:1000", "p"] == token)
    #expect(life.registry.tokens.all.map(\.value) == ["two", "three"])
    old.now += 1
  }

  @Test func `from other hardware they are restored only with adopt-device=yes`() throws {
    var (old, life) = try lives()
    try life.ask(.report("1"), as: alice.session(1))
    let backup = old.backup(fromHere: false)
    var before = (life.registry.versions, life.registry.tokens)
    #expect(try life.restore(backup) == ["* device clone backup=m.device", "* devices added value=m.device", "OK 2"])
    #expect(life.registry.versions == before.0)
    #expect(life.registry.tokens == before.1)
    #expect(
      try life.restore(backup, adopts: true).dropFirst() == [
        "* versions restored of=os", "* versions restored of=app app=user:1000",
        "* token added app=user:1000 provider=p", "OK 4",
      ])
    before = (life.registry.versions, life.registry.tokens)
    #expect(try life.restore(backup, adopts: true).last == "OK 1")
    #expect(life.registry.versions == before.0)
    old.now += 1
  }

  @Test func `versions and tokens of an app are restored only once it is installed`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v", device: .app)])
    try old.ask(.report("1"), as: orgA.session(1))
    try old.ask(.token("p", "one"), as: orgA)
    let backup = old.backup()
    #expect(
      try life.restore(backup) == [
        "* device unknown", "* device restored value=m.device.org.a app=org.a",
        "* versions skipped of=app app=org.a reason=not installed",
        "* token skipped app=org.a provider=p reason=not installed", "OK 4",
      ])
    #expect(life.registry.versions == VersionTable())
    #expect(Array(life.registry.tokens.all) == [])
    life.install(["org.a": Manifest("org.v", device: .app)])
    #expect(
      try life.restore(backup) == [
        "* device unknown", "* versions restored of=app app=org.a", "* token added app=org.a provider=p", "OK 3",
      ])
    #expect(life.registry.tokens.all.map(\.device) == [life.registry[.deviceOfApp("org.a")]?.value])
  }

  @Test func `a token is restored to the device identifier that its app sees now`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.v")])
    for peer in [orgA, orgB] { try old.ask(.token("p", peer.app), as: peer) }
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v", device: .vendor)])
    try life.ask(.get(.device, app: nil), as: orgA)
    let lines = try life.restore(old.backup())
    #expect(
      lines.suffix(3) == ["* token added app=org.a provider=p", "* token added app=org.b provider=p", "OK 3"])
    #expect(
      life.told(of: .token) == [
        "created app=org.a provider=p device=m.device.org.a fingerprint=#org.a",
        "created app=org.b provider=p device=m.device fingerprint=#org.b",
      ])
    // The second app has no device identifier yet. Its token is rehomed when the app gets one.
    try life.ask(.get(.device, app: nil), as: orgB)
    #expect(
      life.told(of: .token).last
        == "rehomed app=org.b provider=p device=m.device.org.v previous-device=m.device fingerprint=#org.b")
  }

  @Test func `a restored device identifier moves the existing tokens`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.get(.device, app: nil), as: alice)
    try old.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try old.ask(.token("p", "one"), as: alice)
    try life.ask(.token("q", "two"), as: alice)
    let last = life.registry.lastEvent
    try life.restore(old.backup())
    #expect(
      life.told(of: .token, from: last + 1) == [
        "rehomed app=user:1000 provider=q device=r1 previous-device=m.device fingerprint=#two",
        "created app=user:1000 provider=p device=r1 fingerprint=#one",
      ])
  }

  @Test func `a claim of an equal version in another spelling is not restored twice`() throws {
    let new = Life()
    var (old, life) = (new, new)
    for (version, number) in [("1.0", 1), ("1", 2)] as [(Text, Int32)] {
      try old.ask(.report(version), as: alice.session(number))
      _ = try old.ask(.claim("n"), as: alice.session(number))
    }
    try life.ask(.report("1"), as: alice.session(3))
    try life.ask(.claim("n"), as: alice.session(3))
    try old.ask(.get(.device, app: nil), as: alice)
    for _ in 0..<2 { try life.restore(old.backup()) }
    #expect(try life.ask(.claim("n"), as: alice.session(3)) == ["OK again"])
    // A claim that is equal in the app's version order is not stored a second time.
    #expect(life.registry.versions[.app("user:1000")].claims.count == 1)
  }

  @Test func `a restore does not exceed the limit of releases`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.get(.device, app: nil), as: alice)
    try old.ask(.report("a1"), as: alice.session(1))
    try old.ask(.report("a2"), as: alice.session(1))
    for number in 2...Bound.releasesPerApp { try life.ask(.report(Text("\(number)")), as: alice.session(1)) }
    try life.restore(old.backup())
    let releases = life.registry.versions[.app("user:1000")].releases.map(\.release.version)
    #expect(releases.count == Bound.releasesPerApp)
    #expect(releases.last == "a1")
  }
}
