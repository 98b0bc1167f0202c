import IdentityCore
import Testing

/// The restore of data other than identifiers: the account, the devices and the items.
struct RestoringContentTests {
  @Test(arguments: [true, false])
  func `the account is restored if there is none, and replaces another only with identifiers`(fromHere: Bool) throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.setAccount("alice"), as: root)
    let backup = old.backup(fromHere: fromHere)
    #expect(try life.restore(backup).contains("* account changed value=alice"))
    try life.ask(.setAccount("bob"), as: root)
    let lines = try life.restore(backup)
    #expect(lines.contains("* account changed value=alice") == fromHere)
    #expect(life.registry.account == (fromHere ? "alice" : "bob"))
    #expect(try life.restore(new.backup(fromHere: fromHere)) == ["* device unknown", "OK 1"])
    #expect(life.registry.account == (fromHere ? "alice" : "bob"))
  }

  @Test func `devices of another account are not restored`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.setAccount("alice"), as: root)
    try old.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    try life.ask(.setAccount("bob"), as: root)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.restore(old.backup(fromHere: false))
    #expect(life.registry.account == "bob")
    #expect(life.registry.devices.map(\.value) == [given(2)])
  }

  @Test func `restoring another account replaces the devices`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.setAccount("alice"), as: root)
    try old.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    try life.ask(.setAccount("bob"), as: root)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.restore(old.backup())
    #expect(life.registry.account == "alice")
    #expect(life.registry.devices.map(\.value) == [given(1)])
  }

  @Test func `a listed device keeps its place and details, and restored ones follow`() throws {
    let new = Life()
    var (old, life) = (new, new)
    for number in [3, 1, 2] as [UInt64] {
      try old.ask(.putDevice(given(number), name: "old", seen: Timestamp(milliseconds: 7)), as: root)
    }
    try life.ask(.putDevice(given(1), name: "new", seen: nil), as: root)
    #expect(
      try life.restore(old.backup()) == [
        "* device unknown", "* devices added value=g3", "* devices added value=g2", "OK 3",
      ])
    #expect(life.registry.devices.map(\.value) == [given(1), given(3), given(2)])
    #expect(life.registry.devices.map(\.name) == ["new", "old", "old"])
    #expect(Array(life.registry.devices)[1] == Array(old.registry.devices)[0])
  }

  @Test(arguments: [true, false])
  func `the name of this device is restored with its identifier`(isKnown: Bool) throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.ask(.renew(.device, app: nil, dryRun: false), as: root)
    try old.ask(.putDevice(try #require(old.registry[.device]?.value), name: "desk", seen: nil), as: root)
    if isKnown { try life.ask(.get(.device, app: nil), as: alice) }
    try life.restore(old.backup())
    #expect(life.registry.devices.map(\.name) == ["desk"])
  }

  @Test func `a restore does not exceed the limit of devices`() throws {
    var life = Life()
    var backup = life.backup()
    backup.devices = (0..<Bound.devices).map { number in
      ListedDevice(value: given(UInt64(number)), added: Timestamp(milliseconds: 1))
    }
    try life.ask(.putDevice(given(60_000), name: nil, seen: nil), as: root)
    #expect(try life.restore(backup).count == Bound.devices + 1)
    #expect(life.registry.devices.count == Bound.devices)
  }

  // MARK: Items

  @Test func `equal items are skipped, changed ones replaced, and items that are only here stay`() throws {
    var life = Life()
    for account in ["same", "changed", "deleted"] as [Text] { try life.put(account) }
    let backup = life.backup()
    try life.put("changed", ItemDescription(label: "new"))
    try life.put("only")
    try life.ask(.deleteItems(ItemCondition(service: "s", account: "deleted")), as: alice)
    let last = life.registry.lastEvent
    #expect(
      try life.restore(backup) == [
        "* device unknown",
        "* item replaced group=user:1000 service=s account=changed modified=t2 previous-modified=t4",
        "* item added group=user:1000 service=s account=deleted", "OK 3",
      ])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) item replaced group=user:1000 service=s account=changed > group user:1000",
        "\(last + 2) item added group=user:1000 service=s account=deleted > group user:1000",
      ])
    #expect(
      try life.found("user:1000") == [
        "* service=s account=changed group=user:1000 created=t2 modified=t2",
        "* service=s account=deleted group=user:1000 created=t3 modified=t3",
        "* service=s account=only group=user:1000 created=t5 modified=t5",
        "* service=s account=same group=user:1000 created=t1 modified=t1", "OK 4",
      ])
    #expect(try life.restore(backup) == ["* device unknown", "OK 1"])
  }

  @Test func `restored items get their own numbers and are charged without a quota`() throws {
    let new = Life()
    var (old, life) = (new, new)
    for number in 0..<20 { try old.put(Text("a\(number)")) }
    for number in 10..<30 { try life.put(Text("a\(number)")) }
    #expect(try life.restore(old.backup()).count == 22)
    #expect(Set(life.registry.items.all.map(\.number)).count == 30)
    #expect(Set(life.registry.items.all.map(\.owner)) == ["user:1000"])
    #expect(life.registry.items.total.items == 30)
    #expect(life.registry.items.lastNumber == 30)
  }

  @Test func `an item with lifetime=installation is restored only if its app is installed`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v")])
    try old.put("lasting", as: peer("org.a"))
    try old.put("ending", ItemDescription(endsWithInstallation: true), as: peer("org.a"))
    let backup = old.backup(fromHere: false)
    #expect(
      try life.restore(backup) == [
        "* device unknown", "* item added group=org.a service=s account=lasting",
        "* item skipped group=org.a service=s account=ending reason=not installed", "OK 3",
      ])
    #expect(life.registry.apps.count == 0)
    life.install(["org.a": Manifest("org.v")])
    #expect(
      try life.restore(backup) == ["* device unknown", "* item added group=org.a service=s account=ending", "OK 2"])
    life.install([:])
    #expect(try life.found("org.a").count == 2)
  }

  // MARK: Refusals

  @Test func `a sealed or locked store takes no restore`() throws {
    let new = Life()
    var (old, life) = (new, new)
    try old.put("a")
    life.registry.itemFault = "no key"
    #expect(throws: Refusal.unavailable("no key")) { try life.restoration(old.backup()) }
    life.registry.itemFault = nil
    try life.ask(.seal(dryRun: false), as: root)
    #expect(throws: Refusal.self) { try life.restoration(old.backup()) }
    #expect(life.registry.items.total.items == 0)
  }

  @Test func `a dry run gives the rows of the restore and changes nothing`() throws {
    let new = Life()
    var (old, life) = (new, new)
    old.install(["org.a": Manifest("org.v", device: .app)])
    for level in Level.allCases { try old.ask(.get(level, app: nil), as: peer("org.a")) }
    try old.put("ending", ItemDescription(endsWithInstallation: true), as: peer("org.a"))
    try old.put("a")
    try old.ask(.setAccount("alice"), as: root)
    for (fromHere, adopts) in [(true, false), (false, false), (false, true), (true, true)] {
      let before = life.registry
      let said = try life.restoration(old.backup(fromHere: fromHere), adopts: adopts).lines
      #expect(life.registry == before)
      #expect(try life.restore(old.backup(fromHere: fromHere), adopts: adopts) == said)
    }
  }
}
