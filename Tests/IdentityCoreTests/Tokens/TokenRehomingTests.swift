import IdentityCore
import Testing

/// Tokens follow the device identifier that their app sees, because senders know the device by that identifier.
struct TokenRehomingTests {
  /// Returns a `Life` with apps that see different device identifiers, all handed out. Each app has a token of provider
  /// `p`, and the first one also has a token of provider `q`.
  private func life() throws(Refusal) -> Life {
    var life = Life()
    life.install([
      "org.a": Manifest("org.v"), "org.b": Manifest("org.v", device: .vendor), "org.c": Manifest("org.v", device: .app),
    ])
    try life.start("m", "h")
    for peer in [orgA, orgB, orgC, alice] { try life.ask(.token("p", Text("\(peer.app).t")), as: peer) }
    try life.ask(.token("q", "u"), as: orgA)
    return life
  }

  /// Returns `APP PROVIDER DEVICE` for each token.
  private func homes(_ life: Life) -> [String] {
    life.lines(tokens(life)).dropLast().map { line in
      func value(_ name: String) -> Substring {
        line.split(separator: " ").first { $0.hasPrefix("\(name)=") }?.dropFirst(name.count + 1) ?? "?"
      }
      return "\(value("app")) \(value("provider")) \(value("device"))"
    }
  }

  private func tokens(_ life: Life) -> Reply {
    (try? life.registry.answer(.tokens(of: .all), for: root)) ?? Reply()
  }

  @Test func `each token has the device identifier that its app sees`() throws {
    let life = try life()
    #expect(
      homes(life) == [
        "org.a p m.device", "org.a q m.device", "org.b p m.device.org.v", "org.c p m.device.org.c",
        "user:1000 p m.device",
      ])
  }

  @Test func `a new device identifier causes an event for every token that has it`() throws {
    var life = try life()
    let before = life.registry.tokens
    let last = life.registry.lastEvent
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(
      homes(life) == ["org.a p r1", "org.a q r1", "org.b p r2", "org.c p r3", "user:1000 p r1"])
    #expect(
      life.told(of: .token, from: last + 1) == [
        "rehomed app=org.a provider=p device=r1 previous-device=m.device fingerprint=#org.a.t",
        "rehomed app=org.a provider=q device=r1 previous-device=m.device fingerprint=#u",
        "rehomed app=user:1000 provider=p device=r1 previous-device=m.device fingerprint=#user:1000.t",
        "rehomed app=org.b provider=p device=r2 previous-device=m.device.org.v fingerprint=#org.b.t",
        "rehomed app=org.c provider=p device=r3 previous-device=m.device.org.c fingerprint=#org.c.t",
      ])
    // Nothing else of a token changes.
    for token in before.all {
      let now = try #require(life.registry.tokens[token.app, token.provider])
      #expect(now.device != token.device)
      #expect(now.with(device: token.device) == token)
    }
    // The event is for the token's app, not for all apps that share the device identifier.
    #expect(
      life.events.filter { $0.topic == .token && $0.name == "rehomed" }.map(\.audience).contains(.sharing) == false)
  }

  @Test func `a new device identifier of one app or vendor moves only its own tokens`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    try life.ask(.renew(.device, app: "org.c", dryRun: false), as: root)
    #expect(
      life.told(of: .token, from: last + 1) == [
        "rehomed app=org.c provider=p device=r1 previous-device=m.device.org.c fingerprint=#org.c.t"
      ])
    try life.ask(.renew(.device, app: "org.b", dryRun: false), as: root)
    #expect(life.told(of: .token, from: last + 1).count == 2)
    #expect(homes(life)[2] == "org.b p r2")
    // Identifiers of other levels do not affect tokens.
    for level in [.vendor, .installation] as [Level] {
      try life.ask(.get(level, app: nil), as: orgA)
      try life.ask(.renew(level, app: "org.a", dryRun: false), as: root)
    }
    try life.ask(.renew(.device, app: "org.a", dryRun: true), as: root)
    #expect(life.told(of: .token, from: last + 1).count == 2)
  }

  @Test func `a migration moves tokens, and one that changes nothing does not`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    for commits in [false, true] {
      try life.ask(.migrate(.device, given(1), app: nil, commits: commits, forces: true), as: root)
      #expect(life.told(of: .token, from: last + 1).count == (commits ? 3 : 0))
    }
    try life.ask(.migrate(.device, given(1), app: nil, commits: true, forces: true), as: root)
    #expect(life.told(of: .token, from: last + 1).count == 3)
    #expect(homes(life).filter { $0.hasSuffix(" g1") } == ["org.a p g1", "org.a q g1", "user:1000 p g1"])
  }

  @Test(arguments: MachinePolicy.allCases) func `another machine leaves tokens to the former one if identifiers change`(
    policy: MachinePolicy
  )
    throws
  {
    var life = try life()
    let last = life.registry.lastEvent
    try life.start("n", "h", onMachineChange: policy)
    #expect(life.told(of: .token, from: last + 1).count == (policy == .renew ? 5 : 0))
    #expect(homes(life).allSatisfy { $0.contains(" m.device") })
    let told = life.told(of: .token, from: last + 1)
    #expect(told.allSatisfy { $0.hasPrefix("invalidated ") && $0.hasSuffix(" reason=copied") }, "\(told)")
  }

  // MARK: Manifests

  @Test func `a manifest that selects another existing device identifier moves tokens at once`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    life.install([
      "org.a": Manifest("org.v", device: .vendor), "org.b": Manifest("org.v", device: .shared),
      "org.c": Manifest("org.v", device: .vendor),
    ])
    #expect(
      life.told(of: .token, from: last + 1) == [
        "rehomed app=org.a provider=p device=m.device.org.v previous-device=m.device fingerprint=#org.a.t",
        "rehomed app=org.a provider=q device=m.device.org.v previous-device=m.device fingerprint=#u",
        "rehomed app=org.b provider=p device=m.device previous-device=m.device.org.v fingerprint=#org.b.t",
        "rehomed app=org.c provider=p device=m.device.org.v previous-device=m.device.org.c fingerprint=#org.c.t",
      ])
    #expect(
      homes(life) == [
        "org.a p m.device.org.v", "org.a q m.device.org.v", "org.b p m.device", "org.c p m.device.org.v",
        "user:1000 p m.device",
      ])
  }

  @Test func `tokens move when a missing device identifier is made, whoever requests it`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    life.install([
      "org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.w", device: .vendor), "org.c": Manifest("org.v"),
    ])
    // Only the third app's new identifier exists already.
    #expect(
      life.told(of: .token, from: last + 1) == [
        "rehomed app=org.c provider=p device=m.device previous-device=m.device.org.c fingerprint=#org.c.t"
      ])
    try life.ask(.get(.device, app: nil), as: orgB)
    #expect(
      life.told(of: .token, from: last + 1).last
        == "rehomed app=org.b provider=p device=m.device.org.w previous-device=m.device.org.v fingerprint=#org.b.t")
    // A put of one token moves the app's other token too. The event of the put itself is `replaced`.
    let answer = try life.ask(.token("p", "new"), as: orgA)
    #expect(answer == ["OK replaced device=m.device.org.a previous=org.a.t"])
    #expect(
      life.told(of: .token, from: last + 1).suffix(3) == [
        "rehomed app=org.a provider=p device=m.device.org.a previous-device=m.device fingerprint=#org.a.t",
        "rehomed app=org.a provider=q device=m.device.org.a previous-device=m.device fingerprint=#u",
        "replaced app=org.a provider=p device=m.device.org.a fingerprint=#new",
      ])
    #expect(life.told(of: .token, from: last + 1).count == 5)
    #expect(
      life.registry.tokens.all.allSatisfy { life.registry[life.registry.deviceScope(of: $0.app)]?.value == $0.device })
  }

  @Test func `a put that only moves the token is unchanged`() throws {
    var life = try life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    let last = life.registry.lastEvent
    #expect(try life.ask(.token("q", "u"), as: orgA) == ["OK unchanged device=m.device.org.a"])
    #expect(life.told(of: .token, from: last + 1).map { $0.prefix(8) } == ["rehomed ", "rehomed "])
  }

  @Test func `other changes of a manifest move no tokens`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    life.install([
      "org.a": Manifest("org.w", unit: "u.service"), "org.b": Manifest("org.v", device: .vendor, groups: ["g"]),
      "org.c": Manifest("org.x", device: .app),
    ])
    #expect(life.told(of: .token, from: last + 1) == [])
    // The device identifier of another vendor is a different one.
    life.install(["org.b": Manifest("org.y", device: .vendor), "org.a": Manifest("org.y", device: .vendor)])
    try life.ask(.get(.device, app: nil), as: orgA)
    #expect(
      life.told(of: .token, from: last + 1).filter { $0.hasPrefix("rehomed app=org.b ") } == [
        "rehomed app=org.b provider=p device=m.device.org.y previous-device=m.device.org.v fingerprint=#org.b.t"
      ])
  }

  // MARK: Removal

  @Test func `the tokens of an app end with it, before the event of its end`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    life.install(["org.b": Manifest("org.v", device: .vendor)])
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(
      life.told(of: .token, from: last + 1) == [
        "deleted app=org.a provider=p device=m.device fingerprint=#org.a.t",
        "deleted app=org.a provider=q device=m.device fingerprint=#u",
        "deleted app=org.c provider=p device=m.device.org.c fingerprint=#org.c.t",
        "deleted app=user:1000 provider=p device=m.device fingerprint=#user:1000.t",
      ])
    #expect(homes(life) == ["org.b p m.device.org.v"])
    #expect(life.registry.tokens.count == 1)
    life.install(["org.a": Manifest("org.v")])
    #expect(try life.ask(.tokens(), as: orgA) == ["OK 0"])
    #expect(try life.ask(.token("p", "org.a.t"), as: orgA) == ["OK created device=m.device"])
  }

  @Test func `a sealed store has no tokens and takes none`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    try life.ask(.seal(dryRun: false), as: root)
    let told = life.told(of: .token, from: last + 1)
    #expect(told.count == 5)
    #expect(told.allSatisfy { $0.hasPrefix("deleted ") })
    #expect(Array(life.registry.tokens.all) == [])
    #expect(life.registry.tokens.count == 0)
    #expect(
      life.refusal(of: .token("p", "org.a.t"), as: orgA)
        == .unavailable("the store is sealed for a golden image; the next start of identityd begins a new store"))
    #expect(try life.ask(.invalidate("p", "org.a.t"), as: orgA) == ["OK unchanged"])
    #expect(try life.ask(.tokens(of: .all), as: root) == ["OK 0"])
  }
}
