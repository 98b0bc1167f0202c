import IdentityCore
import IdentityWire
import Testing

/// Apps whose manifests are missing for a while, as after the rollback of an image.
struct SuspensionTests {
  /// An app with an identifier, an item, a version and a token.
  private func lived(in folder: String = "/usr/lib/identityd/apps.d") throws -> Life {
    var life = Life()
    life.survey(["org.a": Manifest("org.v", unit: "a.service", groups: ["org.shared"])], in: folder)
    for line in [
      "get installation", "get vendor", "item put service=s account=a data=eA==",
      "item put service=s account=b data=eA== lifetime=installation", "version report 1", "token put p one",
    ] {
      try life.tell(line, as: peer("org.a").session(1))
    }
    return life
  }

  @Test func `a suspended app is whole again when its manifest is back`() throws {
    var life = try lived()
    let before = life.registry
    let last = life.registry.lastEvent
    life.survey([:])
    #expect(life.registry.apps["org.a"]?.suspended != nil)
    life.survey(["org.a": Manifest("org.v", unit: "a.service", groups: ["org.shared"])])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) app suspended app=org.a vendor=org.v > vendor org.v",
        "\(last + 2) app resumed app=org.a vendor=org.v > vendor org.v",
      ])
    #expect(life.registry.apps == before.apps)
    #expect(life.registry.history == before.history)
    #expect(life.registry.items == before.items)
    #expect(life.registry.versions == before.versions)
    #expect(life.registry.tokens == before.tokens)
  }

  @Test(
    arguments: [
      .get(.installation, app: nil), .get(.vendor, app: nil), .get(.device, app: nil),
      .readItem(ItemName(service: "s", account: "a", group: nil)),
      .readItem(ItemName(service: "s", account: "a", group: "org.a")),
      .readItem(ItemName(service: "s", account: "a", group: "org.shared")),
      .findItems(ItemCondition(groups: .all), limit: nil),
    ] as [RegistryCommand])
  func `an open connection of a suspended app gets nothing`(command: RegistryCommand) throws {
    var life = try lived()
    try life.tell("item put service=s account=a group=org.shared data=eA==", as: root)
    #expect(life.refusal(of: command, as: peer("org.a")) == nil)
    life.survey([:])
    #expect(life.refusal(of: command, as: peer("org.a")) != nil)
  }

  @Test(
    arguments: [
      // The present folder, and the folder of the manifest that is back.
      ("/usr/lib/identityd/apps.d", "/etc/identityd/apps.d", true),
      ("/run/identityd/apps.d", "/run/identityd/apps.d", true),
      ("/run/identityd/apps.d", "/usr/lib/identityd/apps.d", true),
      ("/usr/lib/identityd/apps.d", "/run/identityd/apps.d", false),
      ("/usr/lib/identityd/apps.d", "/usr/local/lib/identityd/apps.d", false),
      ("/opt/apps.d", "/usr/lib/identityd/apps.d", true), ("/usr/lib/identityd/apps.d", "/opt/apps.d", false),
    ])
  func `an app resumes only from a trusted folder or from its own`(from: String, to: String, resumes: Bool) throws {
    var life = try lived(in: from)
    life.survey([:])
    life.survey(["org.a": Manifest("org.v", unit: "a.service")], in: to)
    #expect((life.spoken(.installation("org.a")) == "r1") == resumes)
    #expect((life.registry.tokens.count == 1) == resumes)
    #expect(life.registry.apps["org.a"]?.suspended == nil)
  }

  @Test func `another vendor or another kind ends the suspended app first`() throws {
    var contained = Manifest("org.v")
    contained.container = "a"
    for other in [Manifest("org.w", unit: "a.service"), contained] {
      var life = try lived()
      let last = life.registry.lastEvent
      life.survey([:])
      life.survey(["org.a": other])
      let told = life.told(from: last + 1)
      #expect(told.contains { $0.contains("installation ended") })
      #expect(told.contains { $0.contains("app uninstalled app=org.a vendor=org.v") })
      let vendor = other.vendor
      #expect(
        told.last == "\(life.registry.lastEvent) app installed app=org.a vendor=\(vendor) > vendor \(vendor)")
      #expect(life.spoken(.installation("org.a")) == nil)
    }
  }

  @Test func `a faulty file neither resumes nor ends a suspended app`() throws {
    var life = try lived()
    life.survey([:])
    let before = life.registry
    let faulty = ManifestSurvey.Entry(file: "/etc/identityd/apps.d/org.a.app", manifest: nil)
    #expect(life.survey(.found(["org.a": faulty], faults: [])) == [])
    #expect(life.survey(.unreadable("/etc: I/O error")) == [])
    #expect(life.registry == before)
    #expect(life.registry.manifests(after: .unreadable("")).isEmpty)
  }

  @Test func `only an admin forgets a suspended app, and nobody one in force`() throws {
    var life = try lived()
    #expect(life.refusal(of: .forget(app: "org.a"), as: root)?.code == .conflict)
    life.survey([:])
    #expect(life.refusal(of: .forget(app: "org.a"), as: peer("org.a"))?.code == .denied)
    try life.ask(.forget(app: "org.a"), as: root)
    #expect(life.registry.apps.count == 0)
    #expect(life.spoken(.installation("org.a")) == nil)
    life.survey(["org.a": Manifest("org.v", unit: "a.service")])
    #expect(try life.ask(.get(.installation, app: nil), as: peer("org.a"))[0].hasPrefix("OK r1 ") == false)
  }

  @Test func `unused= and patterns pass suspended apps over, and ForgetSuspended= counts days of operation`() throws {
    var life = try lived()
    func day(_ number: Int) -> Timestamp { Timestamp(milliseconds: Int64(number) * 86_400_000) }
    life.take(life.registry.changes(forUsed: [], at: day(1)))
    life.survey([:])
    #expect(life.registry.use(of: "org.a")?.day == life.registry.day?.day)
    var last: Text?
    for number in 2...30 { life.take(life.registry.changes(forUsed: [], at: day(number))) }
    try life.ask(.forgetMatching(AppCondition(unused: 1, pattern: nil), dryRun: false), as: root)
    try life.ask(.forgetMatching(AppCondition(unused: nil, pattern: "*"), dryRun: false), as: root)
    let policy = ForgetPolicy(unusedDays: 1, suspendedDays: 30)
    #expect(life.registry.removalOfUnused(policy, after: &last, life.context(nil)).isEmpty)
    life.take(life.registry.changes(forUsed: [], at: day(31)))
    #expect(life.registry.removalOfUnused(ForgetPolicy(unusedDays: 1), after: &last, life.context(nil)).isEmpty)
    life.take(life.registry.removalOfUnused(policy, after: &last, life.context(nil)))
    #expect(life.registry.apps.count == 0)
    #expect(life.registry.use(of: "org.a") == nil)
  }

  @Test func `a resumed app leaves no record of its suspension`() throws {
    var life = try lived()
    life.take(life.registry.changes(forUsed: [], at: Timestamp(milliseconds: 86_400_000)))
    life.survey([:])
    life.survey(["org.a": Manifest("org.v", unit: "a.service", groups: ["org.shared"])])
    #expect(life.registry.use(of: "org.a") == nil)
  }

  @Test func `beyond a number of suspended apps, those suspended longest are uninstalled`() throws {
    var life = Life()
    func manifests(_ name: String) -> [Text: Manifest] {
      Dictionary(
        uniqueKeysWithValues: (0..<Bound.suspendedApps).map {
          (Text("org.\(name)\($0)"), Manifest(Text("org.\(name)")))
        })
    }
    life.survey(manifests("a"))
    life.survey(["org.b": Manifest("org.b")])
    life.survey([:])
    #expect(life.registry.apps.count == Bound.suspendedApps)
    #expect(life.registry.apps["org.b"] != nil)
    life.survey(["org.b": Manifest("org.b")])
    #expect(life.registry.apps["org.b"]?.suspended == nil)
  }
}
