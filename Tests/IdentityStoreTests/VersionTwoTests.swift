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
    manifest.user = "nobody"
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

  private static func fixture() throws -> [String: [UInt8]] { try fixtureFiles("version-2") }

  /// What is served of it as long as it cannot be migrated.
  private static func unmigrated(_ condition: String) -> Registry {
    registry.locked("items cannot be used as long as the store cannot be: \(condition)")
  }

  private func expectMigrated(_ workspace: Workspace) throws {
    #expect(try workspace.sql("PRAGMA user_version") == "3\n")
    let content = try workspace.found()
    #expect(content.registry == Self.registry)
    #expect(content.condition == .writable)
    #expect(content.events == Self.events)
    #expect(content.notices == [])
  }

  @Test(arguments: [nil, [UInt8](repeating: 0x4b, count: 32)])
  func `it becomes one of this version with everything as it was, and takes items`(credential: [UInt8]?) throws {
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
    let workspace = try Workspace(inMemory: true)
    let files = try Self.fixture()
    let database = try #require(files["identityd.db"])
    var outcomes: [String: Int] = [:]
    for place in stride(from: 0, to: database.count, by: 61) {
      var changed = files
      changed["identityd.db"]?[place] ^= 1 << UInt8(place % 8)
      try workspace.restore(changed)
      do {
        let content = try workspace.found()
        if content.condition == .writable {
          #expect(content.registry == Self.registry, "byte \(place)")
          #expect(content.events == Self.events, "byte \(place)")
          outcomes["exact", default: 0] += 1
        } else if case .unwritable = content.condition {
          #expect(content.registry == Self.unmigrated("read-only"), "byte \(place)")
          #expect(try workspace.read("identityd.db") == changed["identityd.db"], "byte \(place)")
          let healed = try workspace.withStore { store, _ in store.heal() }
          #expect(healed == Self.registry, "byte \(place)")
          try expectMigrated(workspace)
          outcomes["healed", default: 0] += 1
        } else {
          #expect(content.condition.damage != nil, "byte \(place): \(content.condition)")
          #expect(content.registry.isPart(of: Self.registry), "byte \(place)")
          let name = content.asideNames.first ?? "identityd.db"
          #expect(try workspace.read(name) == changed["identityd.db"], "byte \(place)")
          #expect(try workspace.read("store.key") == changed["store.key"])
          #expect(!workspace.exists("master.key"), "nothing is made for a damaged store")
          outcomes["damaged", default: 0] += 1
        }
      } catch is StoreFailure {
        #expect(try workspace.read("identityd.db") == changed["identityd.db"], "byte \(place)")
        outcomes["refused", default: 0] += 1
      }
    }
    #expect(outcomes["damaged", default: 0] > 50, "\(outcomes)")
    #expect(outcomes["exact", default: 0] > 50, "\(outcomes)")
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

  @Test func `a migration cut off at any moment leaves either version whole`() throws {
    let migrated = try Workspace()
    try migrated.restore(try Self.fixture())
    _ = try migrated.found()
    let dump = try migrated.sql(".dump data_key item secret").split(separator: "\n").filter { line in
      !["BEGIN TRANSACTION;", "COMMIT;"].contains(line) && !line.hasPrefix("PRAGMA")
    }
    let row = try migrated.sql(".dump store").split(separator: "\n").filter { $0.hasPrefix("INSERT") }
    // The same transaction once more, by a tool that is killed with everything in the log.
    let script =
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;\nBEGIN; DELETE FROM store;\n"
      + (row + dump).joined(separator: "\n") + "\nPRAGMA user_version=3; COMMIT;\n.system kill -9 $PPID\n"
    let file = migrated.root + "/script"
    try Data(script.utf8).write(to: URL(filePath: file))
    // On disk before anything is wrapped in it.
    let masterKey = try migrated.read("master.key")
    try migrated.restore(try Self.fixture())
    try migrated.write("master.key", masterKey)
    _ = try migrated.run("/bin/sh", "-c", "exec sqlite3 \"$0\" < \"$1\"", migrated.path("identityd.db"), file)
    try migrated.remove("identityd.db-shm")
    let files = try migrated.files()
    let log = try #require(files["identityd.db-wal"])
    try #require(log.count > 20_000)

    let workspace = try Workspace(inMemory: true)
    var migrations = 0
    for length in Array(stride(from: 0, to: log.count, by: 512)) + [log.count] {
      var cut = files
      cut["identityd.db-wal"] = Array(log.prefix(length))
      try workspace.restore(cut)
      let content = try workspace.found()
      #expect(content.registry == Self.registry, "\(length) of \(log.count) bytes")
      #expect(content.events == Self.events, "\(length) of \(log.count) bytes")
      #expect(content.condition == .writable, "\(length) of \(log.count) bytes")
      migrations += content.notices == [.migrated(from: 2)] ? 1 : 0
      #expect(try workspace.read("master.key") == masterKey, "the one of the first try is used")
      if length % 4_096 == 0 { try expectMigrated(workspace) }
    }
    #expect(migrations > 10)
    try expectMigrated(workspace)
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
    try expectMigrated(workspace)
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
      #expect(content.registry == Self.unmigrated("no-space"))
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
    #expect(try workspace.sql("PRAGMA user_version") == "3\n")
  }
}
