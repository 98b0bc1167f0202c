import IdentityCore
import Testing

/// Returns every request that can name an app, with this name.
private func naming(_ app: Text?) -> [RegistryCommand] {
  Level.allCases.map { .get($0, app: app) } + Level.allCases.map { .history($0, app: app) }
    + [Level.device, .installation].map { .migrate($0, given(1), app: app, commits: false, forces: false) }
}

/// Returns every renewal that names an app, with this name.
private func renewing(_ app: Text?) -> [RegistryCommand] { Level.allCases.map { .renew($0, app: app, dryRun: true) } }

struct RightsTests {
  private static let lacking = Refusal.denied(
    app: "user:1000", userID: 1_000, grant: "admin rights to name another app")

  @Test(arguments: naming("org.a") + naming("org.nobody"))
  func `row 40: naming another app requires an admin, whether the app exists or not`(command: RegistryCommand) {
    var life = Life()
    life.install(["org.a": Manifest("org.a")])
    #expect(life.refusal(of: command, as: alice) == Self.lacking)
    #expect(throws: Self.lacking) { try life.registry.answer(command, for: alice) }
  }

  @Test(arguments: renewing(nil) + renewing("user:1000") + renewing("org.a") + renewing("org.nobody"))
  func `renewing requires an admin or the right fleet, whichever app is named`(command: RegistryCommand) {
    var life = Life()
    life.install(["org.a": Manifest("org.a")])
    #expect(
      life.refusal(of: command, as: alice)
        == .denied(app: "user:1000", userID: 1_000, grant: "admin rights or Rights=fleet in its manifest"))
  }

  @Test(arguments: naming("user:1000"))
  func `naming one's own app requires no rights`(command: RegistryCommand) {
    #expect(Life().refusal(of: command, as: alice) != Self.lacking)
  }

  @Test(arguments: naming("org.a") + renewing("org.a"))
  func `an admin may name any installed app`(command: RegistryCommand) {
    var life = Life()
    life.install(["org.a": Manifest("org.a")])
    #expect(life.refusal(of: command, as: root) == nil)
  }

  @Test(
    arguments: naming("org.nobody") + renewing("org.nobody") + naming("user:1000") + naming("") + renewing(""))
  func `an admin that names an app that was never installed installs nothing`(command: RegistryCommand) {
    #expect(Life().refusal(of: command, as: root) == .notFound("no such app is installed"))
  }

  @Test func `an admin that names an app gets that app's identifiers`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    #expect(
      try life.ask(.get(.installation, app: "user:1000"), as: root)
        == ["OK r1 level=installation app=user:1000 vendor=user:1000 created=t1"])
    try life.ask(.get(.vendor, app: "user:1000"), as: root)
    #expect(
      try life.ask(.history(.vendor, app: nil), as: alice)
        == ["* r2 from=t3 cause=first-use origin=random by=uid:0", "OK 1"])
  }

  @Test(
    arguments: (naming(nil) + renewing(nil)).filter { $0 != .history(.installation, app: nil) } + [.devices, .account])
  func `an app that was uninstalled while connected is refused`(command: RegistryCommand) throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.device, app: nil), as: alice)
    life.install([:])
    #expect(life.refusal(of: command, as: peer("org.a")) != nil)
  }

  @Test func `an app that was uninstalled while connected may still read its own history`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v")])
    try life.ask(.get(.installation, app: nil), as: peer("org.a"))
    life.install([:])
    #expect(
      try life.ask(.history(.installation, app: nil), as: peer("org.a"))
        == ["* r1 from=t2 until=t3 cause=first-use ended=uninstalled origin=random by=unit:some.service", "OK 1"])
    #expect(try life.ask(.history(.installation, app: "org.a"), as: peer("org.a")).last == "OK 1")
  }

  @Test func `an admin can read the history of an uninstalled app`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(
      try life.ask(.history(.installation, app: "user:1000"), as: root)
        == ["* r1 from=t1 until=t2 cause=first-use ended=uninstalled origin=random by=uid:1000", "OK 1"])
    #expect(life.refusal(of: .get(.installation, app: "user:1000"), as: root) != nil)
    #expect(life.refusal(of: .renew(.installation, app: "user:1000", dryRun: true), as: root) != nil)
  }

  @Test func `row 35: a peer that the kernel did not attest can change nothing`() {
    let registry = Registry()
    #expect(throws: Refusal.unattested) { try registry.decide(.devices, Life().context(nil)) }
  }

  @Test func `an app without a manifest is its own vendor and has no access groups`() throws {
    var life = Life()
    var manifest = Manifest("org.v")
    manifest.accessGroups = ["org.v.shared", "org.v.media"]
    life.install(["org.a": manifest])
    #expect(life.registry.vendor(of: "org.a") == "org.v")
    #expect(life.registry.accessGroups(of: "org.a") == ["org.v.shared", "org.v.media"])
    #expect(life.registry.vendor(of: "user:1000") == "user:1000")
    #expect(life.registry.accessGroups(of: "user:1000") == [])
  }

  @Test func `the right fleet is that of the present manifest, and no right to anything else`() throws {
    var life = Life()
    var manifest = Manifest("org.a")
    manifest.rights = [.fleet]
    life.install(["org.a": manifest, "org.b": Manifest("org.b")])
    #expect(try life.ask(.setAccount("alice"), as: peer("org.a")) == ["OK"])
    #expect(try life.ask(.putDevice(given(7), name: nil, seen: nil), as: peer("org.a")) == ["OK"])
    #expect(try life.ask(.removeDevice(given(7)), as: peer("org.a")) == ["OK"])
    _ = try life.ask(.get(.device, app: nil), as: peer("org.a"))
    let device = try #require(life.registry[.device]?.value)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: peer("org.a"))
    #expect(life.registry[.device]?.value != device)
    for (level, dryRun) in [(Level.device, true), (.installation, false), (.vendor, false)] {
      #expect(
        life.refusal(of: .renew(level, app: nil, dryRun: dryRun), as: peer("org.a"))
          == .denied(
            app: "org.a", userID: 998,
            grant: "admin rights for another level than device, and for dry-run=yes and replaces=yes"))
    }
    life.install(["org.a": Manifest("org.a"), "org.b": manifest])
    let before = life.registry
    for command in [
      RegistryCommand.setAccount("bob"), .setAccount(nil), .putDevice(given(8), name: nil, seen: nil),
      .removeDevice(given(8)), .renew(.device, app: nil, dryRun: false),
    ] {
      #expect(
        life.refusal(of: command, as: peer("org.a"))
          == .denied(app: "org.a", userID: 998, grant: "admin rights or Rights=fleet in its manifest"))
    }
    #expect(life.registry == before)
  }
}
