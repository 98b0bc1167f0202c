import IdentityCore
import Testing

/// The folder of manifests unless a test names another one.
private let folder: Text = "/usr/lib/identityd/apps.d"

struct ReconciliationTests {
  @Test func `a manifest that appears installs its app, and one that is missing suspends the app`() throws {
    var life = Life()
    var app = App(installed: Timestamp(milliseconds: 1), manifest: Manifest("org.v"), folder: folder)
    #expect(life.survey(["org.a": Manifest("org.v")]) == [.appInstalled("org.a", app)])
    #expect(life.survey(["org.a": Manifest("org.v")]) == [])
    app.suspended = Timestamp(milliseconds: 3)
    #expect(life.survey([:]) == [.appUpdated("org.a", app)])
    #expect(life.survey([:]) == [])
    try life.ask(.forget(app: "org.a"), as: root)
    #expect(
      life.told() == [
        "1 app installed app=org.a vendor=org.v > vendor org.v",
        "2 app suspended app=org.a vendor=org.v > vendor org.v",
        "3 app uninstalled app=org.a vendor=org.v > vendor org.v",
      ])
  }

  @Test func `a changed manifest is no new installation and causes no event`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v")])
    try life.ask(.get(.installation, app: nil), as: peer("org.a"))
    var manifest = Manifest("org.v", device: .app, unit: "a.service")
    manifest.accessGroups = ["g"]
    manifest.versionOrder = .linux
    let last = life.registry.lastEvent
    #expect(
      life.install(["org.a": manifest])
        == [.appUpdated("org.a", App(installed: Timestamp(milliseconds: 1), manifest: manifest, folder: folder))])
    #expect(life.registry.lastEvent == last)
    #expect(life.spoken(.installation("org.a")) == "r1")
  }

  @Test func `an uninstallation ends the installation identifier, and the last one the vendor's`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.v")])
    for level in [Level.installation, .vendor] { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    let last = life.registry.lastEvent
    life.install(["org.b": Manifest("org.v")])
    #expect(life.spoken(.vendor("org.v")) == "r2")
    life.install([:])
    #expect(life.spoken(.vendor("org.v")) == nil)
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) app suspended app=org.a vendor=org.v > vendor org.v",
        "\(last + 2) installation ended value=r1 cause=uninstalled app=org.a vendor=org.v > app org.a",
        "\(last + 3) app uninstalled app=org.a vendor=org.v > vendor org.v",
        "\(last + 4) app suspended app=org.b vendor=org.v > vendor org.v",
        "\(last + 5) app uninstalled app=org.b vendor=org.v > vendor org.v",
        "\(last + 6) vendor ended value=r2 cause=uninstalled vendor=org.v > vendor org.v",
      ])
  }

  @Test func `the last app of a vendor that changes its vendor ends the former vendor's identifier`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v"), "org.b": Manifest("org.w")])
    for level in [Level.installation, .vendor] { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    try life.ask(.get(.vendor, app: nil), as: peer("org.b"))
    life.install(["org.a": Manifest("org.w"), "org.b": Manifest("org.w")])
    #expect(life.spoken(.vendor("org.v")) == nil)
    #expect(life.spoken(.installation("org.a")) == "r1")
    #expect(try life.ask(.get(.vendor, app: nil), as: peer("org.a"))[0].hasPrefix("OK r3 "))
  }

  @Test(
    arguments: [
      // One app of the vendor replaces another.
      ["org.b": Manifest("org.v")], ["org.0": Manifest("org.v")],
      // Two apps exchange their vendors, so neither vendor is ever without an app.
      ["org.a": Manifest("org.w"), "org.z": Manifest("org.v")],
    ] as [[Text: Manifest]])
  func `a vendor that has an app before and after a survey keeps its identifier`(after: [Text: Manifest]) throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v"), "org.z": Manifest("org.w")])
    try life.ask(.get(.vendor, app: nil), as: peer("org.a"))
    life.install(after)
    #expect(life.spoken(.vendor("org.v")) == "r1")
  }

  @Test func `a survey that ends after any of its transactions is completed by the next one`() throws {
    var life = Life()
    let apps = 0..<700
    life.install(Dictionary(uniqueKeysWithValues: apps.map { (Text("org.a\($0)"), Manifest(Text("org.v\($0 / 2)"))) }))
    for app in stride(from: 0, to: apps.count, by: 50) {
      try life.ask(.get(.vendor, app: nil), as: peer(Text("org.a\(app)")))
    }
    let survey = ManifestSurvey.found(["org.b": .init(file: "b.app", manifest: Manifest("org.v25"))], faults: [])
    let transactions = life.registry.reconciliation(
      with: survey, life.registry.manifests(after: survey), refused: [], at: Timestamp(milliseconds: life.now))
    #expect(transactions.map { $0.count >= Bound.changesPerSurveyCommit } == [true, false])
    for count in 0...transactions.count {
      var interrupted = life
      interrupted.take(transactions.prefix(count).flatMap(\.self))
      interrupted.survey(survey)
      #expect(interrupted.registry.apps.filter { $0.value.suspended == nil }.map(\.key) == ["org.b"])
      #expect(interrupted.registry.apps.count == 701)
      #expect(interrupted.registry.scopes == life.registry.scopes)
    }
  }

  @Test func `a survey does not affect apps without a manifest`() throws {
    var life = Life()
    try life.ask(.get(.vendor, app: nil), as: alice)
    #expect(life.install([:]) == [])
    #expect(life.install(["org.a": Manifest("org.v")]).count == 1)
    #expect(life.registry.apps.keys.sorted() == ["org.a", "user:1000"])
  }

  @Test func `a failed survey changes nothing and keeps the claims`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", unit: "a.service")])
    try life.ask(.get(.installation, app: nil), as: alice)
    let before = life.registry
    #expect(life.survey(.unreadable("/etc: I/O error")) == [])
    #expect(life.registry == before)
    let entries = life.registry.manifests(after: .unreadable("/etc: I/O error"))
    #expect(entries.mapValues(\.manifest) == ["org.a": Manifest("org.v", unit: "a.service")])
    var claims = AppClaims()
    _ = claims.insert(entries)
    #expect(claims.app(unit: "a.service", userID: 1, UserRanges()) == "org.a")
  }

  @Test func `an app with a faulty manifest keeps its state, and a new one is not installed`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", unit: "a.service")])
    try life.ask(.get(.installation, app: nil), as: peer("org.a"))
    let survey = ManifestSurvey.found(
      ["org.a": .init(file: "/etc/a.app", manifest: nil), "org.b": .init(file: "/etc/b.app", manifest: nil)],
      faults: ["/etc/a.app:1: what?", "/etc/b.app:1: what?"])
    let before = life.registry
    #expect(life.survey(survey) == [])
    #expect(life.registry == before)
    #expect(
      life.registry.manifests(after: survey)
        == ["org.a": .init(file: "/etc/a.app", manifest: Manifest("org.v", unit: "a.service"))])
  }

  @Test func `of two conflicting manifests, the installed app stays unchanged and the other waits`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", unit: "a.service")])
    try life.ask(.get(.vendor, app: nil), as: peer("org.a"))
    #expect(
      life.install([
        "org.a": Manifest("org.w", unit: "b.service"), "org.b": Manifest("org.v", unit: "b.service"),
        "org.c": Manifest("org.v"),
      ])
        == [
          .appInstalled(
            "org.c", App(installed: Timestamp(milliseconds: 3), manifest: Manifest("org.v"), folder: folder))
        ])
    #expect(life.registry.vendor(of: "org.a") == "org.v")
    life.install(["org.a": Manifest("org.w", unit: "a.service"), "org.b": Manifest("org.v", unit: "b.service")])
    #expect(life.registry.apps.keys.sorted() == ["org.a", "org.b"])
    #expect(life.registry.vendor(of: "org.a") == "org.w")
  }

  @Test func `an app whose manifest was refused and then removed is uninstalled`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", unit: "a.service")])
    life.install(["org.a": Manifest("org.v", unit: "a.service"), "org.b": Manifest("org.v", unit: "a.service")])
    #expect(life.install(["org.b": Manifest("org.v", unit: "a.service")]).count == 3)
    #expect(life.registry.apps.keys.sorted() == ["org.b"])
  }
}

struct ForgetTests {
  @Test func `an app without a manifest may forget itself, which ends its vendor`() throws {
    var life = Life()
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: alice) }
    #expect(try life.ask(.forget(app: "user:1000"), as: alice) == ["OK"])
    #expect(life.registry.apps.count == 0)
    #expect(life.registry.scopes == [.device])
    for identifier in life.registry.history {
      #expect(identifier.end?.cause == (identifier.scope == .device ? nil : .uninstalled))
    }
  }

  @Test(arguments: ["user:1000", "user:1001", "org.a", ""] as [Text])
  func `forgetting another app requires an admin, whether the app exists or not`(app: Text) throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v")])
    try life.ask(.get(.installation, app: nil), as: alice)
    let web = service("web", of: 1_000)
    let lacking = Refusal.denied(
      app: "unit:web.service@1000", userID: 1_000, grant: "admin rights to forget another app")
    #expect(life.refusal(of: .forget(app: app), as: web) == lacking)
  }

  @Test func `an admin can forget any app without a manifest`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    #expect(try life.ask(.forget(app: "user:1000"), as: root) == ["OK"])
    #expect(life.refusal(of: .forget(app: "user:1000"), as: root)?.isNotFound == true)
  }

  @Test func `forgetting an app with a manifest is a conflict`() {
    var life = Life()
    life.install(["org.a": Manifest("org.v")])
    let conflict = Refusal.conflict("org.a is installed by its manifest; remove the manifest to uninstall the app")
    for peer in [peer("org.a"), root] { #expect(life.refusal(of: .forget(app: "org.a"), as: peer) == conflict) }
  }

  @Test func `forgetting an app that is not installed is not found`() {
    #expect(Life().refusal(of: .forget(app: "user:1000"), as: alice)?.isNotFound == true)
  }

  @Test func `a contained peer can forget only itself, whatever its user`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    let inside = Peer(
      userID: 1_000, groupID: 1_000, processID: 9, place: PeerPlace(unit: nil, container: "box"), isAdmin: false)
    try life.ask(.get(.installation, app: nil), as: inside)
    #expect(life.refusal(of: .forget(app: "user:1000"), as: inside)?.isDenied == true)
    #expect(try life.ask(.forget(app: "container:box"), as: inside) == ["OK"])
  }
}
