import IdentityCore
import Testing

/// Returns a `Life` with three apps of one vendor and two of another, all identifiers handed out, and an account with
/// this device and another one.
private func household() throws(Refusal) -> Life {
  var life = Life()
  life.install([
    "org.v.shared": Manifest("org.v"), "org.v.vendor": Manifest("org.v", device: .vendor),
    "org.v.app": Manifest("org.v", device: .app), "org.w.shared": Manifest("org.w"),
    "org.w.app": Manifest("org.w", device: .app),
  ])
  for app in life.registry.apps.keys.sorted() {
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer(app)) }
  }
  try life.ask(.setAccount("alice@example.org"), as: root)
  try life.ask(.putDevice(given(1), name: "laptop", seen: nil), as: root)
  return life
}

struct VisibilityTests {
  @Test(
    arguments: [
      ("org.v.shared", "m.device"), ("org.w.shared", "m.device"), ("org.v.vendor", "m.device.org.v"),
      ("org.v.app", "m.device.org.v.app"), ("org.w.app", "m.device.org.w.app"),
    ] as [(Text, String)])
  func `an app sees the device identifier that its manifest selects`(app: Text, expected: String) throws {
    var life = try household()
    let answer = try life.ask(.get(.device, app: nil), as: peer(app))
    #expect(answer.first?.hasPrefix("OK \(expected) level=device ") == true)
  }

  @Test(
    arguments: [
      // The app, and the scopes that it may read. All apps of a vendor may read its scopes, because the vendor
      // identifier links them anyway.
      ("org.v.shared", [.device, .deviceOfVendor("org.v"), .vendor("org.v"), .installation("org.v.shared")]),
      ("org.w.shared", [.device, .vendor("org.w"), .installation("org.w.shared")]),
      ("org.v.vendor", [.deviceOfVendor("org.v"), .vendor("org.v"), .installation("org.v.vendor")]),
      (
        "org.v.app",
        [.deviceOfApp("org.v.app"), .deviceOfVendor("org.v"), .vendor("org.v"), .installation("org.v.app")]
      ),
      ("org.w.app", [.deviceOfApp("org.w.app"), .vendor("org.w"), .installation("org.w.app")]),
      ("user:1000", [.device]),
    ] as [(Text, [Scope])])
  func `resolve and events show an app its own, its vendor's and shared identifiers`(
    app: Text, readable: [Scope]
  ) throws {
    let life = try household()
    for scope in life.registry.scopes {
      let value = try #require(life.registry[scope]?.value)
      let refusal = life.refusal(of: .resolve(value), as: peer(app))
      #expect((refusal == nil) == readable.contains(scope), "\(app) resolves \(scope)")
      #expect(life.registry.may(peer(app), see: scope.audience) == readable.contains(scope), "\(app) hears of \(scope)")
    }
  }

  @Test func `row 40: an identifier that a peer may not read looks like one that never existed`() throws {
    let life = try household()
    let secret = try #require(life.registry[.installation("org.w.app")]?.value)
    let refusal = Refusal.notFound("this daemon issued no such identifier that org.v.app may see")
    #expect(life.refusal(of: .resolve(secret), as: peer("org.v.app")) == refusal)
    #expect(life.refusal(of: .resolve(given(9)), as: peer("org.v.app")) == refusal)
  }

  @Test func `an admin sees everything`() throws {
    let life = try household()
    for scope in life.registry.scopes {
      let value = try #require(life.registry[scope]?.value)
      #expect(life.refusal(of: .resolve(value), as: root) == nil)
    }
    for audience in [.sharing, .vendor("org.v"), .app("org.w.app")] as [Audience] {
      #expect(life.registry.may(root, see: audience))
    }
  }

  @Test(
    arguments: [
      ("org.v.app", ["org.v.app", "org.v.shared", "org.v.vendor"]), ("org.w.shared", ["org.w.app", "org.w.shared"]),
      ("user:1000", []),
    ] as [(Text, [String])])
  func `app list shows an app the apps of its vendor`(app: Text, listed: [String]) throws {
    var life = try household()
    let vendor = app == "org.v.app" ? "org.v" : "org.w"
    #expect(
      try life.ask(.apps, as: peer(app))
        == listed.map { "* \($0) vendor=\(vendor) installed=t1 manifest=yes" } + ["OK \(listed.count)"])
  }

  @Test func `app list shows an admin all apps, and what their manifests say`() throws {
    var life = Life()
    var contained = Manifest("org.v", groups: ["org.shared"])
    contained.container = "c"
    contained.rights = [.fleet]
    life.install([
      "org.a": Manifest("org.v", unit: "a.service", groups: ["org.shared", "org.media"]), "org.b": contained,
    ])
    try life.ask(.get(.installation, app: nil), as: alice)
    #expect(
      try life.ask(.apps, as: root) == [
        "* org.a vendor=org.v installed=t1 manifest=yes unit=a.service groups=org.shared,org.media",
        "* org.b vendor=org.v installed=t1 manifest=yes container=c groups=org.shared rights=fleet",
        "* user:1000 vendor=user:1000 installed=t2 manifest=no", "OK 3",
      ])
    #expect(try life.ask(.apps, as: alice) == ["* user:1000 vendor=user:1000 installed=t2 manifest=no", "OK 1"])
    // An app learns of the others of its vendor that they exist.
    let rows = try life.ask(.apps, as: peer("org.a"))
    #expect(rows == ["org.a", "org.b"].map { "* \($0) vendor=org.v installed=t1 manifest=yes" } + ["OK 2"])
  }

  @Test(arguments: ["org.v.shared", "user:1000"] as [Text])
  func `an app that shares the device identifier sees the account and all its devices`(app: Text) throws {
    var life = try household()
    #expect(try life.ask(.account, as: peer(app)) == ["OK alice@example.org"])
    let rows = try life.ask(.devices, as: peer(app))
    #expect(rows.map { $0.prefix(2) } == ["* ", "* ", "OK"])
    #expect(rows[0].hasPrefix("* m.device self=yes added="))
    #expect(rows[1].hasPrefix("* g1 self=no name=laptop added="))
    #expect(life.registry.may(peer(app), see: .sharing))
  }

  @Test(arguments: [("org.v.app", "m.device.org.v.app"), ("org.v.vendor", "m.device.org.v")] as [(Text, String)])
  func `an app with its own device identifier sees neither the account nor other devices`(
    app: Text, own: String
  ) throws {
    var life = try household()
    let grant = "DeviceIdentifier=shared in its manifest"
    #expect(life.refusal(of: .account, as: peer(app)) == .denied(app: app, userID: 998, grant: grant))
    let rows = try life.ask(.devices, as: peer(app))
    #expect(rows.count == 2)
    #expect(rows[0].hasPrefix("* \(own) self=yes added="))
    #expect(!life.registry.may(peer(app), see: .sharing))
  }

  @Test func `all device identifiers differ`() throws {
    let life = try household()
    let values = life.registry.scopes.filter { $0.level == .device }.compactMap { life.registry[$0]?.value }
    #expect(values.count == 4)
    #expect(Set(values).count == 4)
  }

  @Test(arguments: [Manifest.DeviceBinding.app, .vendor])
  func `an uninstalled app sees nothing that it could not see while installed`(binding: Manifest.DeviceBinding) throws {
    var life = Life()
    life.install(["org.w": Manifest("org.v", device: binding), "org.other": Manifest("org.w")])
    let gone = peer("org.w")
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.get(.vendor, app: nil), as: peer("org.other"))
    life.install(["org.other": Manifest("org.w")])
    #expect(!life.registry.may(gone, see: .sharing))
    #expect(!life.registry.may(gone, see: .vendor("org.w")))
    #expect(life.lines(life.registry.snapshot(of: Set(Topic.allCases), for: gone)) == [])
    #expect(life.refusal(of: .devices, as: gone) != nil)
  }
}
