import IdentityCore
import Testing

struct ItemLifetimeTests {
  @Test func `an uninstallation deletes the items with lifetime=installation, and the others stay`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("ends", whileInstalled: true), as: orgA)
    try life.ask(.add("stays"), as: orgA)
    try life.ask(.add("ends", in: "org.shared", whileInstalled: true), as: orgA)
    try life.ask(.add("stays", in: "org.shared", onlyHere: true), as: orgA)
    try life.ask(.add("others", in: "org.shared", whileInstalled: true), as: orgB)
    let last = life.registry.lastEvent
    let ending = ["org.a", "org.shared"].compactMap { group in
      life.registry.items[ItemKey(group: group, service: "ends", account: "a")]
    }
    let changes = life.install(["org.b": Manifest("org.v", groups: ["org.shared"])])
    let others = changes.filter { if case .appUpdated = $0 { false } else { true } }
    #expect(others.prefix(3) == ending.map { Change.itemDeleted($0) } + [.appUninstalled("org.a")])
    #expect(life.itemKeys == ["org.a/stays/a", "org.shared/stays/a", "org.shared/others/a"])
    #expect(
      life.told(from: last + 1).prefix(5) == [
        "\(last + 1) app suspended app=org.a vendor=org.v > vendor org.v",
        "\(last + 2) app suspended app=org.c vendor=org.w > vendor org.w",
        "\(last + 3) item deleted group=org.a service=ends account=a > group org.a",
        "\(last + 4) item deleted group=org.shared service=ends account=a > group org.shared",
        "\(last + 5) app uninstalled app=org.a vendor=org.v > vendor org.v",
      ])
    life.install([:])
    #expect(life.itemKeys == ["org.a/stays/a", "org.shared/stays/a"])
  }

  @Test func `a reinstallation restores no deleted item`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("ends", whileInstalled: true), as: orgA)
    try life.ask(.add("stays"), as: orgA)
    life.install([:])
    life.install(["org.a": Manifest("org.v")])
    #expect(life.refusal(of: .read("ends"), as: orgA)?.isNotFound == true)
    #expect(life.refusal(of: .read("stays"), as: orgA) == nil)
    try life.ask(.add("ends"), as: orgA)
    life.install([:])
    #expect(life.itemKeys == ["org.a/stays/a", "org.a/ends/a"])
  }

  @Test(arguments: [alice, root])
  func `forgetting an app deletes its items with lifetime=installation`(peer: Peer) throws {
    var life = Life()
    try life.ask(.add("ends", whileInstalled: true), as: alice)
    try life.ask(.add("stays"), as: alice)
    try life.ask(.get(.installation, app: nil), as: alice)
    let last = life.registry.lastEvent
    #expect(try life.ask(.forget(app: "user:1000"), as: peer) == ["OK"])
    #expect(life.itemKeys == ["user:1000/stays/a"])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) item deleted group=user:1000 service=ends account=a > group user:1000",
        "\(last + 2) installation ended value=r3 cause=uninstalled app=user:1000 vendor=user:1000 > app user:1000",
        "\(last + 3) app uninstalled app=user:1000 vendor=user:1000 > vendor user:1000",
      ])
  }

  @Test func `of a user's services only the forgotten one loses its items`() throws {
    var life = Life()
    for name in ["one", "two"] { try life.ask(.add("s", whileInstalled: true), as: service(name, of: 1_000)) }
    try life.ask(.forget(app: "unit:one.service@1000"), as: alice)
    #expect(life.itemKeys == ["unit:two.service@1000/s/a"])
  }

  @Test func `the lifetime of an item is that of its last put`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.shared", whileInstalled: true), as: orgA)
    try life.ask(.put("s", in: "org.shared", whileInstalled: true), as: orgB)
    try life.ask(.add("t", in: "org.shared", whileInstalled: true), as: orgA)
    try life.ask(.update("t", in: "org.shared", label: "l"), as: orgB)
    try life.ask(.add("u", in: "org.shared", whileInstalled: true), as: orgA)
    try life.ask(.put("u", in: "org.shared"), as: orgA)
    life.install(["org.b": Manifest("org.v", groups: ["org.shared"])])
    #expect(life.itemKeys == ["org.shared/s/a", "org.shared/u/a"])
    life.install([:])
    #expect(life.itemKeys == ["org.shared/u/a"])
  }

  @Test func `an item that an admin puts into an app's own group ends with that app`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.a", whileInstalled: true), as: root)
    try life.ask(.add("s", in: "org.shared", whileInstalled: true), as: root)
    life.install([:])
    #expect(life.itemKeys == ["org.shared/s/a"])
    try life.ask(.forget(app: "user:0"), as: root)
    #expect(life.itemKeys == [])
  }

  @Test func `no item ends while it is uncertain whether the app is gone`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", whileInstalled: true), as: orgA)
    life.survey(.unreadable("/etc: I/O error"))
    life.survey(.found(["org.a": .init(file: "/etc/a.app", manifest: nil)], faults: ["/etc/a.app:1: what?"]))
    life.install(["org.a": Manifest("org.w", unit: "a.service")])
    life.install(["org.a": Manifest("org.w", unit: "b.service"), "org.z": Manifest("org.w", unit: "b.service")])
    #expect(life.itemKeys == ["org.a/s/a"])
  }

  @Test func `the end of an installation makes room in the quota`() throws {
    var life = Life()
    life.limits.items.perApp.items = 1
    try life.ask(.add("s", whileInstalled: true), as: alice)
    try life.ask(.forget(app: "user:1000"), as: alice)
    try life.ask(.add("t"), as: alice)
    #expect(life.registry.items.total.items == 1)
  }

  @Test func `a new installation identifier does not end the items`() throws {
    var life = Life()
    try life.ask(.add("s", whileInstalled: true), as: alice)
    try life.ask(.renew(.installation, app: "user:1000", dryRun: false), as: root)
    try life.start("m", "h")
    try life.start("n", "i", onHardwareChange: .renew)
    #expect(life.itemKeys == ["user:1000/s/a"])
  }
}
