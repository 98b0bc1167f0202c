import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A store that the release before versions and push tokens made, and what becomes of it.
@Suite struct VersionThreeTests {
  private static let player: Text = "org.example.player"
  private static let firstDevice = parsed("e8c5136d-9ffc-413c-a5ba-5b90f458ac72")
  private static let device = parsed("09067dea-4db0-417b-995b-93d7006b4bb5")
  private static let phone = parsed("557e5958-d390-4cbf-b928-2a2b19a1399a")
  private static let tablet = parsed("557e5958-d390-4cbf-b928-2a2b19a1399b")

  private static let manifest: Manifest = {
    var manifest = Manifest(vendor: "org.example")
    manifest.users = .named(["daemon"])
    manifest.accessGroups = ["org.example.shared", "org.example.files"]
    manifest.deviceBinding = .app
    manifest.versionOrder = .linux
    return manifest
  }()

  /// What happened in that store, and when, up to the first item.
  private static let history: [(String, Change)] = [
    ("34.885", .appInstalled(player, App(installed: time("34.885"), manifest: manifest))),
    ("35.036", made(.device, firstDevice, .machine, at: time("35.036"), by: "uid:0")),
    ("35.036", .deviceListed(ListedDevice(value: firstDevice, added: time("35.036")))),
    ("35.069", made(.device, device, .random, .renewed, at: time("35.069"), by: "uid:0")),
    ("35.069", .deviceReplaced(previous: firstDevice, ListedDevice(value: device, added: time("35.036")))),
    ("35.103", .appInstalled("user:0", App(installed: time("35.103")))),
    ("35.103", random(.installation("user:0"), "a6748180-690b-44a5-80d9-fdc83dbde0be", "35.103")),
    ("35.138", random(.vendor("org.example"), "1eda07dc-23bd-423b-b2ea-12f0ef93f1f9", "35.138", by: 1)),
    (
      "35.172",
      made(
        .deviceOfApp(player), parsed("9df23f78-dd1c-4d49-8f55-9909f49a9902"), .machine, at: time("35.172"), by: "uid:1")
    ),
    ("35.208", random(.installation(player), "8f2c505d-2407-4042-adf4-cbc5d41253cb", "35.208", by: 1)),
    ("35.245", .appInstalled("user:3", App(installed: time("35.245")))),
    ("35.245", random(.installation("user:3"), "4a299349-aa5f-4d80-b477-73fa39253186", "35.245", by: 3)),
    ("35.280", random(.vendor("user:3"), "75f1b8ab-0262-45a9-9d3d-b526238ce7bc", "35.280", by: 3)),
    ("35.315", random(.installation("user:0"), "0be2e638-46eb-455f-a18f-111a359ee715", "35.315", .renewed)),
    ("35.349", random(.vendor("org.example"), "af433352-6129-4d0d-9593-b6e2d100789a", "35.349", .renewed)),
    ("35.382", .identifierEnded(.installation("user:3"), .init(time: time("35.382"), cause: .uninstalled))),
    ("35.382", .appUninstalled("user:3")),
    ("35.382", .identifierEnded(.vendor("user:3"), .init(time: time("35.382"), cause: .uninstalled))),
    ("35.415", .accountSet("alice")),
    (
      "35.448",
      .deviceListed(
        ListedDevice(
          value: phone, name: "phone", seen: Timestamp(parsing: "2026-11-21T08:39:12.345Z"), added: time("35.448")))
    ),
    ("35.481", .deviceListed(ListedDevice(value: tablet, added: time("35.481")))),
    ("35.514", .deviceUnlisted(tablet)),
  ]

  private static let items = [
    item(
      1, "user:0", "one", "user:0", "4b96214b-7774-4c32-ac0a-071286b56da5", "35.547", "35.683", "secret-two",
      label: "second", [.init(name: "host", value: "mx1"), .init(name: "note", value: "é")]),
    item(
      2, "user:0", "two", "user:0", "15a97d1a-795c-45f3-b968-bed86bd83013", "35.581", "35.581", "", isHereOnly: true),
    item(
      3, "org.example.shared", "three", player, "ba1323a2-2330-4337-8a8f-c84407f0d5ad", "35.617", "35.617", "three",
      ends: true),
    item(
      5, "user:0", "four", "user:0", "39457a14-2e3e-490f-aa71-080a89dcfcfd", "35.750", "35.750", "four",
      label: "ein Schlüssel"),
  ]

  /// What happened to its items; one is gone.
  private static let itemEvents: [(String, Text, Text, Text)] = [
    ("35.547", "added", "user:0", "one"), ("35.581", "added", "user:0", "two"),
    ("35.617", "added", "org.example.shared", "three"), ("35.650", "added", "user:0", "gone"),
    ("35.683", "updated", "user:0", "one"), ("35.717", "deleted", "user:0", "gone"),
    ("35.750", "added", "user:0", "four"),
  ]

  private static let (registry, events): (Registry, [Event]) = {
    var registry = Registry()
    registry.apply(
      .machineRecorded(
        MachineRecord(
          fingerprint: MachineFingerprint(
            machine: "93355b3f40ae949575548d875f8e7eba3e14308b58ea22cc53d908ad7d48ed57",
            hardware: "07cf2ca5f35b9917cfba3e7cffe8786530e379e2355682cf5edcfea60c7960bd"))))
    var events = history.compactMap { second, change in
      let recorded = registry.record(change, at: time(second))
      registry.apply(recorded)
      return recorded.event
    }
    for (second, name, group, account) in itemEvents {
      events.append(
        Event(
          sequence: Int64(events.count + 1), time: time(second), topic: .item, name: name,
          attributes: [.init("group", group), .init("service", "mail"), .init("account", account)],
          audience: .group(group)))
    }
    registry.restore(items.map(\.item))
    registry.resume(after: Int64(events.count))
    return (registry, events)
  }()

  private static let earlier = EarlierStore(
    version: 3, registry: registry, events: events, items: items,
    migration: ("DROP TABLE store;", ["installed_release", "version_report", "version_claim", "token", "app_use"]))

  private static func random(
    _ scope: Scope, _ value: Text, _ second: String, _ cause: Cause = .firstUse, by user: Int = 0
  ) -> Change {
    made(scope, parsed(value), .random, cause, at: time(second), by: Text("uid:\(user)"))
  }

  private static func item(
    _ number: Int64, _ group: Text, _ account: Text, _ owner: Text, _ edition: Text, _ created: String,
    _ modified: String, _ secret: String, label: Text? = nil, _ attributes: [Item.Attribute] = [],
    isHereOnly: Bool = false, ends: Bool = false
  ) -> Known {
    Known(
      Item(
        key: ItemKey(group: group, service: "mail", account: account), number: number, edition: parsed(edition),
        owner: owner, label: label, attributes: attributes, isThisDeviceOnly: isHereOnly, endsWithInstallation: ends,
        secretLength: secret.utf8.count, created: time(created), modified: time(modified)), Array(secret.utf8))
  }

  private static func parsed(_ text: Text) -> IdentityCore.UUID { IdentityCore.UUID(text) ?? .zero }
  private static func time(_ second: String) -> Timestamp {
    Timestamp(parsing: Text("2026-11-21T18:38:\(second)Z")) ?? start
  }

  @Test func `row 18: it becomes one of this version with everything as it was, and takes versions and tokens`() throws
  {
    let workspace = try Workspace()
    try workspace.restore(try Self.earlier.files())
    try workspace.withStore { store, content in
      #expect(content.registry == Self.registry)
      #expect(content.condition == .writable)
      #expect(content.notices == [.migrated(from: 3)])
      #expect(content.events == Self.events)
      #expect(store.keySource == .file)
      try store.expectOpen(Self.items)
      // The transaction of the migration is one more of this store, whose name, age and rows stay.
      #expect(
        try workspace.sql("SELECT id, created, revision, row_count, last_event FROM store", ofCopy: true)
          == "7a498c62-590c-4ceb-9ac2-486d1fb1d18b|2026-11-21T18:38:34.872Z|25|49|29\n")
    }
    try Self.earlier.expectMigrated(workspace)
    let key = try Self.earlier.files()["master.key"]
    #expect(try workspace.read("master.key") == key)
    try workspace.withStore { store, content in
      var registry = content.registry
      for batch in life.dropFirst() { try store.mustCommit(registry.recorded(batch)) }
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
    }
  }

  /// Without its key nothing of an item can be opened, but nothing of it is lost, and no key is made up.
  @Test func `it becomes one of this version without its master key, too`() throws {
    let workspace = try Workspace()
    var files = try Self.earlier.files()
    let key = try #require(files["master.key"])
    files["master.key"] = nil
    try workspace.restore(files)
    try workspace.withStore { store, content in
      #expect(content.notices == [.migrated(from: 3)])
      #expect(content.registry == Self.registry.locked(content.registry.itemFault))
      #expect(content.registry.itemFault != nil)
      #expect(store.keySource == nil)
      try store.mustCommit(versionLife[0])
    }
    #expect(!workspace.exists("master.key"))
    try workspace.write("master.key", key)
    try workspace.withStore { store, content in
      #expect(content.registry.itemFault == nil)
      #expect(content.registry.versions[.system].current == report(1, debian))
      try store.expectOpen(Self.items)
    }
  }

  @Test func `every flipped bit is noticed, and the file is left as it is`() throws {
    try Self.earlier.expectFlipsNoticed(every: 67)
  }

  @Test func `an edited row is named, what is proven is served, and nothing is written`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.earlier.files())
    try workspace.sql("UPDATE item SET owner = 'user:3' WHERE n = 1")
    let before = try workspace.files()
    for _ in 0..<2 {
      let content = try workspace.found()
      #expect(
        content.condition.damage?.hasSuffix("a row of item (1 user:0 mail one) is not authentic") == true,
        "\(content.condition)")
      #expect(content.registry.isPart(of: Self.registry))
      #expect(content.registry[.device] == Self.registry[.device])
      #expect(content.events == Self.events)
      for (name, bytes) in before { #expect(try workspace.read(name) == bytes, "\(name)") }
    }
  }

  @Test(arguments: ["item WHERE n = 3", "device WHERE n = 2", "data_key", "event WHERE sequence = 29"])
  func `a deleted row is missed`(row: String) throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.earlier.files())
    try workspace.sql("DELETE FROM \(row)")
    let before = try workspace.read("identityd.db")
    let content = try workspace.found()
    let words = row.hasPrefix("event") ? "event 29 is missing" : "it holds 48 proven rows and should hold 49"
    #expect(content.condition.damage?.contains(words) == true, "\(content.condition)")
    #expect(content.registry.isNothing)
    #expect(try workspace.read("identityd.db") == before)
  }

  @Test func `rows 9 and 18: a migration cut off at any moment leaves either version whole`() throws {
    try Self.earlier.expectWholeWhereverCut()
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"), arguments: [4_096, 16_384])
  func `on a full disk it is served as it is with its secrets, and migrated once there is room`(spare: Int) throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=384k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    for (name, bytes) in try Self.earlier.files() { try workspace.write(name, bytes) }
    try workspace.fillDisk("ballast", sparing: spare)
    let before = try workspace.read("identityd.db")
    try workspace.withStore { store, content in
      #expect(content.registry == Self.registry)
      #expect(content.events == Self.events)
      #expect(content.condition == .full)
      #expect(store.keySource == .file)
      try store.expectOpen(Self.items)
      #expect(store.commit(versionLife[0]) == .full)
      #expect(store.commit(installed(1)) == .full)
      let refused = refusal { _ = try store.rotateKey(at: start) }
      #expect(refused == StoreCondition.full.refusal)
      let inVain = store.heal()
      #expect(inVain == nil)
      #expect(store.condition == .full)
      try store.expectOpen(Self.items)
      #expect(try workspace.read("identityd.db") == before)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == Self.registry)
      try store.expectOpen(Self.items)
      try store.mustCommit(versionLife[0])
      try store.mustClose()
    }
    try workspace.withStore { store, content in
      #expect(content.registry.versions[.system].current == report(1, debian))
      #expect(content.events == Self.events)
      #expect(content.condition == .writable)
      try store.expectOpen(Self.items)
    }
    #expect(try workspace.sql("PRAGMA user_version") == "13\n")
  }
}
