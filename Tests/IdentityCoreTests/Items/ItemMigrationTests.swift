import IdentityCore
import Testing

private let value = "55555555-5555-4555-8555-000000000001"

private func migrate(
  _ service: Text = "old-id", in group: Text? = nil, level: Level = .device, app: Text? = nil, commits: Bool = true,
  forces: Bool = false
) -> RegistryCommand {
  .migrateFromItem(
    level, ItemName(service: service, account: "a", group: group), app: app, commits: commits, forces: forces)
}

struct ItemMigrationTests {
  /// Returns a `Life` with three apps. The first has an identifier in an item of its own group, and in one
  /// of a shared group.
  private func life(_ secret: String = value) throws(Refusal) -> Life {
    var life = Life.withThreeApps()
    try life.ask(.add("old-id", "a", secret), as: orgA)
    try life.ask(.add("old-id", "a", secret, in: "org.shared"), as: orgA)
    return life
  }

  @Test(arguments: [nil, "org.a", "org.shared"] as [Text?], [Level.device, .installation])
  func `migrate adopts the identifier in the secret of an item`(group: Text?, level: Level) throws {
    var life = try life()
    #expect(
      try life.ask(migrate(in: group, level: level), as: orgA) == ["OK g1 changed=yes committed=yes previous=\"\""])
    let answer = try life.ask(.get(level, app: nil), as: orgA)[0]
    #expect(answer.hasPrefix("OK g1 level=\(level.rawValue) ") && answer.hasSuffix(" origin=migrated"))
    #expect(life.itemKeys.count == 2)
  }

  @Test(arguments: [value.uppercased(), value.replacing("-", with: "")])
  func `the identifier may be in upper case or without hyphens`(secret: String) throws {
    var life = try life(secret)
    #expect(try life.ask(migrate(), as: orgA) == ["OK g1 changed=yes committed=yes previous=\"\""])
  }

  @Test(arguments: [Level.device, .installation])
  func `a dry run reports the migration and changes nothing`(level: Level) throws {
    var life = try life()
    let before = life.registry
    #expect(
      try life.ask(migrate(level: level, commits: false), as: orgA)
        == ["OK g1 changed=yes committed=no previous=\"\""])
    #expect(life.registry == before)
  }

  @Test func `a dry run by an app without a manifest does not install the app`() throws {
    var life = Life()
    try life.ask(.add("old-id", "a", value, in: "user:1000"), as: root)
    try life.ask(migrate(level: .installation, commits: false), as: alice)
    #expect(Array(life.registry.apps.keys) == ["user:0"])
    try life.ask(migrate(level: .installation), as: alice)
    #expect(life.registry.apps.keys.sorted() == ["user:0", "user:1000"])
    #expect(life.spoken(.installation("user:1000")) == "g1")
  }

  @Test(arguments: [true, false])
  func `the current value is no change`(commits: Bool) throws {
    var life = try life()
    try life.ask(migrate(), as: orgA)
    let before = life.registry
    #expect(
      try life.ask(migrate(commits: commits), as: orgA)
        == ["OK g1 changed=no committed=\(commits ? "yes" : "no") previous=g1"])
    #expect(life.registry == before)
  }

  @Test(arguments: [true, false])
  func `an identifier that was given out stays, unless an admin uses force=yes`(commits: Bool) throws {
    var life = try life()
    try life.ask(.get(.device, app: nil), as: orgA)
    let conflict = Refusal.conflict("the device identifier was already issued; an admin can replace it with force=yes")
    #expect(life.refusal(of: migrate(commits: commits), as: orgA) == conflict)
    #expect(life.refusal(of: migrate(in: "org.a", commits: commits), as: root) == conflict)
    #expect(
      life.refusal(of: migrate(commits: commits, forces: true), as: orgA)
        == .denied(app: "org.a", userID: 998, grant: "admin rights for force=yes"))
    #expect(
      try life.ask(migrate(in: "org.a", commits: commits, forces: true), as: root)
        == ["OK g1 changed=yes committed=\(commits ? "yes" : "no") previous=m.device"])
  }

  @Test(arguments: [true, false], [Level.device, .installation])
  func `the item is read with the peer's rights, and a refusal reveals nothing else`(
    commits: Bool, level: Level
  ) throws {
    let life = try life()
    for (service, group) in [("old-id", "org.a"), ("none", "org.a"), ("old-id", "org.media")] as [(Text, Text)] {
      #expect(
        life.refusal(of: migrate(service, in: group, level: level, commits: commits), as: alice)
          == .denied(
            app: "user:1000", userID: 1_000, grant: "access group \(group); AccessGroups= of its manifest can grant it")
      )
    }
    #expect(life.refusal(of: migrate("old-id", in: "org.a", level: level, commits: commits), as: orgB) != nil)
    #expect(life.refusal(of: migrate("old-id", in: "org.shared", level: level, commits: commits), as: orgB) == nil)
  }

  @Test(arguments: [true, false])
  func `a missing item is not found`(commits: Bool) throws {
    let life = try life()
    let refusal = Refusal.notFound("no such item is in group org.a")
    #expect(life.refusal(of: migrate("none", commits: commits), as: orgA) == refusal)
    #expect(
      life.refusal(of: migrate(commits: commits), as: orgB)
        == .notFound("no such item is in group org.b"))
  }

  @Test(
    arguments: ["", "geheim", "55555555-5555-4555-8555-00000000000", "{\(value)}", " \(value)", "\(value)\n"],
    [true, false])
  func `a secret that is no UUID is refused and not repeated`(secret: String, commits: Bool) throws {
    let life = try life(secret)
    #expect(life.refusal(of: migrate(commits: commits), as: orgA) == .invalidUUID("the secret"))
  }

  @Test(arguments: [UUID.zero, .ones], [true, false])
  func `the nil and max UUIDs are refused`(placeholder: UUID, commits: Bool) throws {
    let life = try life("\(placeholder)")
    for peer in [orgA, root] {
      let refusal = life.refusal(of: migrate(in: "org.a", commits: commits), as: peer)
      guard case .invalidUUID? = refusal else {
        Issue.record("\(String(describing: refusal))")
        continue
      }
    }
  }

  @Test(arguments: [true, false])
  func `an admin can migrate for a named app, from any group`(commits: Bool) throws {
    var life = try life()
    #expect(
      life.refusal(of: migrate(level: .installation, app: "org.a", commits: commits), as: orgB) != nil)
    #expect(
      life.refusal(of: migrate(in: "org.shared", level: .installation, app: "org.a", commits: commits), as: orgB)
        == .denied(app: "org.b", userID: 998, grant: "admin rights to name another app"))
    #expect(
      life.refusal(of: migrate(in: "org.a", level: .installation, app: "org.none", commits: commits), as: root)
        == .notFound("no such app is installed"))
    #expect(
      try life.ask(migrate(in: "org.a", level: .installation, app: "org.b", commits: commits), as: root)
        == ["OK g1 changed=yes committed=\(commits ? "yes" : "no") previous=\"\""])
    #expect(life.spoken(.installation("org.b")) == (commits ? "g1" : nil))
  }

  @Test func `an error of opening the secret is the answer`() throws {
    let life = try life()
    let context = Context(
      peer: orgA, in: life.surroundings, random: { () throws(Refusal) in given(1) },
      machine: { (_) throws(Refusal) in nil }, digest: { $0 }, fingerprint: { $0 })
    for commits in [true, false] {
      #expect(throws: Context.noSecrets) { try life.registry.decide(migrate(commits: commits), context) }
    }
  }

  @Test func `a migration from an item is always left to the writer, which can open secrets`() throws {
    let life = try life()
    #expect(try life.registry.answer(migrate(commits: false), for: orgA) == nil)
    #expect(try life.registry.answer(migrate(commits: true), for: orgA) == nil)
  }

  @Test func `the events are those of any migration, and none mentions the item`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    try life.ask(migrate(), as: orgA)
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) device created value=g1 cause=migrated > sharing",
        "\(last + 2) devices added value=g1 > sharing",
      ])
    #expect(life.registry.history.map(\.author) == ["unit:some.service"])
  }
}
