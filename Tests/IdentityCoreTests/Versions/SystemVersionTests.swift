import IdentityCore
import Testing

private func debian(_ version: Text, _ build: Text? = nil) -> Release {
  Release(distribution: "debian", version: version, build: build)
}

struct SystemVersionTests {
  @Test func `each boot reports the system once`() throws {
    var life = Life()
    #expect(
      life.refusal(of: .systemState, as: alice) == .notFound("the version of the system is unknown; see the journal"))
    #expect(try life.ask(.systemVersions, as: alice) == ["OK 0"])
    var states: [String] = []
    for (number, release) in [
      debian("12"), debian("12"), debian("12", "i1"), debian("13", "i1"), debian("13~rc1", "i1"),
      Release(distribution: "fedora", version: "4"), Release(distribution: "fedora", version: "4.0"),
      debian("13", "i1"),
    ].enumerated() {
      try life.boot(UInt64(number), release)
      states += try life.ask(.systemState, as: alice)
    }
    #expect(
      states == [
        "OK installed 12 id=debian installed=t2", "OK unchanged 12 id=debian installed=t2",
        "OK updated 12 build=i1 id=debian previous=12 installed=t6",
        "OK upgraded 13 build=i1 id=debian previous=12 previous-build=i1 installed=t8",
        "OK downgraded 13~rc1 build=i1 id=debian previous=13 previous-build=i1 installed=t10",
        "OK upgraded 4 id=fedora previous=13~rc1 previous-build=i1 previous-id=debian installed=t12",
        "OK upgraded 4.0 id=fedora previous=4 installed=t14",
        "OK upgraded 13 build=i1 id=debian previous=4.0 previous-id=fedora installed=t8",
      ])
    #expect(
      life.told() == [
        "1 version installed of=os version=12 id=debian > sharing",
        "2 version updated of=os version=12 build=i1 id=debian previous=12 > sharing",
        "3 version upgraded of=os version=13 build=i1 id=debian previous=12 previous-build=i1 > sharing",
        "4 version downgraded of=os version=13~rc1 build=i1 id=debian previous=13 previous-build=i1 > sharing",
        "5 version upgraded of=os version=4 id=fedora previous=13~rc1 previous-build=i1 previous-id=debian > sharing",
        "6 version upgraded of=os version=4.0 id=fedora previous=4 > sharing",
        "7 version upgraded of=os version=13 build=i1 id=debian previous=4.0 previous-id=fedora > sharing",
      ])
    #expect(
      try life.ask(.systemVersions, as: root) == [
        "* 12 id=debian installed=t2 last=t2", "* 12 build=i1 id=debian installed=t6 last=t6",
        "* 13 build=i1 id=debian installed=t8 last=t16", "* 13~rc1 build=i1 id=debian installed=t10 last=t10",
        "* 4 id=fedora installed=t12 last=t12", "* 4.0 id=fedora installed=t14 last=t14", "OK 6",
      ])
  }

  @Test func `code names have no order, so another one is an upgrade`() throws {
    var life = Life()
    for (number, version) in ["trixie", "trixie", "forky", "trixie/sid", "14", "duke", "rolling", "rolling"]
      .enumerated()
    {
      try life.boot(UInt64(number), debian(Text(version)))
    }
    #expect(
      life.told(of: .version).map { $0.split(separator: " ").prefix(3).joined(separator: " ") } == [
        "installed of=os version=trixie", "upgraded of=os version=forky", "upgraded of=os version=trixie/sid",
        "upgraded of=os version=14", "upgraded of=os version=duke", "upgraded of=os version=rolling",
      ])
    try life.boot(8, debian("rolling", "2"))
    #expect(try life.ask(.systemState, as: alice)[0].hasPrefix("OK updated rolling build=2 "))
  }

  @Test func `the same version of another distribution is another release`() throws {
    var life = Life()
    for (number, id) in (["a", "b", nil] as [Text?]).enumerated() {
      try life.boot(UInt64(number), Release(distribution: id, version: "1"))
    }
    #expect(life.told(of: .version).map { $0.prefix(9) } == ["installed", "upgraded ", "upgraded "])
    #expect(life.registry.versions[.system].releases.map(\.release.distribution) == ["a", "b", nil])
  }

  @Test func `the report of a boot is final, whatever the system says later`() throws {
    var life = Life()
    #expect(try life.boot(1, debian("12")) > 0)
    let before = life.registry
    for release in [debian("12"), debian("13")] { #expect(try life.boot(1, release) == 0) }
    #expect(life.registry == before)
    try life.boot(2, debian("13"))
    #expect(try life.boot(1, debian("12")) == 0)
    #expect(
      try life.ask(.systemState, as: alice.session(1)) == ["OK upgraded 13 id=debian previous=12 installed=t4"])
  }

  @Test func `a system report installs no app, and no app can report the system`() throws {
    var life = Life()
    try life.boot(1, debian("12"))
    #expect(life.registry.apps.count == 0)
    try life.ask(.report("1"), as: root.session(1))
    #expect(life.registry.versions[.system].current?.release == debian("12"))
    #expect(life.registry.versions.all.map(\.subject) == [.system, .app("user:0")])
  }

  @Test func `the system has as many releases as an app, and the current one is never dropped`() throws {
    var life = Life()
    for number in 1...UInt64(Bound.releasesPerApp + 3) { try life.boot(number, debian(Text("\(number)"))) }
    let history = life.registry.versions[.system]
    #expect(history.releases.map(\.release.version).first == "4")
    #expect(history.releases.count == Bound.releasesPerApp)
    #expect(history.reports.count == 32)
  }

  @Test func `an uninstalled app cannot read the version of the system`() throws {
    var life = Life()
    try life.boot(1, debian("12"))
    #expect(life.refusal(of: .systemState, as: peer("org.a")) == .notFound("org.a is no longer installed"))
  }
}
