import IdentityCore
import Testing

struct RenewTests {
  @Test(
    arguments: [
      (.device, ["OK r1 previous=m.device"]), (.installation, ["OK r1 previous=g1"]), (.vendor, ["OK r2 previous=r1"]),
    ] as [(Level, [String])])
  func `renew replaces the identifier with a random one`(level: Level, answer: [String]) throws {
    var life = Life()
    switch level {
    case .installation: try life.ask(.migrate(level, given(1), app: nil, commits: true, forces: false), as: alice)
    case .device, .vendor: try life.ask(.get(level, app: nil), as: alice)
    }
    let name: Text? = level == .device ? nil : "user:1000"
    #expect(try life.ask(.renew(level, app: name, dryRun: false), as: root) == answer)
    let history = try life.ask(.history(level, app: nil), as: alice)
    #expect(history.count == 3)
    #expect(history[0].contains(" until=t2 ") && history[0].contains(" ended=renewed "))
    #expect(history[1].hasSuffix(" from=t2 cause=renewed origin=random by=uid:0"))
  }

  @Test(arguments: Level.allCases)
  func `renew without an identifier makes one`(level: Level) throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v")])
    #expect(try life.ask(.renew(level, app: "org.a", dryRun: false), as: root) == ["OK r1 previous=\"\""])
    #expect(try life.ask(.get(level, app: nil), as: peer("org.a"))[0].hasPrefix("OK r1 level=\(level.rawValue)"))
    #expect(life.registry.history.map(\.cause) == [.renewed])
  }

  @Test(arguments: [Level.installation, .vendor])
  func `renew by an admin whose app is not installed is not found, in a dry run too`(level: Level) {
    for dryRun in [true, false] {
      let refusal = Life().refusal(of: .renew(level, app: nil, dryRun: dryRun), as: root)
      #expect(refusal == .notFound("user:0 is not installed"), "dry-run=\(dryRun)")
    }
  }

  @Test func `a dry run changes nothing and lists the identifiers that would change`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v", device: .vendor)])
    #expect(try life.ask(.renew(.device, app: nil, dryRun: true), as: root) == ["OK 0"])
    for peer in [peer("org.b"), alice, peer("org.a")] { try life.ask(.get(.device, app: nil), as: peer) }
    for level in [Level.installation, .vendor] { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    let before = life.registry
    #expect(
      try life.ask(.renew(.device, app: nil, dryRun: true), as: root) == [
        "* device m.device", "* device m.device.org.v vendor=org.v", "* device m.device.org.a app=org.a", "OK 3",
      ])
    #expect(
      try life.ask(.renew(.device, app: "org.a", dryRun: true), as: root)
        == ["* device m.device.org.a app=org.a", "OK 1"])
    #expect(
      try life.ask(.renew(.installation, app: "org.a", dryRun: true), as: root)
        == ["* installation r1 app=org.a", "OK 1"])
    #expect(
      try life.ask(.renew(.vendor, app: "org.b", dryRun: true), as: root) == ["* vendor r2 vendor=org.v", "OK 1"])
    #expect(life.registry == before)
  }

  @Test(arguments: [nil, "org.c"] as [Text?])
  func `renewing the device identifier renews those of apps and vendors, as a dry run says`(app: Text?) throws {
    var life = Life()
    life.install([
      "org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v", device: .vendor), "org.c": Manifest("org.c"),
    ])
    for app in ["org.a", "org.b", "org.c"] as [Text] { try life.ask(.get(.device, app: nil), as: peer(app)) }
    try life.ask(.get(.installation, app: nil), as: peer("org.a"))
    let rows = try life.ask(.renew(.device, app: app, dryRun: true), as: root)
    let before = life.registry
    try life.ask(.renew(.device, app: app, dryRun: false), as: root)
    let changed = before.scopes.filter { before[$0] != life.registry[$0] }
    #expect(Set(changed) == [.device, .deviceOfApp("org.a"), .deviceOfVendor("org.v")])
    #expect(rows.last == "OK \(changed.count)")
    #expect(Set(life.registry.scopes.compactMap { life.registry[$0]?.value }).count == 4)
  }

  @Test func `the device identifier of an app that has its own is renewed alone`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.device, app: nil), as: peer("org.a"))
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.ask(.renew(.device, app: "org.a", dryRun: false), as: root) == ["OK r1 previous=m.device.org.a"])
    #expect(life.spoken(.device) == "m.device")
  }

  @Test func `a renewal replaces this device in the list, keeping its place and name`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.putDevice(life.registry[.device]?.value ?? .zero, name: "desk", seen: nil), as: root)
    try life.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(
      try life.ask(.devices, as: alice) == ["* r1 self=yes name=desk added=t1", "* g1 self=no added=t3", "OK 2"])
  }

  @Test func `a new device identifier ends the suspicion of the machine`() throws {
    var life = try doubtful()
    try life.ask(.renew(.device, app: nil, dryRun: true), as: root)
    #expect(life.registry.machine?.suspicion != nil)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(life.registry.machine == MachineRecord(fingerprint: .init(machine: "m", hardware: "other")))
  }

  @Test func `a migration of the device identifier ends the suspicion too`() throws {
    var life = try doubtful()
    try life.ask(.migrate(.device, given(1), app: nil, commits: true, forces: true), as: root)
    #expect(life.registry.machine?.suspicion == nil)
  }

  @Test func `changes of other identifiers do not end the suspicion`() throws {
    var life = try doubtful()
    life.install(["org.a": Manifest("org.v", device: .app)])
    for level in Level.allCases { try life.ask(.renew(level, app: "org.a", dryRun: false), as: root) }
    #expect(life.registry.machine?.suspicion != nil)
  }

  /// Returns a `Life` whose device identifier was kept on other hardware.
  private func doubtful() throws(Refusal) -> Life {
    var life = Life()
    try life.start("m", "h")
    try life.ask(.get(.device, app: nil), as: alice)
    try life.start("m", "other")
    return life
  }
}
