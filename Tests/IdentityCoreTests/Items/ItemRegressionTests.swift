import IdentityCore
import Testing

/// Regression tests: faults that the rules of items once had.
struct ItemRegressionTests {
  // MARK: Unlimited attributes

  private func store(_ attributes: [Item.Attribute], replaces: Bool) -> RegistryCommand {
    .storeItem(
      ItemName(service: "s", account: "a", group: nil), SealedSecret("x"), ItemDescription(attributes: attributes),
      replaces: replaces)
  }

  @Test(arguments: [false, true], [false, true])
  func `add and put refuse too many attributes too`(replaces: Bool, isThere: Bool) throws {
    guard replaces || !isThere else { return }
    var life = Life()
    if isThere { try life.ask(.put("s"), as: alice) }
    let attributes = Item.attributes(count: Bound.attributesPerItem + 1)
    #expect(
      life.refusal(of: store(attributes, replaces: replaces), as: alice)
        == .limit("an item has at most 64 attributes"))
  }

  @Test func `the number of attributes of an existing item can always be reduced`() throws {
    var life = Life()
    // The item is refused at first. If it is ever accepted, updates must work: once, no update could
    // reduce its attributes.
    guard (try? life.ask(store(Item.attributes(count: 70), replaces: false), as: alice)) != nil else { return }
    #expect(life.refusal(of: .update("s", attributes: ["a0": "", "a1": ""]), as: alice) == nil)
    #expect(life.refusal(of: .update("s", "a", "new"), as: alice) == nil)
  }

  // MARK: Charging the wrong app

  /// Returns a `Life` in which the first app may use the second app's own group. Each app may have one item
  /// of at most 20 bytes.
  private func life() -> Life {
    var life = Life()
    life.install(["org.a": Manifest("org.v", groups: ["org.b"]), "org.b": Manifest("org.w")])
    life.limits.items.perApp.items = 1
    life.limits.items.perApp.bytes = 20
    return life
  }

  @Test func `an app that adds to another app's group is charged, not the other app`() throws {
    var life = life()
    try life.ask(.add("s", in: "org.b"), as: orgA)
    #expect(life.item("s", in: "org.b")?.owner == "org.a")
    #expect(life.refusal(of: .add("t"), as: orgB) == nil)
    #expect(
      life.refusal(of: .add("t"), as: orgA)
        == .limit("org.a may have 1 items at most now ([Limits] ItemsPerApp=); delete items first"))
  }

  @Test func `an app that replaces another app's item is charged, not the other app`() throws {
    var life = life()
    try life.ask(.add("s"), as: orgB)
    try life.ask(.put("s", "a", "12345678", in: "org.b"), as: orgA)
    #expect(life.item("s", in: "org.b")?.owner == "org.a")
    #expect(life.refusal(of: .add("t"), as: orgB) == nil)
  }

  @Test func `an item with lifetime=installation in another app's group ends with its owner`() throws {
    var life = life()
    try life.ask(.add("s", in: "org.b", whileInstalled: true), as: orgA)
    life.install(["org.b": Manifest("org.w")])
    #expect(life.itemKeys == [])
  }

  // MARK: Deleting too much

  /// Returns a `Life` with item `s`/`a` in each of four groups.
  private func fourGroups() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    for (app, group) in [(orgA, nil), (orgA, "org.shared"), (orgB, nil), (orgB, "org.media")] as [(Peer, Text?)] {
      try life.ask(.add("s", "a", in: group, label: "l"), as: app)
    }
    return life
  }

  @Test(
    arguments: [
      .delete(in: .all), .delete("s", in: .all), .delete("s", "a", in: .all), .delete(in: .all, label: "l"),
    ] as [RegistryCommand], [orgA, orgB, root])
  func `delete with * as a group deletes nothing`(command: RegistryCommand, peer: Peer) throws {
    var life = try fourGroups()
    let before = life.itemKeys
    _ = try? life.ask(command, as: peer)
    #expect(life.itemKeys == before)
  }

  @Test func `a delete without a condition deletes nothing`() throws {
    var life = try fourGroups()
    let before = life.itemKeys
    _ = try? life.ask(.delete(), as: orgA)
    #expect(life.itemKeys == before)
  }

  // MARK: The wrong refusal

  @Test(arguments: RegistryCommand.everyItemVerb(in: "org.a"))
  func `an uninstalled app is told so, even if it names its own group`(command: RegistryCommand) {
    var life = Life.withThreeApps()
    life.install([:])
    #expect(life.refusal(of: command, as: orgA) == .notFound("org.a is no longer installed"))
  }
}
