import IdentityCore
import Testing

@testable import IdentityStore

/// A store of schema version 4 holds what one of this version does, but for the days on which apps were used.
@Suite struct VersionFourTests {
  /// Makes a store of version 4 out of one of this version.
  private func makeEarlier(_ workspace: Workspace) throws {
    try workspace.sql("DROP TABLE app_use")
    try workspace.setBack(to: 4)
  }

  @Test func `row 18: it becomes one of this version, with all that it holds`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4))
    let registry = try workspace.found().registry
    try makeEarlier(workspace)
    let content = try workspace.found()
    #expect(content.notices == [.migrated(from: 4)])
    #expect(content.registry == registry)
    #expect(content.condition == .writable)
    #expect(try workspace.sql("PRAGMA user_version") == "\(Schema.version)\n")
    #expect(try workspace.found().notices == [])
  }

  @Test func `days are stored, replaced and forgotten, and read back`() throws {
    let workspace = try Workspace()
    let id: Text = "user:1000"
    func use(_ day: Int64) -> AppUse { AppUse(day: day, date: Day(number: 20_000 + day)) }
    var changes: [[Change]] = [
      [
        .appInstalled(id, App(installed: Timestamp(milliseconds: 1))), .dayBegan(use(1), isFirst: true),
        .appUsed(id, use(1), isFirst: true),
      ]
    ]
    try workspace.commit(changes)
    for step in [
      [.dayBegan(use(2), isFirst: false), .appUsed(id, use(2), isFirst: false)],
      [.appUseForgotten(id), .appUninstalled(id)],
    ] as [[Change]] {
      try workspace.commit([step])
      changes += [step]
      let found = try workspace.found()
      #expect(found.registry == Registry(applying: changes))
      #expect(found.condition == .writable)
      #expect(found.registry.day == use(2))
    }
  }

  @Test func `identifiers that the history let go of are gone from the store`() throws {
    let workspace = try Workspace()
    let app = Change.appInstalled("user:1000", App(installed: Timestamp(milliseconds: 1)))
    func identifier(_ number: UInt64, end: Identifier.End? = nil) -> Identifier {
      Identifier(
        scope: .installation("user:1000"), value: UUID(high: 1, low: number).stamped(version: 4),
        created: Timestamp(milliseconds: Int64(number)), origin: .random, cause: .firstUse, author: "uid:1000", end: end
      )
    }
    let end = Identifier.End(time: Timestamp(milliseconds: 9), cause: .uninstalled)
    let forgotten = NumberedIdentifier(number: 1, identifier: identifier(1, end: end))
    let changes: [[Change]] = [
      [app, .identifierMade(identifier(1)), .identifierEnded(.installation("user:1000"), end)],
      [.identifierMade(identifier(2)), .identifierForgotten(forgotten)],
    ]
    try workspace.commit(changes)
    let found = try workspace.found()
    #expect(found.registry == Registry(applying: changes))
    #expect(found.registry.history.all == [identifier(2)])
    #expect(try workspace.sql("SELECT count(*) FROM identifier") == "1\n")
    // One that is not there as it was written fails the whole.
    try workspace.withStore { store, _ in
      let wrong = NumberedIdentifier(number: 2, identifier: identifier(7))
      #expect(store.commit([.identifierForgotten(wrong)]) != nil)
    }
  }
}
