import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A store that the first release made, and what becomes of it.
@Suite struct VersionOneTests {
  /// What that store holds.
  private static let device = Identifier(
    scope: .device, value: parsed("e8c5136d-9ffc-413c-a5ba-5b90f458ac72"), created: time("32.134"), origin: .machine,
    cause: .firstUse, author: nil)
  private static let registry: Registry = {
    var registry = Registry()
    registry.apply(.appInstalled("user:0", App(installed: time("32.143"))))
    registry.apply(.appInstalled("user:65534", App(installed: time("32.156"))))
    registry.apply(.identifierMade(device))
    for (app, value, second) in [
      ("user:0", "cc0c52fe-9d76-46e0-ae9f-d4fac784a21a", "32.143"),
      ("user:65534", "1791c9b5-1c90-453e-8080-f8d31167d77c", "32.156"),
    ] as [(Text, Text, String)] {
      registry.apply(made(.installation(app), parsed(value), .random, at: time(second)))
    }
    registry.apply(.deviceListed(ListedDevice(value: device.value, added: device.created)))
    return registry
  }()

  private static func parsed(_ text: Text) -> IdentityCore.UUID { IdentityCore.UUID(text) ?? .zero }
  private static func time(_ second: String) -> Timestamp {
    Timestamp(parsing: Text("2026-11-21T11:54:\(second)Z")) ?? start
  }

  private static func fixture() throws -> [String: [UInt8]] { try fixtureFiles("version-1") }

  /// What is served of it as long as it cannot be migrated.
  private static let unmigrated = registry.locked(
    "items cannot be used as long as the store cannot be: read-only")

  private func expectMigrated(_ workspace: Workspace) throws {
    #expect(try workspace.sql("PRAGMA user_version") == "3\n")
    let content = try workspace.found()
    #expect(content.registry == Self.registry)
    #expect(content.condition == .writable)
    #expect(content.events == [])
    #expect(content.notices == [])
  }

  @Test func `it becomes one of this version, with every identifier as it was`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.withStore { store, content in
      #expect(content.registry == Self.registry)
      #expect(content.condition == .writable)
      #expect(content.notices == [.migrated(from: 1)])
      #expect(content.events == [])
      #expect(content.registry.machine == nil)
    }
    try expectMigrated(workspace)
    // The transaction of the migration is the fourth of this store, whose name and age stay.
    #expect(
      try workspace.sql("SELECT id, created, revision FROM store")
        == "0423720d-ef09-40e8-a9cd-93cef7bee07e|2026-11-21T11:54:31.181Z|4\n")
    let committed = try workspace.commit(life, withEvents: true)
    #expect(try workspace.found().registry == committed)
  }

  @Test func `every flipped bit is noticed, and the file is left as it is`() throws {
    let workspace = try Workspace(inMemory: true)
    let files = try Self.fixture()
    let database = try #require(files["identityd.db"])
    var outcomes: [String: Int] = [:]
    for place in stride(from: 0, to: database.count, by: 17) {
      var changed = files
      changed["identityd.db"]?[place] ^= 1 << UInt8(place % 8)
      try workspace.restore(changed)
      do {
        let content = try workspace.found()
        if content.condition == .writable {
          #expect(content.registry == Self.registry, "byte \(place)")
          outcomes["exact", default: 0] += 1
        } else if case .unwritable = content.condition {
          // SQLite met the damage only when it made the new tables: all that is stored is proven, and a copy is whole.
          #expect(content.registry == Self.unmigrated, "byte \(place)")
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

  @Test func `an edited row is named, and what is proven is served`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.sql("UPDATE identifier SET value = '\(uuid(77))' WHERE app = 'user:0'")
    let before = try workspace.files()
    for _ in 0..<2 {
      let content = try workspace.found()
      #expect(
        content.condition.damage?.hasSuffix(
          "a row of identifier (installation user:0 \(uuid(77)) 2026-11-21T11:54:32.143Z) is not authentic") == true)
      #expect(content.registry[.installation("user:0")] == nil)
      #expect(content.registry[.device] == Self.device)
      #expect(content.registry.apps == Self.registry.apps)
      for (name, bytes) in before { #expect(try workspace.read(name) == bytes, "\(name)") }
    }
  }

  @Test func `a deleted row is missed`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.sql("DELETE FROM identifier WHERE level = 'device'")
    let before = try workspace.read("identityd.db")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("it holds 4 proven rows and should hold 5") == true)
    #expect(try workspace.read("identityd.db") == before)
  }

  /// Witnesses that its key proves: of another store, and of a later revision of this one.
  static let witnesses: [(String, String)] = [
    (
      "not the store that was here before",
      "identityd-witness 1 99999999-9999-4999-8999-999999999999 3 "
        + "1773181badb16b907ae5f0cab7e6e6fa441c1cefc0eb86fe038054399e647459"
    ),
    (
      "an older copy: revision 3, and revision 9 was reached",
      "identityd-witness 1 0423720d-ef09-40e8-a9cd-93cef7bee07e 9 "
        + "25577a5fcaf7c437fd0973c33b00fd19ad4e442d5575af929c5d66d98fae0717"
    ),
  ]

  @Test(arguments: witnesses.map(\.0), ["witness", "witness.latest"])
  func `one that the witness speaks against is left as it is`(reason: String, name: String) throws {
    let workspace = try Workspace()
    var files = try Self.fixture()
    let witness = try #require(Self.witnesses.first { $0.0 == reason }?.1)
    files[name] = Array((witness + "\n").utf8)
    try workspace.restore(files)
    let content = try workspace.found()
    #expect(content.condition.damage?.contains(reason) == true, "\(content.condition)")
    #expect(content.registry.isNothing)
    for (name, bytes) in files { #expect(try workspace.read(name) == bytes, "\(name)") }
  }

  @Test func `a migration cut off at any moment leaves either version whole`() throws {
    let migrated = try Workspace()
    try migrated.restore(try Self.fixture())
    _ = try migrated.found()
    let dump = try migrated.sql(".dump").split(separator: "\n").filter { line in
      !["BEGIN TRANSACTION;", "COMMIT;"].contains(line) && !line.hasPrefix("PRAGMA")
    }
    // The same transaction once more, by a tool that is killed with everything in the log.
    let script =
      """
      PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;
      BEGIN; DROP TABLE app; DROP TABLE identifier; DROP TABLE store;

      """ + dump.joined(separator: "\n") + "\nPRAGMA user_version=3; COMMIT;\n.system kill -9 $PPID\n"
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
      #expect(content.condition == .writable, "\(length) of \(log.count) bytes")
      migrations += content.notices == [.migrated(from: 1)] ? 1 : 0
      if length % 4_096 == 0 { try expectMigrated(workspace) }
    }
    #expect(migrations > 10)
    try expectMigrated(workspace)
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
  func `on a full disk it is served as it is, and migrated once there is room`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    for (name, bytes) in try Self.fixture() { try workspace.write(name, bytes) }
    try workspace.fillDisk("ballast", sparing: 8_192)
    let before = try workspace.read("identityd.db")
    try workspace.withStore { store, content in
      #expect(content.registry == Self.registry.locked("items cannot be used as long as the store cannot be: no-space"))
      #expect(content.condition == .full)
      #expect(store.commit(installed(1)) == .full)
      let inVain = store.heal()
      #expect(inVain == nil)
      #expect(try workspace.read("identityd.db") == before)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == Self.registry)
      try store.mustCommit(installed(1))
      try store.mustClose()
    }
    let content = try workspace.found()
    #expect(content.registry.apps.count == 3)
    #expect(content.condition == .writable)
    #expect(try workspace.sql("PRAGMA user_version") == "3\n")
  }
}
