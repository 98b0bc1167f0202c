import IdentityCore
import Testing

private func tooMany(_ holder: String, _ limit: Int = 2) -> Refusal {
  .limit(
    "\(holder) may have \(limit) items at most now ([Limits] \(isPrincipal(holder) ? "Items=, ItemsPerUser=" : "ItemsPerApp=")); delete items first"
  )
}

private func tooLarge(_ holder: String, _ limit: Int) -> Refusal {
  let settings = isPrincipal(holder) ? "ItemBytes=, ItemBytesPerUser=" : "ItemBytesPerApp="
  return .limit("the items of \(holder) may have \(limit) bytes at most now ([Limits] \(settings)); delete items first")
}

private func isPrincipal(_ holder: String) -> Bool { holder.hasPrefix("uid ") }

/// Returns a `Life` with three apps and these limits for each holder of items.
private func life(items: Int = 2, bytes: Int = 1_000_000) -> Life {
  var life = Life.withThreeApps()
  life.limits.items.perApp.items = items
  life.limits.items.perApp.bytes = bytes
  life.limits.items.perUser.items = items
  life.limits.items.perUser.bytes = bytes
  return life
}

struct ItemNumberQuotaTests {
  @Test func `the items of an app in all groups are limited, and the refusal names the limit`() throws {
    var life = life()
    try life.ask(.add("s"), as: orgB)
    try life.ask(.put("s", in: "org.shared"), as: orgB)
    let before = life.registry
    for command in [.add("t"), .put("t"), .add("t", in: "org.shared"), .put("t", in: "org.media")]
      as [RegistryCommand]
    {
      #expect(life.refusal(of: command, as: orgB) == tooMany("org.b"))
      #expect(life.registry == before)
    }
    #expect(
      life.refusal(of: .add("s"), as: orgB)
        == .exists("group org.b already has this item; use 'item put' to replace it"))
  }

  @Test func `replacing and updating need no room, and deleting makes room`() throws {
    var life = life()
    for service in ["s", "t"] as [Text] { try life.ask(.add(service), as: orgA) }
    try life.ask(.put("s", "a", "longer than before", label: "l"), as: orgA)
    try life.ask(.update("s", "a", "longer than before, and still longer"), as: orgA)
    try life.ask(.delete("s"), as: orgA)
    try life.ask(.add("u"), as: orgA)
    #expect(life.refusal(of: .add("s"), as: orgA) == tooMany("org.a"))
  }

  @Test func `each app with a manifest and each user has its own quota`() throws {
    var life = life()
    let peers = [orgA, orgB, alice, bob, root, service("s", of: 1_002)]
    for service in ["s", "t"] as [Text] {
      for peer in peers { try life.ask(.add(service), as: peer) }
    }
    for peer in peers { #expect(life.refusal(of: .add("u"), as: peer) != nil) }
    #expect(life.registry.items.total.items == 2 * peers.count)
  }

  @Test func `a user and the user's services share one quota`() throws {
    var life = life()
    try life.ask(.add("s"), as: alice)
    try life.ask(.add("s"), as: service("two", of: 1_000))
    for name in ["two", "three"] {
      let peer = service(name, of: 1_000)
      #expect(life.refusal(of: .add("t"), as: peer) == tooMany("uid 1000"))
      #expect(life.refusal(of: .add("s"), as: service(name, of: 1_001)) == nil)
    }
    #expect(life.refusal(of: .add("t"), as: alice) == tooMany("uid 1000"))
    #expect(life.refusal(of: .put("s"), as: alice) == nil)
    try life.ask(.delete("s"), as: alice)
    #expect(life.refusal(of: .add("t"), as: service("three", of: 1_000)) == nil)
  }

  @Test func `each system service has its own quota, even if its name resembles a user's`() throws {
    var life = life()
    for unit in ["x@1000.service", "y@1000.service"] as [Text] {
      let peer = Peer(userID: 0, groupID: 0, processID: 8, place: PeerPlace(unit: unit), isAdmin: false)
      for service in ["s", "t"] as [Text] { try life.ask(.add(service), as: peer) }
      #expect(life.refusal(of: .add("u"), as: peer) == tooMany("unit:\(unit)"))
    }
  }

  @Test func `items of an uninstalled app still count when it is installed again`() throws {
    var life = life()
    for service in ["s", "t"] as [Text] { try life.ask(.add(service), as: orgA) }
    life.install([:])
    life.install(["org.a": Manifest("org.v")])
    #expect(life.refusal(of: .add("u"), as: orgA) == tooMany("org.a"))
  }

  @Test func `forgetting oneself does not reset the quota`() throws {
    var life = life()
    try life.ask(.add("s"), as: alice)
    try life.ask(.add("t", whileInstalled: true), as: alice)
    try life.ask(.forget(app: "user:1000"), as: alice)
    try life.ask(.add("t"), as: alice)
    #expect(life.refusal(of: .add("u"), as: alice) == tooMany("uid 1000"))
  }

  @Test(arguments: [0, 1, 2])
  func `a lowered limit deletes nothing, and existing items can be replaced`(limit: Int) throws {
    var life = life(items: 3)
    for service in ["s", "t", "u"] as [Text] { try life.ask(.add(service), as: orgA) }
    life.limits.items.perApp.items = limit
    #expect(life.refusal(of: .add("v"), as: orgA) == tooMany("org.a", limit))
    for command in [.put("s"), .put("s", "a", "longer"), .update("t", label: "l"), .read("u"), .find(), .delete("s")]
      as [RegistryCommand]
    {
      #expect(life.refusal(of: command, as: orgA) == nil)
    }
  }
}

struct ItemByteQuotaTests {
  // Group `org.a`, service `s`, account `a`: 7 bytes without a secret.
  @Test(
    arguments: [
      (.add("s", "a", "123"), 10), (.add("s", "a", ""), 7), (.add("ss", "aa", "1"), 10),
      (.add("s", "a", label: "12"), 10),
      (.add("s", "a", "", attributes: ["n": "12"]), 10), (.add("s", "a", "", attributes: ["n": "1", "m": ""]), 9),
      (.add("s", "a", "", in: "org.shared"), 12), (.add("s", "a", "\u{20ac}", label: "\u{e9}"), 12),
    ] as [(RegistryCommand, Int)])
  func `the quota of bytes counts the secret, the key and the description`(command: RegistryCommand, size: Int) throws {
    for put in [false, true] {
      let given = try #require(command.rule as? StoreItemRule)
      let command = RegistryCommand.storeItem(given.name, given.secret, given.description, replaces: put)
      var life = life(bytes: size - 1)
      #expect(life.refusal(of: command, as: orgA) == tooLarge("org.a", size - 1))
      life.limits.items.perApp.bytes = size
      try life.ask(command, as: orgA)
      #expect(life.registry.items.total.bytes == size)
      #expect(life.registry.items.all.map(\.size) == [size])
    }
  }

  @Test func `the items of an app in all groups count together`() throws {
    var life = life(bytes: 21)
    try life.ask(.add("s", "a", "1"), as: orgA)
    #expect(life.refusal(of: .add("s", "a", "12", in: "org.shared"), as: orgA) == tooLarge("org.a", 21))
    try life.ask(.add("s", "a", "1", in: "org.shared"), as: orgA)
    #expect(life.refusal(of: .update("s", "a", "12"), as: orgA) == tooLarge("org.a", 21))
    #expect(life.refusal(of: .add("s", "a", "1234567"), as: orgB) == nil)
    try life.ask(.delete("s"), as: orgA)
    try life.ask(.put("s", "a", "123456789", in: "org.shared"), as: orgA)
    #expect(life.registry.items.total.bytes == 21)
  }

  @Test(
    arguments: [
      // The change to an item with a secret of 4 bytes and a label of 2, and whether the item is larger afterwards.
      (.put("s", "a", "1234", label: "12"), false), (.put("s", "a", "123456"), false), (.put("s", "a", ""), false),
      (.put("s", "a", "12345", label: "12"), true), (.put("s", "a", "1234567"), true),
      (.put("s", "a", "1234", attributes: ["n": "12"]), true), (.update("s", "a", "abcd"), false),
      (.update("s", label: "ab"), false), (.update("s", label: ""), false), (.update("s"), false),
      (.update("s", "a", "12345", label: "1"), false), (.update("s", "a", "12345"), true),
      (.update("s", label: "abc"), true), (.update("s", attributes: ["n": "1"]), true),
      (.update("s", label: "", attributes: ["n": "1"]), false),
    ] as [(RegistryCommand, Bool)])
  func `at its quota an item may keep its size or shrink, but not grow`(command: RegistryCommand, more: Bool) throws {
    var life = life()
    try life.ask(.add("s", "a", "1234", label: "12"), as: orgA)
    try life.ask(.add("t"), as: orgA)
    let full = life.registry.items.total.bytes
    for limit in [full, full - 1, 0] {
      life.limits.items.perApp.bytes = limit
      #expect(life.refusal(of: command, as: orgA) == (more ? tooLarge("org.a", limit) : nil))
    }
    life.limits.items.perApp.bytes = full + 3
    #expect(life.refusal(of: command, as: orgA) == nil)
  }

  @Test func `a user and the user's services share one quota of bytes`() throws {
    var life = life(bytes: 42)
    try life.ask(.add("s", "a", ""), as: service("x", of: 1_000))
    #expect(life.registry.items.total.bytes == 21)
    #expect(
      life.refusal(of: .add("s", "a", "1"), as: service("y", of: 1_000)) == tooLarge("uid 1000", 42))
    try life.ask(.add("s", "a", ""), as: service("y", of: 1_000))
    try life.ask(.add("s", "a", "123456789"), as: bob)
  }

  @Test func `the default limits are 1,000 items and 4 MiB per app`() throws {
    var life = Life.withThreeApps()
    for number in 0..<1_000 { try life.ask(.add(Text("\(number)"), "a", ""), as: orgA) }
    #expect(life.refusal(of: .add("1000"), as: orgA) == tooMany("org.a", 1_000))
    let secret = SealedSecret(bytes: [], length: Bound.secretLength)
    for number in 0..<63 {
      let name = ItemName(service: Text("\(number)"), account: "a", group: nil)
      try life.ask(.storeItem(name, secret, ItemDescription(), replaces: false), as: orgB)
    }
    let name = ItemName(service: "63", account: "a", group: nil)
    let refusal = life.refusal(of: .storeItem(name, secret, ItemDescription(), replaces: true), as: orgB)
    #expect(refusal == tooLarge("org.b", 4_194_304))
  }
}

struct ItemOwnerTests {
  private func owner(_ life: Life, _ group: Text) -> Text? { life.item("s", in: group)?.owner }

  @Test func `replacing an item makes the new app its owner, which is charged for it`() throws {
    var life = life()
    try life.ask(.add("s", in: "org.shared"), as: orgA)
    try life.ask(.add("t"), as: orgA)
    try life.ask(.put("s", in: "org.shared"), as: orgB)
    #expect(owner(life, "org.shared") == "org.b")
    try life.ask(.add("u"), as: orgA)
    #expect(life.refusal(of: .put("s", in: "org.shared"), as: orgA) == tooMany("org.a"))
    try life.ask(.add("t"), as: orgB)
    #expect(life.refusal(of: .add("u"), as: orgB) == tooMany("org.b"))
  }

  @Test func `taking over an item needs as much room as adding one, even if it shrinks`() throws {
    var life = life(bytes: 20)
    try life.ask(.add("s", "a", "12345678", in: "org.shared"), as: orgA)
    try life.ask(.add("t", "a", "123"), as: orgB)
    #expect(life.refusal(of: .put("s", "a", "", in: "org.shared"), as: orgB) == tooLarge("org.b", 20))
    #expect(life.refusal(of: .put("s", "a", "", in: "org.shared"), as: orgA) == nil)
  }

  @Test func `an update leaves the item to its owner, which is charged for it`() throws {
    var life = life(bytes: 20)
    try life.ask(.add("s", "a", "1", in: "org.shared"), as: orgA)
    try life.ask(.update("s", "a", "12345678", in: "org.shared"), as: orgB)
    #expect(owner(life, "org.shared") == "org.a")
    #expect(life.refusal(of: .update("s", "a", "123456789", in: "org.shared"), as: orgB) == tooLarge("org.a", 20))
    #expect(life.refusal(of: .add("t", "a", ""), as: orgA) == tooLarge("org.a", 20))
    #expect(life.refusal(of: .add("t", "a", "1234567890"), as: orgB) == nil)
  }

  @Test func `an item that an admin puts into an app's own group is charged to that app`() throws {
    var life = life()
    try life.ask(.add("first"), as: service("x", of: 1_000))
    for group in ["org.a", "unit:x.service@1000"] as [Text] {
      try life.ask(.add("s", in: group), as: root)
      #expect(owner(life, group) == group)
    }
    #expect(!life.registry.apps.keys.contains("user:0"))
    #expect(
      life.refusal(of: .add("t", in: "unit:x.service@1000"), as: root) == tooMany("uid 1000"))
    try life.ask(.add("t"), as: orgA)
    #expect(life.refusal(of: .add("u", in: "org.a"), as: root) == tooMany("org.a"))
    #expect(life.refusal(of: .put("s", in: "org.a"), as: root) == nil)
  }

  @Test func `an item that an admin puts anywhere else is charged to the admin`() throws {
    var life = life()
    for group in ["org.shared", "user:1000"] as [Text] {
      try life.ask(.add("s", in: group), as: root)
      #expect(owner(life, group) == "user:0")
    }
    for group in [nil, "org.media", "org.nobody"] as [Text?] {
      #expect(life.refusal(of: .add("t", in: group), as: root) == tooMany("user:0"))
    }
    #expect(life.refusal(of: .add("t", in: "org.a"), as: root) == nil)
    try life.ask(.put("s"), as: alice)
    #expect(owner(life, "user:1000") == "user:1000")
    try life.ask(.add("t"), as: root)
  }
}

struct ItemShareTests {
  private static let subordinates = SubordinateUsers(
    [SubordinateUsers.Range(first: 100_000, count: 65_536, owner: 1_000)].compactMap(\.self))

  @Test func `subordinate users share the quota of their owner`() throws {
    var life = Life()
    life.limits.items.perUser.items = 10
    life.registry.use(Self.subordinates)
    for number in 0..<10 as Range<UInt32> {
      try life.ask(.add("s"), as: Peer(userID: 100_000 + number, groupID: 1, processID: 1, isAdmin: false))
    }
    let next = Peer(userID: 100_010, groupID: 1, processID: 1, isAdmin: false)
    #expect(life.refusal(of: .add("s"), as: next) == tooMany("uid 1000", 10))
    #expect(life.refusal(of: .add("s"), as: alice) == tooMany("uid 1000", 10))
    #expect(life.refusal(of: .add("s"), as: bob) == nil)
    // The items of a forgotten app remain, and still count.
    try life.ask(.forget(app: "user:100000"), as: root)
    #expect(life.refusal(of: .add("s"), as: next) == tooMany("uid 1000", 10))
  }

  @Test func `one principal may have at most half of the items and bytes, and the system the reserve`() throws {
    var life = Life.withThreeApps()
    life.limits.items.total.items = 20
    for number in 0..<9 { try life.ask(.add(Text("\(number)")), as: alice) }
    #expect(life.refusal(of: .add("9"), as: alice) == tooMany("uid 1000", 9))
    for number in 0..<3 { try life.ask(.add(Text("\(number)")), as: bob) }
    #expect(life.refusal(of: .add("9"), as: bob)?.isLimit == true)
    for number in 0..<8 { try life.ask(.add(Text("\(number)")), as: orgA) }
    #expect(life.refusal(of: .add("9"), as: orgA)?.isLimit == true)
    life.limits.items.total.items = 1_000
    life.limits.items.total.bytes = life.registry.items.total.bytes + 100
    #expect(life.refusal(of: .add("9"), as: alice)?.isLimit == true)
    #expect(life.refusal(of: .add("9"), as: orgA) == nil)
    // Replacing an item with a smaller one is always allowed.
    #expect(life.refusal(of: .put("1", "a", ""), as: alice) == nil)
  }
}
