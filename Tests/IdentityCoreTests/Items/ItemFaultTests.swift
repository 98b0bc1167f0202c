import IdentityCore
import Testing

private let why = "the master key of the items is not there"

struct ItemFaultTests {
  /// Returns a `Life` without the items' key. One app has two items, one of which ends with its installation.
  private func life() throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    try life.ask(.add("s", "a", "55555555555545558555000000000001"), as: orgA)
    try life.ask(.add("ends", whileInstalled: true), as: orgA)
    life.registry.itemFault = why
    return life
  }

  @Test(arguments: [nil, "org.a", "org.shared", "org.media", "org.nobody"] as [Text?], [orgA, alice, root])
  func `without the key all item requests are refused, for every peer`(group: Text?, peer: Peer) throws {
    let life = try life()
    for command in RegistryCommand.everyItemVerb(in: group) + [.find(in: .all)] {
      #expect(life.refusal(of: command, as: peer) == .unavailable(why))
      #expect(throws: Refusal.unavailable(why)) { try life.registry.answer(command, for: peer) }
    }
  }

  @Test func `with the key all items are available again`() throws {
    var life = try life()
    life.registry.itemFault = nil
    #expect(try life.ask(.find(), as: orgA).last == "OK 2")
    #expect(try life.ask(.read("ends"), as: orgA)[0].hasPrefix("OK data=x "))
  }

  @Test func `other requests work without the key`() throws {
    var life = try life()
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: alice) }
    try life.ask(.migrate(.device, given(1), app: nil, commits: true, forces: true), as: root)
    #expect(try life.ask(.apps, as: root).count == 5)
  }

  @Test func `uninstalling an app deletes its items even without the key`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    life.install([:])
    #expect(life.itemKeys == ["org.a/s/a"])
    #expect(
      life.told(from: last + 1).contains(
        "\(last + 4) item deleted group=org.a service=ends account=a > group org.a"))
  }

  @Test func `forgetting an app deletes its items even without the key`() throws {
    var life = Life()
    try life.ask(.add("ends", whileInstalled: true), as: alice)
    life.registry.itemFault = why
    #expect(try life.ask(.forget(app: "user:1000"), as: alice) == ["OK"])
    #expect(life.itemKeys == [])
  }

  @Test func `a seal deletes all items even without the key`() throws {
    var life = try life()
    try life.ask(.seal(dryRun: false), as: root)
    #expect(life.itemKeys == [])
  }

  @Test func `a snapshot has no items without the key`() throws {
    let life = try life()
    for peer in [orgA, root] { #expect(life.lines(life.registry.snapshot(of: [.item], for: peer)) == []) }
    #expect(!life.lines(life.registry.snapshot(of: Set(Topic.allCases), for: root)).isEmpty)
  }
}

struct ItemSealTests {
  @Test func `a seal deletes all items, with an event for each`() throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s", in: "org.shared"), as: orgA)
    try life.ask(.add("s"), as: alice)
    try life.ask(.add("s", "a", onlyHere: true, whileInstalled: true), as: orgB)
    try life.ask(.get(.device, app: nil), as: alice)
    let last = life.registry.lastEvent
    let decision = try life.registry.decide(.seal(dryRun: false), life.context(root))
    #expect(decision.changes.last == .sealed)
    #expect(decision.changes.count == 5)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(life.itemKeys == [])
    #expect(life.registry.items.total.items == 0 && life.registry.items.total.bytes == 0)
    #expect(
      life.told(from: last + 2) == [
        "\(last + 2) item deleted group=org.b service=s account=a > group org.b",
        "\(last + 3) item deleted group=org.shared service=s account=a > group org.shared",
        "\(last + 4) item deleted group=user:1000 service=s account=a > group user:1000",
      ])
  }

  @Test(arguments: [.add("s"), .put("s"), .add("s", in: "org.a")] as [RegistryCommand])
  func `a sealed store takes no item`(command: RegistryCommand) throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s"), as: root)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(
      life.refusal(of: command, as: root)
        == .unavailable("the store is sealed for a golden image; the next start of identityd begins a new store"))
  }

  @Test(
    arguments: [
      .read("s"), .find(), .find(in: .all), .update("s"), .delete("s"), .delete(in: .named("org.a")),
      .migrateFromItem(
        .device, ItemName(service: "s", account: "a", group: nil), app: nil, commits: true, forces: false),
    ] as [RegistryCommand])
  func `a sealed store has no items`(command: RegistryCommand) throws {
    var life = Life.withThreeApps()
    try life.ask(.add("s"), as: root)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(life.refusal(of: command, as: root)?.isNotFound == true)
  }
}
