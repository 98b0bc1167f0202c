import IdentityCore
import Testing

struct ItemUpdateTests {
  private static let before = "label=home attr.color=red attr.size=1"

  @Test(
    arguments: [
      // The update, then the item's secret, and its label and attributes afterwards.
      (.update("s", "a", "new"), "new", before),
      (.update("s", label: "work"), "old", "label=work attr.color=red attr.size=1"),
      (.update("s", label: ""), "old", "attr.color=red attr.size=1"),
      (.update("s", attributes: ["color": "blue"]), "old", "label=home attr.color=blue attr.size=1"),
      (.update("s", attributes: ["color": ""]), "old", "label=home attr.size=1"),
      (.update("s", attributes: ["color": "", "size": ""]), "old", "label=home"),
      (.update("s", attributes: ["shape": ""]), "old", before),
      (.update("s", attributes: ["shape": "round"]), "old", "label=home attr.color=red attr.shape=round attr.size=1"),
      (
        .update("s", "a", "new", label: "", attributes: ["size": "", "zone": "9", "alpha": "1"]), "new",
        "attr.alpha=1 attr.color=red attr.zone=9"
      ),
    ] as [(RegistryCommand, String, String)])
  func `update changes only the named properties`(command: RegistryCommand, secret: String, said: String) throws {
    var life = Life()
    let add = RegistryCommand.add(
      "s", "a", "old", label: "home", attributes: ["color": "red", "size": "1"], onlyHere: true, whileInstalled: true)
    try life.ask(add, as: alice)
    #expect(try life.ask(command, as: alice) == ["OK"])
    let said = "service=s account=a group=user:1000 \(said) created=t1 modified=t2"
    #expect(
      try life.ask(.read("s"), as: alice) == ["OK data=\(secret) \(said) this-device-only=yes lifetime=installation"])
    #expect(life.item("s", in: "user:1000")?.secretLength == secret.utf8.count)
  }

  @Test func `an update that names nothing changes nothing and causes no event`() throws {
    var life = Life()
    try life.ask(.add("s"), as: alice)
    let before = life.registry
    #expect(try life.ask(.update("s"), as: alice) == ["OK"])
    #expect(life.registry == before)
    #expect(life.refusal(of: .update("none"), as: alice) == .notFound("no such item is in group user:1000"))
  }

  @Test func `another app of the group may update an item, and its owner stays`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.shared", whileInstalled: true), as: orgA)
    let before = try #require(life.item("s", in: "org.shared"))
    try life.ask(.update("s", "a", "y", in: "org.shared"), as: orgB)
    let after = try #require(life.item("s", in: "org.shared"))
    #expect(after.owner == "org.a")
    #expect(after.endsWithInstallation)
    #expect(after.number == before.number && after.created == before.created)
    #expect(after.edition != before.edition && after.modified == Timestamp(milliseconds: 3))
  }

  @Test(arguments: [.update("t", label: "l"), .update("s", "b"), .update("s", in: "org.shared")] as [RegistryCommand])
  func `updating a missing item is not found`(command: RegistryCommand) throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s"), as: orgA)
    #expect(life.refusal(of: command, as: orgA)?.isNotFound == true)
  }

  @Test func `an update reuses the stored secret unless it brings a new one`() throws {
    var life = Life()
    try life.ask(.add("s", "a", "old"), as: alice)
    let before = try #require(life.item("s", in: "user:1000"))
    let refusal = Refusal.broken("opened \(before.edition)")
    let context = Context(
      peer: alice, in: life.surroundings, random: { () throws(Refusal) in given(1) },
      machine: { (_) throws(Refusal) in nil }, digest: { $0 }, fingerprint: { $0 },
      secret: { (item) throws(Refusal) in throw .broken("opened \(item.edition)") })
    #expect(throws: refusal) { try life.registry.decide(.update("s", label: "l"), context) }
    let decision = try life.registry.decide(.update("s", "a", "new"), context)
    guard case .itemStored(let item, let secret, .updated)? = decision.changes.first else {
      Issue.record("\(decision.changes)")
      return
    }
    #expect(secret == SealedSecret("new"))
    #expect(item.edition == given(1))
  }

  @Test(
    arguments: [
      // The attributes of the update, and whether they fit into an item with as many attributes as allowed.
      (Item.attributes(["a0": "w"]), true), (Item.attributes(["a0": "", "new": "v"]), true),
      (Item.attributes(["none": ""]), true), ([], true), (Item.attributes(["new": "v"]), false),
      (Item.attributes(["a0": "w", "new": "v"]), false), (Item.attributes(["a0": "", "n1": "v", "n2": "v"]), false),
    ] as [([Item.Attribute], Bool)])
  func `an update cannot exceed the maximum number of attributes`(named: [Item.Attribute], fits: Bool) throws {
    var life = Life()
    let name = ItemName(service: "s", account: "a", group: nil)
    let description = ItemDescription(attributes: Item.attributes(count: Bound.attributesPerItem))
    try life.ask(.storeItem(name, SealedSecret("x"), description, replaces: false), as: alice)
    let before = life.registry
    let command = RegistryCommand.updateItem(name, ItemUpdate(attributes: named))
    let refusal = Refusal.limit("an item has at most 64 attributes")
    #expect(life.refusal(of: command, as: alice) == (fits ? nil : refusal))
    #expect(life.registry == before)
  }

  @Test func `attributes stay sorted by name, each once`() throws {
    var life = Life()
    try life.ask(.add("s", attributes: ["d": "1", "b": "1"]), as: alice)
    try life.ask(.update("s", attributes: ["e": "2", "a": "2", "d": "2", "c": "2"]), as: alice)
    let attributes = try #require(life.item("s", in: "user:1000")).attributes
    #expect(attributes == Item.attributes(["a": "2", "b": "1", "c": "2", "d": "2", "e": "2"]))
  }
}
