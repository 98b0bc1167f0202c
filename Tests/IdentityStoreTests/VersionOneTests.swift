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

  private static let earlier = EarlierStore(
    version: 1, registry: registry, events: [],
    migration: ("DROP TABLE app; DROP TABLE identifier; DROP TABLE store;", []))

  private static func fixture() throws -> [String: [UInt8]] { try earlier.files() }

  @Test func `row 18: it becomes one of this version, with every identifier as it was`() throws {
    let workspace = try Workspace()
    try workspace.restore(try Self.fixture())
    try workspace.withStore { store, content in
      #expect(content.registry == Self.registry)
      #expect(content.condition == .writable)
      #expect(content.notices == [.migrated(from: 1)])
      #expect(content.events == [])
      #expect(content.registry.machine == nil)
    }
    try Self.earlier.expectMigrated(workspace)
    // The transaction of the migration is the fourth of this store, whose name and age stay.
    #expect(
      try workspace.sql("SELECT id, created, revision FROM store")
        == "0423720d-ef09-40e8-a9cd-93cef7bee07e|2026-11-21T11:54:31.181Z|4\n")
    let committed = try workspace.commit(life, withEvents: true)
    #expect(try workspace.found().registry == committed)
  }

  @Test func `every flipped bit is noticed, and the file is left as it is`() throws {
    try Self.earlier.expectFlipsNoticed(every: 17)
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

  @Test func `rows 9 and 18: a migration cut off at any moment leaves either version whole`() throws {
    try Self.earlier.expectWholeWhereverCut()
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
      #expect(content.registry == Self.earlier.unmigrated("no-space"))
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
    #expect(try workspace.sql("PRAGMA user_version") == "13\n")
  }
}
