import IdentityCore
import Testing

struct VersionHistoryTests {
  @Test func `the history has a row for each version and build, in the order of installation`() throws {
    var life = Life()
    #expect(try life.ask(.versions(), as: alice) == ["OK 0"])
    for (number, (version, build)) in ([("1", nil), ("1", "b"), ("2", nil), ("1.0", "b")] as [(Text, Text?)])
      .enumerated()
    { try life.ask(.report(version, build), as: alice.session(Int32(number))) }
    #expect(
      try life.ask(.versions(), as: alice) == [
        "* 1 installed=t2 last=t2", "* 1 build=b installed=t3 last=t3", "* 2 installed=t4 last=t4",
        "* 1.0 build=b installed=t5 last=t5", "OK 4",
      ])
  }

  @Test func `the history tells when each version last became current`() throws {
    var life = Life()
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.report("2"), as: alice.session(2))
    try life.ask(.report("2"), as: alice.session(3))
    #expect(
      try life.ask(.versions(), as: alice) == ["* 1 installed=t1 last=t1", "* 2 installed=t2 last=t2", "OK 2"])
    try life.ask(.report("1"), as: alice.session(5))
    #expect(
      try life.ask(.versions(), as: alice) == ["* 1 installed=t1 last=t5", "* 2 installed=t2 last=t2", "OK 2"])
    // A session that repeats its report changes nothing.
    try life.ask(.report("2"), as: alice.session(3))
    #expect(
      try life.ask(.versions(), as: alice) == ["* 1 installed=t1 last=t5", "* 2 installed=t2 last=t2", "OK 2"])
    // A session that reports another version does change the current one.
    try life.ask(.report("2"), as: alice.session(5))
    #expect(
      try life.ask(.versions(), as: alice) == ["* 1 installed=t1 last=t5", "* 2 installed=t2 last=t9", "OK 2"])
  }

  @Test func `an app reads its own history, and an admin any`() throws {
    var life = Life.withThreeApps()
    try life.ask(.report("1"), as: orgA.session(1))
    #expect(try life.ask(.versions(), as: orgB) == ["OK 0"])
    #expect(try life.ask(.versions(of: "org.a"), as: orgA).last == "OK 1")
    #expect(try life.ask(.versions(of: "org.a"), as: root).last == "OK 1")
  }

  // MARK: Bounds

  @Test func `beyond the limit the release that was installed longest ago is dropped`() throws {
    var life = Life()
    let subject = VersionSubject.app("user:1000")
    for number in 1...Bound.releasesPerApp {
      try life.ask(.report(Text("\(number)")), as: alice.session(Int32(number)))
    }
    // The first version is reported again.
    try life.ask(.report("1"), as: alice.session(2_000))
    #expect(life.registry.versions[subject].releases.count == Bound.releasesPerApp)
    try life.ask(.report("5000"), as: alice.session(2_001))
    let releases = life.registry.versions[subject].releases
    #expect(releases.count == Bound.releasesPerApp)
    #expect(releases.first?.release.version == "1")
    #expect(releases.dropFirst().first?.release.version == "3")
    #expect(releases.last?.release.version == "5000")
    // A version that was dropped counts as new when it is reported again.
    try life.ask(.report("2"), as: alice.session(2_002))
    #expect(life.registry.versions[subject].releases.last?.installed == Timestamp(milliseconds: life.now))
    #expect(life.registry.versions[subject].releases.contains { $0.release.version == "3" } == false)
  }

  @Test func `a release that a known session reported is kept, however old`() throws {
    var life = Life()
    let subject = VersionSubject.app("user:1000")
    let answer = try life.ask(.report("0.1"), as: alice.session(1))
    try life.ask(.report("0.2"), as: alice.session(2))
    // A single session reports all versions.
    for number in 1...Bound.releasesPerApp + 5 { try life.ask(.report(Text("\(number)")), as: alice.session(3)) }
    let releases = life.registry.versions[subject].releases.map(\.release.version)
    #expect(releases.count == Bound.releasesPerApp)
    #expect(releases.prefix(3) == ["0.1", "0.2", "8"])
    #expect(try life.ask(.report("0.1"), as: alice.session(1)) == answer)
  }

  @Test func `the services of a user share one limit of releases`() throws {
    var life = Life()
    let (one, two) = (service("one", of: 1_000), service("two", of: 1_000))
    for number in 1..<Bound.releasesPerApp { try life.ask(.report(Text("\(number)")), as: one.session(1)) }
    try life.ask(.report("1"), as: two.session(1))
    #expect(
      life.refusal(of: .report("2"), as: two.session(1))
        == .limit("the limit of reported versions is reached for unit:two.service@1000"))
    // A new release replaces one of the same app.
    try life.ask(.report("x"), as: one.session(1))
    #expect(life.registry.versions[.app(one.app)].releases.count == Bound.releasesPerApp - 1)
    #expect(
      life.refusal(of: .report("1"), as: service("three", of: 1_000).session(1))
        == .limit("the limit of reported versions is reached for unit:three.service@1000"))
    // The limit does not apply to other users.
    #expect(life.refusal(of: .report("1"), as: service("one", of: 1_001).session(1)) == nil)
    #expect(life.refusal(of: .report("1"), as: bob.session(1)) == nil)
  }

  // MARK: Removal

  @Test func `the history ends with the app, and a new installation starts afresh`() throws {
    var life = Life.withThreeApps()
    for peer in [alice, orgA] {
      try life.ask(.report("1"), as: peer.session(1))
      try life.ask(.report("2"), as: peer.session(2))
      try life.ask(.claim("n"), as: peer.session(2))
    }
    try life.ask(.report("7"), as: orgB.session(1))
    let last = life.registry.lastEvent
    try life.ask(.forget(app: "user:1000"), as: alice)
    life.install(["org.b": Manifest("org.v")])
    #expect(life.told(of: .version, from: last + 1) == [])
    #expect(life.registry.versions.all.map(\.subject) == [.app("org.b")])
    life.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.v")])
    for peer in [alice, orgA] {
      #expect(
        life.refusal(of: .state(), as: peer.session(2)) == .notFound("\(peer.app) has not reported a version"))
      #expect(try life.ask(.versions(), as: peer) == ["OK 0"])
      let answer = try life.ask(.report("2"), as: peer.session(2))
      #expect(answer == ["OK installed 2 installed=t\(life.now)"])
      #expect(try life.ask(.claim("n"), as: peer.session(2)) == ["OK first"])
    }
  }

  @Test func `a changed manifest does not end the history`() throws {
    var life = Life.withThreeApps()
    try life.ask(.report("1"), as: orgA.session(1))
    let before = life.registry.versions
    life.install(["org.a": Manifest("org.other", device: .app, unit: "u.service")])
    #expect(life.registry.versions == before)
  }

  @Test func `a sealed store has no versions and takes none`() throws {
    var life = Life()
    try life.boot(1, Release(distribution: "debian", version: "12"))
    try life.ask(.report("1"), as: alice.session(1))
    try life.ask(.claim("n"), as: alice.session(1))
    let last = life.registry.lastEvent
    try life.ask(.seal(dryRun: false), as: root)
    #expect(Array(life.registry.versions.all) == [])
    #expect(life.told(of: .version, from: last + 1) == [])
    let sealed = Refusal.unavailable(
      "the store is sealed for a golden image; the next start of identityd begins a new store")
    for release in ["1", "2"] as [Text] {
      #expect(life.refusal(of: .report(release), as: alice.session(1)) == sealed)
    }
    #expect(life.refusal(of: .claim("n"), as: alice.session(1)) == .notFound("user:1000 has not reported a version"))
    #expect(try life.boot(2, Release(distribution: "debian", version: "13")) == 0)
    #expect(Array(life.registry.versions.all) == [])
  }
}
