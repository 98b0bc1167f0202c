import IdentityCore
import Testing

private func migrate(
  _ value: UUID = given(1), _ level: Level = .device, app: Text? = nil, commits: Bool = true, forces: Bool = false
) -> RegistryCommand {
  .migrate(level, value, app: app, commits: commits, forces: forces)
}

struct MigrationTests {
  @Test(arguments: [Level.device, .installation])
  func `any app may migrate an identifier before one was given out`(level: Level) throws {
    var life = Life()
    #expect(
      try life.ask(migrate(given(1), level), as: alice) == ["OK g1 changed=yes committed=yes previous=\"\""])
    let answer = try life.ask(.get(level, app: nil), as: alice)[0]
    #expect(answer.hasPrefix("OK g1 level=\(level.rawValue) ") && answer.hasSuffix("created=t1 origin=migrated"))
    #expect(life.registry.history.map(\.cause) == [.migrated])
    #expect(life.registry.history.map(\.author) == ["uid:1000"])
  }

  @Test(arguments: [Level.device, .installation], [alice, root])
  func `a dry run creates nothing`(level: Level, peer: Peer) throws {
    var life = Life()
    #expect(
      try life.ask(migrate(given(1), level, commits: false), as: peer)
        == ["OK g1 changed=yes committed=no previous=\"\""])
    #expect(life.registry == Registry())
  }

  @Test func `a dry run with force=yes tells which identifier would be replaced`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let before = life.registry
    #expect(
      try life.ask(migrate(commits: false, forces: true), as: root)
        == ["OK g1 changed=yes committed=no previous=m.device"])
    #expect(life.registry == before)
  }

  @Test(arguments: [true, false], [Level.device, .installation])
  func `an identifier that was given out stays, in a dry run too, unless an admin forces it`(
    commits: Bool, level: Level
  ) throws {
    var life = Life()
    try life.ask(.get(level, app: nil), as: alice)
    let refusal = Refusal.conflict(
      "the \(level.rawValue) identifier was already issued; an admin can replace it with force=yes")
    let name: Text? = level == .device ? nil : "user:1000"
    #expect(life.refusal(of: migrate(given(1), level, commits: commits), as: alice) == refusal)
    #expect(life.refusal(of: migrate(given(1), level, app: name, commits: commits), as: root) == refusal)
    #expect(
      try life.ask(migrate(given(1), level, app: name, commits: commits, forces: true), as: root)[0]
        .hasPrefix("OK g1 changed=yes committed=\(commits ? "yes" : "no") previous="))
  }

  @Test(arguments: [true, false], [given(1), given(2)])
  func `force=yes requires an admin, even if nothing has to be forced`(commits: Bool, value: UUID) throws {
    var life = Life()
    let lacking = Refusal.denied(app: "user:1000", userID: 1_000, grant: "admin rights for force=yes")
    #expect(life.refusal(of: migrate(value, commits: commits, forces: true), as: alice) == lacking)
    try life.ask(migrate(given(1)), as: alice)
    #expect(life.refusal(of: migrate(value, commits: commits, forces: true), as: alice) == lacking)
  }

  @Test(arguments: [UUID.zero, .ones], [true, false])
  func `the nil and max UUIDs are refused`(value: UUID, commits: Bool) {
    for level in [Level.device, .installation] {
      let refusal = Refusal.invalidUUID(Text("\(value)"))
      #expect(Life().refusal(of: migrate(value, level, commits: commits), as: alice) == refusal)
      #expect(Life().refusal(of: migrate(value, level, commits: commits, forces: true), as: root) == refusal)
    }
  }

  @Test(arguments: [true, false], ["55555555-5555-4555-8555-000000000001", "55555555555545558555000000000001"])
  func `the current value is no change, in any spelling`(commits: Bool, text: String) throws {
    var life = Life()
    try life.ask(migrate(), as: alice)
    let before = life.registry
    let value = try #require(UUID(Text(text.uppercased())))
    #expect(
      try life.ask(migrate(value, commits: commits), as: alice)
        == ["OK g1 changed=no committed=\(commits ? "yes" : "no") previous=g1"])
    #expect(life.registry == before)
  }

  @Test(arguments: [true, false], [true, false])
  func `the identifier of another device of the account is refused, even with force=yes`(
    commits: Bool, handedOut: Bool
  ) throws {
    var life = Life()
    if handedOut { try life.ask(.get(.device, app: nil), as: alice) }
    try life.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    let refusal = Refusal.conflict("another device of the account has this identifier")
    #expect(life.refusal(of: migrate(commits: commits, forces: true), as: root) == refusal)
    if !handedOut { #expect(life.refusal(of: migrate(commits: commits), as: alice) == refusal) }
    try life.ask(.removeDevice(given(1)), as: root)
    #expect(life.refusal(of: migrate(commits: commits, forces: true), as: root) == nil)
  }

  @Test func `only the shared device identifier is compared with the account's other devices`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    #expect(life.refusal(of: migrate(given(1), .installation), as: alice) == nil)
    #expect(life.refusal(of: migrate(given(1)), as: peer("org.a")) == nil)
  }

  @Test func `a migration replaces this device in the list, keeping its place and name`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.putDevice(life.registry[.device]?.value ?? .zero, name: "desk", seen: nil), as: root)
    try life.ask(.putDevice(given(2), name: "phone", seen: nil), as: root)
    let last = life.registry.lastEvent
    try life.ask(migrate(forces: true), as: root)
    #expect(
      try life.ask(.devices, as: alice)
        == ["* g1 self=yes name=desk added=t1", "* g2 self=no name=phone added=t3", "OK 2"])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) device changed value=g1 previous=m.device cause=migrated > sharing",
        "\(last + 2) devices replaced value=g1 previous=m.device > sharing",
      ])
  }

  @Test func `a migration before first use adds the device to the list`() throws {
    var life = Life()
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.ask(migrate(), as: alice)
    #expect(try life.ask(.devices, as: alice) == ["* g2 self=no added=t1", "* g1 self=yes added=t2", "OK 2"])
  }

  @Test func `an app with its own device identifier migrates only that one`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.ask(migrate(), as: peer("org.a")) == ["OK g1 changed=yes committed=yes previous=\"\""])
    #expect(life.spoken(.device) == "m.device")
    #expect(life.spoken(.deviceOfApp("org.a")) == "g1")
    #expect(life.registry.devices.count == 1)
  }

  @Test func `migrating the installation identifier installs an app without a manifest`() throws {
    var life = Life()
    try life.ask(migrate(given(1), .installation), as: alice)
    #expect(
      life.told() == [
        "1 app installed app=user:1000 vendor=user:1000 > vendor user:1000",
        "2 installation created value=g1 cause=migrated app=user:1000 vendor=user:1000 > app user:1000",
      ])
  }

  @Test func `a reinstallation makes a migration possible again`() throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.forget(app: "user:1000"), as: alice)
    #expect(
      try life.ask(migrate(given(1), .installation), as: alice)
        == ["OK g1 changed=yes committed=yes previous=\"\""])
  }

  @Test func `a dry run is refused for the same reasons as the real migration`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.ask(.get(.installation, app: nil), as: alice)
    try life.ask(.putDevice(given(3), name: nil, seen: nil), as: root)
    for peer in [alice, root, peer("org.a"), peer("org.gone")] {
      for level in [Level.device, .installation] {
        for value in [given(1), given(3), .zero, .ones] {
          for app in [nil, "org.a", "user:1000", "org.gone"] as [Text?] {
            for forces in [true, false] {
              let real = life.refusal(of: migrate(value, level, app: app, forces: forces), as: peer)
              let dry = life.refusal(of: migrate(value, level, app: app, commits: false, forces: forces), as: peer)
              #expect(real == dry, "\(peer.app) \(level) \(value) \(app ?? "") \(forces)")
            }
          }
        }
      }
    }
  }
}
