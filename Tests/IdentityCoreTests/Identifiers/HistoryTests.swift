import IdentityCore
import Testing

struct HistoryTests {
  @Test func `without identifiers the history is empty`() throws {
    var life = Life()
    for level in Level.allCases { #expect(try life.ask(.history(level, app: nil), as: alice) == ["OK 0"]) }
  }

  @Test func `the history tells when, why and by whom each identifier began and ended`() throws {
    var life = Life()
    try life.start("m", "h")
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try life.ask(.migrate(.device, given(1), app: nil, commits: true, forces: true), as: root)
    try life.start("n", "h")
    try life.start("n", "i", onHardwareChange: .renew)
    let rows = try life.ask(.history(.device, app: nil), as: alice)
    #expect(
      rows == [
        "* m.device from=t2 until=t3 cause=first-use ended=renewed origin=machine by=uid:1000",
        "* r1 from=t3 until=t4 cause=renewed ended=migrated origin=random by=uid:0",
        "* g1 from=t4 until=t5 cause=migrated ended=machine-changed origin=migrated by=uid:0",
        "* n.device from=t5 until=t6 cause=machine-changed ended=hardware-changed origin=machine",
        "* r2 from=t6 cause=hardware-changed origin=random", "OK 5",
      ])
    // Each identifier begins at the time at which the previous one ended.
    let history = Array(life.registry.history)
    for (before, after) in zip(history, history.dropFirst()) { #expect(before.end?.time == after.created) }
  }

  @Test func `each app has its own history, in which services and users are distinct`() throws {
    var life = Life()
    let web = service("web", of: 1_000)
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.get(.installation, app: nil), as: web)
    #expect(
      try life.ask(.history(.installation, app: nil), as: web)
        == ["* r2 from=t2 cause=first-use origin=random by=unit:web.service@1000", "OK 1"])
    #expect(
      try life.ask(.history(.installation, app: nil), as: alice)
        == ["* r1 from=t1 cause=first-use origin=random by=uid:1000", "OK 1"])
  }

  @Test func `an app with its own device identifier reads only that identifier's history`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.ask(.history(.device, app: nil), as: peer("org.a")) == ["OK 0"])
    try life.ask(.get(.device, app: nil), as: peer("org.a"))
    #expect(
      try life.ask(.history(.device, app: nil), as: peer("org.a"))[0]
        == "* m.device.org.a from=t4 cause=first-use origin=machine by=unit:some.service")
    #expect(try life.ask(.history(.device, app: nil), as: alice).last == "OK 1")
  }

  @Test func `the history continues after a reinstallation`() throws {
    var life = Life()
    for _ in 0..<3 {
      try life.ask(.get(.installation, app: nil), as: alice)
      try life.ask(.forget(app: "user:1000"), as: alice)
    }
    #expect(
      try life.ask(.history(.installation, app: nil), as: alice).map { $0.prefix(4) }
        == ["* r1", "* r2", "* r3", "OK 3"])
    #expect(life.registry.count(of: .installation("user:1000")) == 3)
  }
}

struct ResolveTests {
  private func life() throws(Refusal) -> Life {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v", device: .vendor)])
    try life.ask(.get(.device, app: nil), as: alice)
    for app in ["org.a", "org.b"] as [Text] {
      for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer(app)) }
    }
    return life
  }

  @Test(
    arguments: [
      (.device, "OK device current=yes"), (.deviceOfApp("org.a"), "OK device current=yes app=org.a"),
      (.deviceOfVendor("org.v"), "OK device current=yes vendor=org.v"),
      (.vendor("org.v"), "OK vendor current=yes vendor=org.v"),
      (.installation("org.b"), "OK installation current=yes app=org.b vendor=org.v"),
    ] as [(Scope, String)])
  func `resolve describes a current identifier`(scope: Scope, answer: String) throws {
    var life = try life()
    let value = try #require(life.registry[scope]?.value)
    #expect(try life.ask(.resolve(value), as: root) == [answer])
  }

  @Test func `resolve of a former identifier names the current one, if there is one`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root)
    let old = try #require(Array(life.registry.history).first?.value)
    #expect(
      try life.ask(.resolve(old), as: alice)
        == ["OK installation current=no now=r2 app=user:1000 vendor=user:1000"])
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(
      try life.ask(.resolve(old), as: alice) == ["OK installation current=no app=user:1000 vendor=user:1000"])
  }

  @Test(arguments: [given(9), .zero, .ones])
  func `an identifier that was never given out is not found, even by an admin`(value: UUID) throws {
    let life = try life()
    let refusal = Refusal.notFound("this daemon issued no such identifier that user:0 may see")
    #expect(life.refusal(of: .resolve(value), as: root) == refusal)
  }

  @Test func `other devices of the account are not resolved`() throws {
    var life = try life()
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    #expect(life.refusal(of: .resolve(given(2)), as: root) != nil)
  }

  @Test func `of several identifiers with one value the current one counts, then the latest`() throws {
    var life = Life()
    for peer in [alice, bob] {
      try life.ask(.migrate(.installation, given(1), app: nil, commits: true, forces: false), as: peer)
    }
    try life.ask(.forget(app: "user:1001"), as: bob)
    #expect(
      try life.ask(.resolve(given(1)), as: root)
        == ["OK installation current=yes app=user:1000 vendor=user:1000"])
    #expect(
      try life.ask(.resolve(given(1)), as: bob)
        == ["OK installation current=no app=user:1001 vendor=user:1001"])
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(
      try life.ask(.resolve(given(1)), as: root)
        == ["OK installation current=no app=user:1001 vendor=user:1001"])
  }

  @Test func `a value that became current again is resolved as current`() throws {
    var life = Life()
    for value in [given(1), given(2), given(1)] {
      try life.ask(.migrate(.device, value, app: nil, commits: true, forces: true), as: root)
    }
    #expect(try life.ask(.resolve(given(1)), as: alice) == ["OK device current=yes"])
    #expect(try life.ask(.resolve(given(2)), as: alice) == ["OK device current=no now=g1"])
  }
}
