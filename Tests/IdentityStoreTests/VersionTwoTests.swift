import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A store that the release before items made, and what becomes of it.
@Suite struct VersionTwoTests {
  private static let player: Text = "org.example.player"
  private static let phone = parsed("557e5958-d390-4cbf-b928-2a2b19a1399a")
  private static let firstDevice = parsed("e8c5136d-9ffc-413c-a5ba-5b90f458ac72")
  private static let device = parsed("557e5958-d390-4cbf-b928-2a2b19a1399b")

  /// What happened in that store, and when.
  private static let history: [(String, Change)] = [
    ("39.955", .appInstalled(player, App(installed: time("39.955"), manifest: manifest))),
    ("40.896", made(.device, firstDevice, .machine, at: time("40.896"), by: "uid:0")),
    ("40.896", .deviceListed(ListedDevice(value: firstDevice, added: time("40.896")))),
    ("40.906", .appInstalled("user:0", App(installed: time("40.906")))),
    ("40.906", random(.installation("user:0"), "46b3834e-ff00-43de-85ec-44f0f537fcd4", "40.906")),
    ("40.915", random(.vendor("org.example"), "62c84da0-e2d3-4ab3-a3ed-67c7528ef936", "40.915")),
    (
      "40.924",
      made(
        .deviceOfApp(player), parsed("9df23f78-dd1c-4d49-8f55-9909f49a9902"), .machine, at: time("40.924"), by: "uid:0")
    ),
    ("40.932", random(.installation(player), "9f2fdd74-060e-400e-b285-1737c8dcef8d", "40.932")),
    ("40.940", random(.installation("user:0"), "60132f5d-963b-4d54-a4c3-1cd6e362a630", "40.940", .renewed)),
    ("40.948", .accountSet("alice")),
    ("40.957", .deviceListed(ListedDevice(value: phone, name: "phone", added: time("40.957")))),
    ("40.965", made(.device, device, .migrated, .migrated, at: time("40.965"), by: "uid:0")),
    ("40.965", .deviceReplaced(previous: firstDevice, ListedDevice(value: device, added: time("40.896")))),
  ]

  private static let (registry, events): (Registry, [Event]) = {
    var registry = Registry()
    let mark: Text = "0843d18ca00ec55d681bbb6a1feabb6c9eca9f9b40038beff9b31ad9a0aacdad"
    registry.apply(
      .machineRecorded(MachineRecord(fingerprint: MachineFingerprint(machine: mark, hardware: nil))))
    let events = history.compactMap { second, change in
      let recorded = registry.record(change, at: time(second))
      registry.apply(recorded)
      return recorded.event
    }
    return (registry, events)
  }()

  private static let manifest: Manifest = {
    var manifest = Manifest(vendor: "org.example")
    manifest.users = .named(["nobody"])
    manifest.accessGroups = ["org.example.shared"]
    manifest.deviceBinding = .app
    return manifest
  }()

  private static func random(_ scope: Scope, _ value: Text, _ second: String, _ cause: Cause = .firstUse) -> Change {
    made(scope, parsed(value), .random, cause, at: time(second), by: "uid:0")
  }

  private static func parsed(_ text: Text) -> IdentityCore.UUID { IdentityCore.UUID(text) ?? .zero }
  private static func time(_ second: String) -> Timestamp {
    Timestamp(parsing: Text("2026-11-21T15:07:\(second)Z")) ?? start
  }

  private static let earlier = EarlierStore(
    version: 2, registry: registry, events: events,
    migration: (
      "DROP TABLE store;",
      ["data_key", "item", "secret", "installed_release", "version_report", "version_claim", "token", "app_use"]
    ))

  private static func fixture() throws -> [String: [UInt8]] { try earlier.files() }

  @Test(arguments: [nil, [UInt8](repeating: 0x4b, count: 32)])
  func `row 18: it becomes one of this version with everything as it was, and takes items`(credential: [UInt8]?) throws
  {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    let credentials = KeyCredentials(current: credential)
    let known = Known(1, owner: "user:0")
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.registry == Self.registry)
      #expect(content.condition == .writable)
      #expect(content.notices == [.migrated(from: 2)])
      #expect(content.events == Self.events)
      #expect(store.keySource == (credential == nil ? .file : .credential))
      #expect(workspace.exists("master.key") == (credential == nil))
      // The transaction of the migration is the twelfth of this store, whose name and age stay.
      #expect(
        try workspace.sql("SELECT id, created, revision, row_count, last_event FROM store", ofCopy: true)
          == "d6e8e7c7-4f10-48d9-9063-01433eec062f|2026-11-21T15:07:39.944Z|12|26|13\n")
      try store.put([known])
      try store.expectOpen([known])
    }
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.registry.items[known.item.key] == known.item)
      #expect(content.notices == [])
      #expect(content.events == Self.events)
      try store.expectOpen([known])
      var registry = content.registry
      for batch in life.dropFirst() { try store.mustCommit(registry.recorded(batch)) }
      let healed = store.heal()
      #expect(healed == registry)
    }
  }

  @Test func `every flipped bit is noticed, and the file is left as it is`() throws {
    try Self.earlier.expectFlipsNoticed(every: 61)
  }

  @Test func `an edited row is named, what is proven is served, and nothing is written`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.sql("UPDATE app SET access_groups = 'org.example.thief' WHERE id = '\(Self.player)'")
    let before = try workspace.files()
    for _ in 0..<2 {
      let content = try workspace.found()
      #expect(
        content.condition.damage?.hasSuffix("a row of app (\(Self.player) org.example nobody) is not authentic")
          == true,
        "\(content.condition)")
      #expect(content.registry.apps[Self.player] == nil)
      #expect(content.registry[.device] == Self.registry[.device])
      #expect(content.events == Self.events)
      for (name, bytes) in before { #expect(try workspace.read(name) == bytes, "\(name)") }
      #expect(!workspace.exists("master.key"))
    }
  }

  @Test func `a deleted row is missed`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.sql("DELETE FROM device WHERE n = 2")
    let before = try workspace.read("identityd.db")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("it holds 24 proven rows and should hold 25") == true)
    #expect(content.registry.isNothing)
    #expect(try workspace.read("identityd.db") == before)
  }

  @Test func `rows 9 and 18: a migration cut off at any moment leaves either version whole`() throws {
    try Self.earlier.expectWholeWhereverCut()
  }

  /// What a migration that was cut before its transaction leaves of the master key.
  @Test(arguments: ["half", "whole", "whole and half"])
  func `a migration cut off at its master key is carried on with it`(what: String) throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    let key = Array((String(repeating: "0f", count: 32) + "\n").utf8)
    if what.contains("half") { try workspace.write("master.key.new", Array(key.prefix(20))) }
    if what.contains("whole") { try workspace.write("master.key", key) }
    #expect(try workspace.found().notices == [.migrated(from: 2)])
    #expect(try (workspace.read("master.key") == key) == what.contains("whole"))
    try Self.earlier.expectMigrated(workspace)
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"), arguments: [4_096, 8_192])
  func `on a full disk it is served as it is, and migrated once there is room`(spare: Int) throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=320k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    for (name, bytes) in try Self.fixture() { try workspace.write(name, bytes) }
    try workspace.fillDisk("ballast", sparing: spare)
    let before = try workspace.read("identityd.db")
    let known = Known(1, owner: "user:0")
    try workspace.withStore { store, content in
      #expect(content.registry == Self.earlier.unmigrated("no-space"))
      #expect(content.events == Self.events)
      #expect(content.condition == .full)
      #expect(store.keySource == nil)
      #expect(store.makeItemReader() == nil)
      #expect(store.commit(installed(1)) == .full)
      let inVain = store.heal()
      #expect(inVain == nil)
      #expect(try workspace.read("identityd.db") == before)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == Self.registry)
      #expect(store.keySource == .file)
      try store.put([known])
      try store.expectOpen([known])
      try store.mustClose()
    }
    let content = try workspace.found()
    #expect(content.registry.items[known.item.key] == known.item)
    #expect(content.events == Self.events)
    #expect(content.condition == .writable)
    #expect(try workspace.sql("PRAGMA user_version") == "13\n")
  }
}
