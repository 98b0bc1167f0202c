import IdentityCore
import Testing

struct ItemEventTests {
  @Test func `item events name the item but not its secret or description`() throws {
    var life = Life.withThreeApps()
    let last = life.registry.lastEvent
    try life.ask(.add("s", "a", "geheim", label: "private", attributes: ["k": "hidden"]), as: orgA)
    try life.ask(.put("s", "a", "anders"), as: orgA)
    try life.ask(.put("t", in: "org.shared"), as: orgA)
    try life.ask(.update("s", label: "private"), as: orgA)
    try life.ask(.delete("s"), as: orgA)
    try life.ask(.add("s", "a b"), as: orgA)
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) item added group=org.a service=s account=a > group org.a",
        "\(last + 2) item replaced group=org.a service=s account=a > group org.a",
        "\(last + 3) item added group=org.shared service=t account=a > group org.shared",
        "\(last + 4) item updated group=org.a service=s account=a > group org.a",
        "\(last + 5) item deleted group=org.a service=s account=a > group org.a",
        "\(last + 6) item added group=org.a service=s account=a b > group org.a",
      ])
  }

  @Test func `deleting several items causes an event for each, in the order of the keys`() throws {
    var life = Life.withThreeApps()
    for account in ["c", "a", "b"] as [Text] { try life.ask(.add("s", account), as: orgA) }
    let last = life.registry.lastEvent
    try life.ask(.delete("s"), as: orgA)
    #expect(
      life.told(from: last + 1)
        == ["a", "b", "c"].enumerated().map { index, account in
          "\(last + 1 + Int64(index)) item deleted group=org.a service=s account=\(account) > group org.a"
        })
  }

  @Test(
    arguments: [
      .add("s"), .read("t"), .find("t"), .update("t"), .delete("t"), .put("s", in: "org.media"), .read("s"), .find(),
      .add("t", "a", "too much, by far"),
    ] as [RegistryCommand])
  func `refused requests and requests without an effect take no sequence number`(command: RegistryCommand) throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s"), as: orgA)
    life.limits.items.perApp.bytes = 20
    life.limits.items.perUser.bytes = 20
    let last = life.registry.lastEvent
    _ = try? life.ask(command, as: orgA)
    #expect(life.registry.lastEvent == last)
  }

  @Test(
    arguments: [
      // The group, and the apps that receive its events.
      ("org.a", ["org.a"]), ("org.b", ["org.b"]), ("org.shared", ["org.a", "org.b"]),
      ("org.media", ["org.b", "org.c"]), ("user:1000", ["user:1000"]), ("org.nobody", []),
      ("unit:s.service@1000", ["unit:s.service@1000"]),
    ] as [(Text, [Text])])
  func `item events go to the apps that may use the group, and to admins`(group: Text, listeners: [Text]) throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: group), as: root)
    let event = try #require(life.events.last)
    #expect(event.topic == .item && event.audience == .group(group))
    let peers = [orgA, orgB, orgC, alice, bob, service("s", of: 1_000), peer("org.v"), peer("org.gone")]
    #expect(peers.filter { life.registry.may($0, see: event.audience) }.map(\.app) == listeners)
    #expect(life.registry.may(root, see: event.audience))
  }

  @Test func `the current rights decide about an event, not those at its time`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.shared"), as: orgA)
    let audience = try #require(life.events.last).audience
    life.install(["org.a": Manifest("org.v"), "org.c": Manifest("org.w", groups: ["org.shared"])])
    #expect(!life.registry.may(orgA, see: audience))
    #expect(!life.registry.may(orgB, see: audience))
    #expect(life.registry.may(orgC, see: audience))
  }

  @Test func `an uninstalled app gets no events of its group until it is installed again`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", whileInstalled: true), as: orgA)
    life.install([:])
    #expect(!life.registry.may(orgA, see: .group("org.a")))
    life.install(["org.a": Manifest("org.v")])
    #expect(life.registry.may(orgA, see: .group("org.a")))
  }

  @Test func `an app with its own device identifier gets item events too`() {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app, groups: ["org.g"])])
    for group in ["org.a", "org.g"] as [Text] { #expect(life.registry.may(orgA, see: .group(group))) }
  }
}

struct ItemSnapshotTests {
  private func life() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    try life.ask(.add("z", "a", "geheim", label: "l", attributes: ["k": "v"]), as: orgB)
    try life.ask(.add("a", in: "org.shared"), as: orgA)
    try life.ask(.add("m", in: "org.media"), as: orgC)
    try life.ask(.add("s"), as: alice)
    try life.ask(.put("z"), as: orgB)
    return life
  }

  @Test(
    arguments: [
      (orgA, ["org.shared service=a"]),
      (orgB, ["org.b service=z", "org.media service=m", "org.shared service=a"]),
      (orgC, ["org.media service=m"]), (alice, ["user:1000 service=s"]), (bob, []), (peer("org.gone"), []),
      (root, ["org.b service=z", "org.media service=m", "org.shared service=a", "user:1000 service=s"]),
    ] as [(Peer, [String])])
  func `a snapshot has the items of the peer's groups, in the order of the keys`(
    peer: Peer, expected: [String]
  ) throws {
    let life = try life()
    #expect(
      life.lines(life.registry.snapshot(of: [.item], for: peer))
        == expected.map { "* item group=\($0) account=a" })
  }

  @Test func `a snapshot has items only if the topic was requested`() throws {
    let life = try life()
    let others = Set(Topic.allCases).subtracting([.item])
    #expect(!life.lines(life.registry.snapshot(of: others, for: root)).contains { $0.hasPrefix("* item") })
    #expect(
      life.lines(life.registry.snapshot(of: Set(Topic.allCases), for: root)).count { $0.hasPrefix("* item") } == 4)
  }

  @Test func `a row has the attributes of the event about its item`() throws {
    let life = try life()
    let told = life.events.filter { $0.topic == .item && $0.name == "added" }
      .map { "* item" + $0.attributes.map { " \($0.name)=\($0.value)" }.joined() }
    #expect(life.lines(life.registry.snapshot(of: [.item], for: root)) == told.sorted())
  }

  @Test func `deleted and ended items are not in the snapshot`() throws {
    var life = try life()
    try life.ask(.delete("z"), as: orgB)
    life.install(["org.b": Manifest("org.v", groups: ["org.media"])])
    #expect(
      life.lines(life.registry.snapshot(of: [.item], for: orgB)) == ["* item group=org.media service=m account=a"])
  }
}
