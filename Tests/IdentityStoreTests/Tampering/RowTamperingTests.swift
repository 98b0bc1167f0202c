import IdentityCore
import IdentityWire
import Testing

@testable import IdentityStore

/// Rows of each declared table that were swapped, copied, deleted or set back with sqlite3, as root might do with good
/// intentions. The store is damaged, nothing doubtful is served, and every other kind of record is.
struct RowTamperingTests {
  /// A store with every kind of record, and its states before.
  private struct Original: Sendable {
    let files: [String: [UInt8]]
    /// The database after each commit.
    let earlier: [[UInt8]]
    let registry: Registry
    let events: [EventLine]

    init() throws {
      let workspace = try Workspace(inMemory: true)
      var earlier: [[UInt8]] = []
      func commit(_ body: (inout Store, inout Registry) throws -> Void) throws {
        try workspace.withStore { store, content in
          var registry = content.registry
          try body(&store, &registry)
          try store.mustClose()
        }
        earlier.append(try workspace.read("identityd.db"))
      }
      for batch in sample(apps: 3) + life { try commit { try $0.mustCommit($1.recorded(batch)) } }
      for second in 1...2 {
        let used = try workspace.found().registry.changes(forUsed: ["user:7"], at: later(86_400 * Int64(second)))
        try commit { try $0.mustCommit($1.recorded(used)) }
        try commit { store, _ in
          try store.protectKey(with: store.makeSecretMemory().encrypt(Array(1...32)), at: later(Int64(second)))
        }
      }
      let items = [Known(1), Known(2), Known(3), Known(4)]
      for known in items { try commit { try $0.mustCommit($1.recorded([$0.storing(known)])) } }
      try commit { try $0.mustCommit($1.recorded([$0.storing(Known(1, edition: 1), .updated)])) }
      try commit { try $0.mustCommit($1.recorded([.itemDeleted(items[3].item)])) }
      try commit { store, _ in _ = try store.rotateKey(at: later(9)) }
      let content = try workspace.found()
      files = try workspace.files()
      self.earlier = earlier
      registry = content.registry
      events = content.events
    }
  }

  private static let original = Result { try Original() }
  private static let tables = Schema.tables.map(\.name)
  private static let count = "proven rows and should hold"

  /// Edits a copy of the store, and examines a start with it.
  ///
  /// - Returns: whether the edit changed the store. The schema refuses some edits.
  private func edited(
    _ workspace: Workspace, _ table: Table, _ sql: String, early: [UInt8] = [], is faults: [String], hidesAll: Bool
  ) throws -> Bool {
    let original = try Self.original.get()
    try workspace.restore(original.files)
    try workspace.write("early", early)
    _ = try workspace.run("sqlite3", "-bail", workspace.path("identityd.db"), sql)
    try workspace.remove("early")
    if try workspace.files()["identityd.db"] == original.files["identityd.db"] { return false }
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(sql): \(content.condition)")
        #expect(faults.contains { reason.contains($0) }, "\(sql): \(reason)")
        #expect(content.registry.isPart(of: original.registry), "\(sql)")
        #expect(content.events == original.events.suffix(content.events.count), "without a gap up to the last")
        #expect(store.commit(installed(50)) == content.condition, "it takes no change")
        // An event that is not authentic hides the events before it, and puts nothing else in doubt.
        let kinds = table.kinds
        #expect(content.registry.unproven == (kinds == .events && !hidesAll ? [] : kinds), "\(sql)")
        #expect(content.registry.without(kinds) == original.registry.without(kinds), "\(sql): the others go on")
        guard hidesAll else { return }
        var served = content.registry
        served.explain(.broken("the store is damaged"))
        if kinds.contains(.items) { served.itemFault = nil }
        #expect(served == original.registry.without(kinds), "\(sql): something of it is served")
      }
    }
    return true
  }

  @Test(arguments: tables) func `row 12: a row in the place of another is named`(name: String) throws {
    let table = try #require(Schema.tables.first { $0.name == name })
    let workspace = try Workspace(inMemory: true)
    let (key, columns) = (table.columns[0], table.columns.dropFirst().joined(separator: ", "))
    let two = "CREATE TEMP TABLE two AS SELECT * FROM \(name) ORDER BY \(key) LIMIT 2;"
    let free = key == "n" || key == "last" || key == "only" ? "max(\(key)) + 7" : "max(\(key)) || 'x'"
    let edits = [
      "\(two) UPDATE \(name) SET proof = (SELECT proof FROM two WHERE two.\(key) <> \(name).\(key)) WHERE \(key) IN (SELECT \(key) FROM two)",
      "UPDATE \(name) SET proof = x'' WHERE \(key) = (SELECT max(\(key)) FROM \(name))",
      "UPDATE \(name) SET proof = substr(proof, 1, 16) WHERE \(key) = (SELECT max(\(key)) FROM \(name))",
      "INSERT INTO \(name) SELECT \(free), \(columns) FROM \(name)",
    ]
    var tried = 0
    for sql in edits where try edited(workspace, table, sql, is: ["a row of \(name) ("], hidesAll: false) { tried += 1 }
    #expect(tried >= 2)
  }

  @Test(arguments: tables) func `a deleted row is noticed, and nothing of its kind is served`(name: String) throws {
    let table = try #require(Schema.tables.first { $0.name == name })
    let workspace = try Workspace(inMemory: true)
    let key = table.columns[0]
    for sql in [
      "DELETE FROM \(name) WHERE \(key) = (SELECT min(\(key)) FROM \(name))",
      "DELETE FROM \(name) WHERE \(key) = (SELECT max(\(key)) FROM \(name))", "DELETE FROM \(name)",
    ] {
      let faults = [Self.count] + (table.kinds == .events ? ["missing"] : [])
      #expect(try edited(workspace, table, sql, is: faults, hidesAll: true), "\(sql)")
    }
  }

  @Test(arguments: tables)
  func `row 16: a row of an earlier time is noticed, and nothing of its kind is served`(name: String) throws {
    let table = try #require(Schema.tables.first { $0.name == name })
    let workspace = try Workspace(inMemory: true)
    let key = table.columns[0]
    let rows = "SELECT \(key) FROM (SELECT * FROM early.\(name) EXCEPT SELECT * FROM main.\(name))"
    var tried = 0
    for database in try Self.original.get().earlier {
      // Changed rows, and rows that are no longer there.
      for present in ["IN", "NOT IN"] {
        let sql = """
          ATTACH '\(workspace.path("early"))' AS early;
          CREATE TEMP TABLE old AS SELECT * FROM early.\(name)
          WHERE \(key) IN (\(rows)) AND \(key) \(present) (SELECT \(key) FROM main.\(name));
          REPLACE INTO main.\(name) SELECT * FROM old
          """
        let faults = ["are proven, but not all of them are current", Self.count]
        if try edited(workspace, table, sql, early: database, is: faults, hidesAll: true) { tried += 1 }
      }
    }
    // A batch of events never changes.
    #expect(tried > 0 || table.kinds == .events)
  }
}

extension Registry {
  /// Returns the registry without the records of these kinds, and without the doubt about them.
  func without(_ kinds: Records) -> Registry {
    var rest = self
    rest.doubt(kinds, incomplete: [])
    if kinds.contains(.items) { rest.itemFault = nil }
    return rest
  }
}
