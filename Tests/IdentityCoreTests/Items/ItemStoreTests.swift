import IdentityCore
import Testing

struct ItemStoreTests {
  @Test func `an added item is read with its secret and its description`() throws {
    var life = Life()
    let add = RegistryCommand.add("mail", "alice", "geheim", label: "my mail", attributes: ["color": "red"])
    #expect(try life.ask(add, as: alice) == ["OK"])
    #expect(
      try life.ask(.read("mail", "alice"), as: alice) == [
        "OK data=geheim service=mail account=alice group=user:1000 label=my mail attr.color=red created=t1 modified=t1"
      ])
  }

  @Test func `put tells whether it created or replaced the item`() throws {
    var life = Life()
    #expect(try life.ask(.put("s", "a", "one"), as: alice) == ["OK created"])
    #expect(try life.ask(.put("s", "a", "two"), as: alice) == ["OK replaced"])
    #expect(
      try life.ask(.read("s"), as: alice)
        == ["OK data=two service=s account=a group=user:1000 created=t1 modified=t2"])
    #expect(life.itemKeys == ["user:1000/s/a"])
  }

  @Test(arguments: ["x", "other"])
  func `adding an existing item is refused and changes nothing`(secret: String) throws {
    var life = Life()
    try life.ask(.add("s", label: "first"), as: alice)
    let before = life.registry
    let exists = Refusal.exists("group user:1000 already has this item; use 'item put' to replace it")
    #expect(life.refusal(of: .add("s", "a", secret, label: "second"), as: alice) == exists)
    #expect(life.refusal(of: .add("s", "a", secret, in: "user:1000"), as: root) == exists)
    #expect(life.registry == before)
  }

  @Test func `items are distinguished by group, service and account, byte by byte`() throws {
    var life = Life.withThreeApps()
    let keys: [(Text, Text, Text?)] = [
      ("s", "a", nil), ("s", "b", nil), ("t", "a", nil), ("s", "a", "org.shared"), ("S", "a", nil), ("s", "A", nil),
      ("a", "s", nil), ("\u{e9}", "a", nil), ("e\u{301}", "a", nil), ("K", "a", nil), ("\u{212A}", "a", nil),
    ]
    for (index, (service, account, group)) in keys.enumerated() {
      #expect(try life.ask(.add(service, account, "\(index)", in: group), as: orgA) == ["OK"])
    }
    for (index, (service, account, group)) in keys.enumerated() {
      let answer = try life.ask(.read(service, account, in: group), as: orgA)[0]
      #expect(answer.hasPrefix("OK data=\(index) "))
    }
  }

  @Test func `put replaces the whole description of an item`() throws {
    var life = Life()
    try life.ask(
      .put("s", label: "l", attributes: ["a": "1", "b": "2"], onlyHere: true, whileInstalled: true), as: alice)
    #expect(
      try life.ask(.find(), as: alice)[0]
        == "* service=s account=a group=user:1000 label=l attr.a=1 attr.b=2 created=t1 modified=t1 this-device-only=yes lifetime=installation"
    )
    try life.ask(.put("s", attributes: ["c": "3"]), as: alice)
    #expect(
      try life.ask(.find(), as: alice)[0] == "* service=s account=a group=user:1000 attr.c=3 created=t1 modified=t3")
    try life.ask(.put("s", whileInstalled: true), as: alice)
    #expect(
      try life.ask(.find(), as: alice)[0]
        == "* service=s account=a group=user:1000 created=t1 modified=t5 lifetime=installation")
  }

  @Test func `a replaced item keeps its number and creation time and gets a new edition`() throws {
    var life = Life()
    try life.ask(.add("s"), as: alice)
    let first = try #require(life.item("s", in: "user:1000"))
    try life.ask(.add("t"), as: alice)
    try life.ask(.put("s", "a", "longer"), as: alice)
    let second = try #require(life.item("s", in: "user:1000"))
    #expect(second.number == first.number)
    #expect(second.created == first.created)
    #expect(second.modified == Timestamp(milliseconds: 3))
    #expect(second.edition != first.edition)
    #expect(second.secretLength == 6)
    #expect(life.registry.items.lastNumber == 2)
  }

  @Test func `empty labels and attributes are not stored`() throws {
    var life = Life()
    try life.ask(.add("s", label: "", attributes: ["a": "", "b": "2", "c": ""]), as: alice)
    let item = try #require(life.item("s", in: "user:1000"))
    #expect(item.label == nil)
    #expect(item.attributes == Item.attributes(["b": "2"]))
    try life.ask(.put("s", label: "l", attributes: ["b": "2"]), as: alice)
    try life.ask(.put("s", label: "", attributes: ["b": ""]), as: alice)
    #expect(
      try life.ask(.find(), as: alice)[0] == "* service=s account=a group=user:1000 created=t1 modified=t3")
  }

  @Test func `attributes are sorted by name`() throws {
    var life = Life()
    try life.ask(.add("s", attributes: ["b": "1", "a.z": "2", "a": "3", "a-z": "4", "c": ""]), as: alice)
    let names = try #require(life.item("s", in: "user:1000")).attributes.map { "\($0.name)" }
    #expect(names == ["a", "a-z", "a.z", "b"])
  }

  @Test(arguments: [false, true])
  func `an item can have the maximum number of attributes`(replaces: Bool) throws {
    var life = Life()
    if replaces { try life.ask(.add("s"), as: alice) }
    // An empty attribute is not stored, so it does not count.
    let attributes = Item.attributes(count: Bound.attributesPerItem) + Item.attributes(["none": ""])
    let command = RegistryCommand.storeItem(
      ItemName(service: "s", account: "a", group: nil), SealedSecret("x"), ItemDescription(attributes: attributes),
      replaces: replaces)
    try life.ask(command, as: alice)
    #expect(life.item("s", in: "user:1000")?.attributes.count == Bound.attributesPerItem)
  }

  @Test func `a stored secret is passed on unchanged, with the edition that it belongs to`() throws {
    let life = Life.withThreeApps()
    let decision = try life.registry.decide(.add("s", "a", "geheim"), life.context(orgA))
    guard case .itemStored(let item, let secret, .added)? = decision.changes.first else {
      Issue.record("\(decision.changes)")
      return
    }
    #expect(decision.changes.count == 1)
    #expect(secret == SealedSecret("geheim"))
    #expect(item.secretLength == 6)
    #expect(item.owner == "org.a")
    #expect(item.key == ItemKey(group: "org.a", service: "s", account: "a"))
  }

  @Test func `each change makes a new edition`() throws {
    var life = Life()
    var editions: Set<UUID> = []
    for command in [.add("s"), .put("s"), .put("s"), .update("s", label: "l"), .update("s", "a", "y")]
      as [RegistryCommand]
    {
      try life.ask(command, as: alice)
      editions.insert(try #require(life.item("s", in: "user:1000")).edition)
    }
    #expect(editions.count == 5)
  }

  @Test func `item numbers ascend and are not reused`() throws {
    var life = Life()
    for service in ["s", "t"] as [Text] { try life.ask(.add(service), as: alice) }
    try life.ask(.delete("t"), as: alice)
    try life.ask(.add("t"), as: alice)
    try life.ask(.delete(in: .named("user:1000")), as: alice)
    try life.ask(.add("s"), as: bob)
    #expect(life.item("s", in: "user:1001")?.number == 4)
  }
}

struct ItemFirstUseTests {
  @Test func `the first item installs an app without a manifest`() throws {
    var life = Life()
    try life.ask(.add("s"), as: alice)
    try life.ask(.add("t"), as: alice)
    #expect(Array(life.registry.apps.keys) == ["user:1000"])
    #expect(life.registry.apps["user:1000"] == App(installed: Timestamp(milliseconds: 1)))
    #expect(
      life.told() == [
        "1 app installed app=user:1000 vendor=user:1000 > vendor user:1000",
        "2 item added group=user:1000 service=s account=a > group user:1000",
        "3 item added group=user:1000 service=t account=a > group user:1000",
      ])
  }

  @Test func `an item does not install an app with a manifest again`() throws {
    var life = Life.withThreeApps()
    let before = life.registry.apps
    try life.ask(.put("s"), as: orgA)
    #expect(life.registry.apps == before)
  }

  @Test func `an admin's item installs the admin's app, not the one of the group`() throws {
    var life = Life()
    try life.ask(.add("s", in: "user:1000"), as: root)
    #expect(Array(life.registry.apps.keys) == ["user:0"])
    #expect(life.item("s", in: "user:1000")?.owner == "user:0")
  }

  @Test(arguments: [.read("s"), .find(), .update("s"), .delete("s")] as [RegistryCommand])
  func `a request that finds nothing installs nothing`(command: RegistryCommand) {
    #expect(Life().refusal(of: command, as: alice)?.isNotFound == true)
  }

  @Test(
    arguments: [
      .add("s"), .add("t", in: "org.a"), .add("t", "a", "too much"), .put("s", "a", "too much"),
    ] as [RegistryCommand])
  func `a refused request installs nothing`(command: RegistryCommand) throws {
    var life = Life()
    try life.ask(.add("s", in: "user:1000"), as: root)
    life.limits.items.perUser.bytes = 12
    let before = life.registry
    #expect(life.refusal(of: command, as: alice) != nil)
    #expect(throws: Refusal.self) { try life.ask(command, as: alice) }
    #expect(life.registry == before)
  }

  @Test func `an item cannot exceed the limit of apps per user`() throws {
    var life = Life()
    life.limits.appsPerUser = 8
    for number in 0..<8 { try life.ask(.add("s"), as: service("s\(number)", of: 1_000)) }
    #expect(life.refusal(of: .add("s"), as: service("one-more", of: 1_000))?.isLimit == true)
    #expect(life.refusal(of: .add("t"), as: service("s7", of: 1_000)) == nil)
    #expect(life.refusal(of: .add("s"), as: service("one-more", of: 1_001)) == nil)
  }
}
