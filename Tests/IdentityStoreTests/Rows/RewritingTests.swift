import IdentityCore
import IdentityStore
import Testing

/// The files that an interrupted rewrite leaves, and the start after it.
struct RewritingTests {
  private static let old = sample(apps: 3)
  private static let new = old + [installed(10), installed(11)]

  /// Returns the files of a killed store, whose changes are all still in its log.
  private func killed(_ workspace: Workspace, after batches: [[Change]]) throws -> [String: [UInt8]] {
    try workspace.withStore { store, _ in
      for batch in batches { try store.mustCommit(batch) }
      return try workspace.files()
    }
  }

  /// The points at which a rewrite can be interrupted, after the rewritten file got its name.
  enum Step: CaseIterable { case logIsThere, logIsRemoved, logIsEmpty, draftOfAnotherTry }

  @Test(arguments: Step.allCases) func `row 9: an interrupted rewrite is finished at the start`(step: Step) throws {
    let workspace = try Workspace()
    var files = try killed(workspace, after: Self.old)
    try #require(files["identityd.db-wal"]?.isEmpty == false)
    // The rewritten store has the same identity and key, and more commits than the old store's log.
    let further = try Workspace()
    try further.restore(files)
    try further.commit([installed(10), installed(11)])
    try further.sql("VACUUM INTO '\(further.path("rewritten"))'")
    files["identityd.db.rewritten"] = try further.read("rewritten")
    switch step {
    case .logIsThere: break
    case .logIsRemoved: files["identityd.db-wal"] = nil
    case .logIsEmpty: files["identityd.db-wal"] = []
    case .draftOfAnotherTry: files["identityd.db.draft"] = Array("half a page".utf8)
    }
    try workspace.restore(files)
    let content = try workspace.withStore { store, content in
      try store.mustCommit(installed(12))
      return content
    }
    #expect(content.registry == Registry(applying: Self.new))
    #expect(content.condition == .writable)
    #expect(content.notices.first == .finishedRewrite)
    #expect(try workspace.names() == storeNames)
    let next = try workspace.found()
    #expect(next.registry == Registry(applying: Self.new + [installed(12)]))
    #expect(next.notices == [])
  }

  @Test func `row 9: an unfinished draft is removed, and the old store is served`() throws {
    let workspace = try Workspace()
    try workspace.commit(Self.old)
    try workspace.write("identityd.db.draft", Array(try workspace.read("identityd.db").prefix(5_000)))
    try workspace.write("identityd.db.draft-journal", [1, 2, 3])
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: Self.old))
    #expect(content.condition == .writable)
    #expect(content.notices == [])
    #expect(try workspace.names() == storeNames)
  }

  @Test func `a leftover draft does not prevent a rewrite`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      for batch in Self.old { try store.mustCommit(batch) }
      try workspace.write("identityd.db.draft", Array("half a page".utf8))
      let healed = store.heal()
      #expect(healed == Registry(applying: Self.old))
    }
    #expect(try workspace.found().registry == Registry(applying: Self.old))
  }

  @Test func `a rewrite that cannot put its file in place is finished by the next attempt`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      for batch in Self.old { try store.mustCommit(batch) }
      // A folder in place of the log can be neither removed nor ignored.
      try workspace.remove("identityd.db-wal")
      try workspace.makeFolder("identityd.db-wal")
      let inVain = store.heal()
      #expect(inVain == nil)
      guard case .unwritable = store.condition else {
        Issue.record("\(store.condition)")
        return
      }
      #expect(store.commit(installed(20)) == store.condition)
      try workspace.remove("identityd.db-wal")
      let healed = store.heal()
      #expect(healed == Registry(applying: Self.old))
      try store.mustCommit(installed(21))
    }
    #expect(try workspace.found().registry == Registry(applying: Self.old + [installed(21)]))
  }
}
