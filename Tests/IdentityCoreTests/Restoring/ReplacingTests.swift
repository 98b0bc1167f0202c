import IdentityCore
import IdentityWire
import Testing

/// Apps whose manifests say that they take the place of another app (`Replaces=`).
struct ReplacingTests {
  private static let place = "/usr/lib/identityd/apps.d"

  private func manifest(_ vendor: Text = "org.v", replaces: Text?, device: Manifest.DeviceBinding = .app) -> Manifest {
    var manifest = Manifest(vendor, device: device, unit: "a.service", groups: ["org.shared"])
    manifest.replaces = replaces
    return manifest
  }

  /// An app with all that an app can have.
  private func lived() throws -> Life {
    var life = Life()
    life.survey(["org.old": manifest(replaces: nil)])
    for line in [
      "get installation", "get vendor", "get device", "item put service=s account=a data=eA==",
      "item put service=s account=b data=eA== lifetime=installation",
      "item put service=s account=c group=org.shared data=eA==", "version report 1", "version report 2",
      "version claim c", "token put p one", "token put q two",
    ] {
      try life.tell(line, as: peer("org.old").session(1))
    }
    try life.ask(.renew(.installation, app: "org.old", dryRun: false), as: root)
    return life
  }

  /// Returns all that an app has, without its ID.
  private func belongings(of app: Text, in life: Life) -> [String] {
    let registry = life.registry
    let identifiers = registry.history.numbered.filter { $0.identifier.scope.app == app }.map { entry in
      let identifier = entry.identifier
      return "\(entry.number) \(identifier.scope.level) \(identifier.value) \(String(describing: identifier.end))"
    }
    let items = registry.items.all.filter { $0.owner == app }.map { item in
      "\(item.number) \(item.key.group == app ? "own" : "\(item.key.group)") \(item.key.service) \(item.key.account)"
    }
    let history = registry.versions[.app(app)]
    let tokens = registry.tokens.tokens(of: app).map { "\($0.number) \($0.provider) \($0.value) \($0.device)" }
    return identifiers + items + ["\(history.releases)", "\(history.reports)", "\(history.claims)"] + tokens
  }

  @Test(arguments: [false, true])
  func `the new app has all that the old one had, with one event`(isSuspendedBefore: Bool) throws {
    var life = try lived()
    if isSuspendedBefore { life.survey([:]) }
    let before = belongings(of: "org.old", in: life)
    #expect(before.count == 2 + 1 + 3 + 3 + 2)
    let last = life.registry.lastEvent
    let installed = life.registry.apps["org.old"]?.installed
    life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(life.faults == [])
    #expect(
      life.told(from: last + 1) == ["\(last + 1) app replaced app=org.new vendor=org.v previous=org.old > vendor org.v"]
    )
    #expect(belongings(of: "org.new", in: life) == before)
    #expect(belongings(of: "org.old", in: life) == ["[]", "[]", "[]"])
    #expect(life.registry.apps.count == 1)
    #expect(life.registry.apps["org.new"]?.installed == installed)
    #expect(life.registry.apps["org.new"]?.suspended == nil)
    #expect(life.registry.use(of: "org.old") == nil)
    #expect(try life.ask(.get(.installation, app: nil), as: peer("org.new"))[0].hasPrefix("OK "))
    // The secrets can be read under the new name, and the state read back from a store is the same.
    let item = ItemName(service: "s", account: "a", group: nil)
    #expect(try life.ask(.readItem(item), as: peer("org.new"))[0].hasPrefix("OK "))
    let registry = life.registry
    life.restart()
    #expect(life.registry == registry)
    // The line stays in the manifest, and does nothing more.
    let changes = life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(changes.isEmpty && life.faults == [])
  }

  @Test func `without the old app, the new one is an installation`() throws {
    var life = Life()
    life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(life.faults == [])
    #expect(life.told() == ["1 app installed app=org.new vendor=org.v > vendor org.v"])
    #expect(life.registry.apps["org.new"]?.manifest?.replaces == nil)
  }

  @Test func `another DeviceIdentifier= moves the tokens, with their events`() throws {
    var life = try lived()
    let last = life.registry.lastEvent
    try life.ask(.get(.device, app: nil), as: root)
    life.survey(["org.new": manifest(replaces: "org.old", device: .shared)])
    let device = try #require(life.registry[.device]?.value)
    #expect(life.registry.tokens.tokens(of: "org.new").map(\.device) == [device, device])
    let told = life.told(from: last + 1).filter { $0.contains(" token ") }
    #expect(told.map { $0.contains(" token rehomed app=org.new ") } == [true, true])
  }

  @Test func `a device identifier that the new app had before stays, and the other one ends`() throws {
    var life = Life()
    life.install(["org.new": manifest(replaces: nil)])
    try life.ask(.get(.device, app: nil), as: peer("org.new"))
    let kept = life.spoken(.deviceOfApp("org.new"))
    life.install(["org.old": manifest(replaces: nil)])
    try life.ask(.get(.device, app: nil), as: peer("org.old"))
    try life.tell("token put p one", as: peer("org.old"))
    life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(kept != nil && life.spoken(.deviceOfApp("org.new")) == kept)
    #expect(life.registry.count(of: .deviceOfApp("org.new")) == 2)
    #expect(life.registry.tokens.tokens(of: "org.new").map(\.device) == [life.registry[.deviceOfApp("org.new")]?.value])
    let registry = life.registry
    life.restart()
    #expect(life.registry == registry)
  }

  @Test func `a replacement that is not possible is a fault, and the new app is not installed`() throws {
    let new = "\(Self.place)/org.new.app: Replaces=org.old: "
    var contained = Manifest("org.v")
    contained.container = "c"
    func faults(_ prepare: (inout Life) throws -> Void, _ others: [Text: Manifest] = [:], _ vendor: Text = "org.v")
      throws -> [String]
    {
      var life = try lived()
      try prepare(&life)
      let manifests = ["org.new": manifest(vendor, replaces: "org.old")].merging(others) { $1 }
      let entries = manifests.map { id, manifest in
        (id, ManifestSurvey.Entry(file: "\(Self.place)/\(id).app", manifest: manifest))
      }
      life.survey(.found(Dictionary(uniqueKeysWithValues: entries), faults: []))
      #expect(life.registry.apps["org.new"] == nil)
      #expect(life.registry.apps["org.old"] != nil)
      #expect(life.spoken(.installation("org.old")) != nil)
      return life.faults
    }
    #expect(
      try faults({ _ in }, ["org.old": manifest(replaces: nil)]) == [
        "\(new)\(Self.place)/org.old.app is still there; remove that file"
      ])
    #expect(
      try faults({ _ in }, [:], "org.w") == ["\(new)org.old is an app of the vendor org.v; set Vendor=org.v"])
    #expect(
      try faults({ $0.survey(["org.old": contained]) }) == [
        "\(new)org.old is the app of a container; an app outside of containers cannot replace it"
      ])
    #expect(
      try faults({ _ in }, ["org.other": manifest(replaces: "org.old")]).map { $0.contains("too; remove the line") }
        == [true, true])
    let same = "item put service=s account=a group=org.new data=eA=="
    #expect(
      try faults({ try $0.tell(same, as: root) })
        == ["\(new)the group org.new has an item service=s account=a already; delete one of the two"])
    #expect(
      try faults({ $0.registry.itemFault = "the master key is missing" }) == ["\(new)the master key is missing"])
  }

  @Test func `an app that was installed before stays as it is, whatever its manifest would replace`() throws {
    var life = try lived()
    // Both cannot claim one unit.
    life.survey(["org.old": Manifest("org.v", unit: "old.service"), "org.new": manifest(replaces: nil)])
    let before = life.registry
    life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(life.faults.count == 1 && life.faults[0].hasSuffix("run 'identityctl app forget org.old'"))
    #expect(life.registry.apps["org.new"] == before.apps["org.new"])
    #expect(life.registry.apps["org.old"]?.suspended != nil)
    #expect(life.registry.tokens == before.tokens)
    // The advice.
    try life.ask(.forget(app: "org.old"), as: root)
    life.survey(["org.new": manifest(replaces: "org.old")])
    #expect(life.faults == [])
  }
}
