import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A store that an earlier release left, and what has to become of it.
struct EarlierStore {
  let version: Int64
  /// What it holds.
  let registry: Registry
  let events: [Event]
  /// The items with their secrets.
  var items: [Known] = []
  /// What a migration removes, in SQL, and which tables it makes anew; without any names, all.
  let migration: (removes: String, makes: [String])

  func files() throws -> [String: [UInt8]] { try fixtureFiles("version-\(version)") }

  /// What is served of it as long as it cannot be migrated: items there are from version 3 on.
  func unmigrated(_ condition: String) -> Registry {
    version < 3 ? registry.locked("items cannot be used as long as the store cannot be: \(condition)") : registry
  }

  /// Expects a store of this version with all that was in it, which nothing is to be said of.
  func expectMigrated(_ workspace: Workspace, at place: SourceLocation = #_sourceLocation) throws {
    #expect(try workspace.sql("PRAGMA user_version") == "13\n", sourceLocation: place)
    try workspace.withStore { store, content in
      #expect(content.registry == registry, sourceLocation: place)
      #expect(content.condition == .writable, sourceLocation: place)
      #expect(content.events == events, sourceLocation: place)
      #expect(content.notices == [], sourceLocation: place)
      try store.expectOpen(items, at: place)
    }
  }

  // MARK: Cut off

  /// The files of a migration that was killed with everything in the log.
  private func killed() throws -> [String: [UInt8]] {
    let migrated = try Workspace()
    try migrated.restore(try files())
    _ = try migrated.found()
    var dump = try migrated.sql(([".dump"] + migration.makes).joined(separator: " ")).split(separator: "\n").filter(
      Self.isContent)
    if !migration.makes.isEmpty {
      dump = try migrated.sql(".dump store").split(separator: "\n").filter(Self.isContent) + dump
    }
    // The same transaction once more, by a tool that is killed with everything in the log.
    let script =
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;\nBEGIN; \(migration.removes)\n"
      + dump.joined(separator: "\n") + "\nPRAGMA user_version=13; COMMIT;\n.system kill -9 $PPID\n"
    let file = migrated.root + "/script"
    try Data(script.utf8).write(to: URL(filePath: file))
    // On disk before anything is wrapped in it.
    let masterKey = try migrated.read("master.key")
    try migrated.restore(try files())
    try migrated.write("master.key", masterKey)
    _ = try migrated.run("/bin/sh", "-c", "exec sqlite3 \"$0\" < \"$1\"", migrated.path("identityd.db"), file)
    try migrated.remove("identityd.db-shm")
    return try migrated.files()
  }

  private static func isContent(_ line: Substring) -> Bool {
    !["BEGIN TRANSACTION;", "COMMIT;"].contains(line) && !line.hasPrefix("PRAGMA")
  }

  /// Expects that a migration which is cut off at any moment leaves either version whole.
  func expectWholeWhereverCut() throws {
    let files = try killed()
    let log = try #require(files["identityd.db-wal"])
    try #require(log.count > 20_000)
    let workspace = try Workspace(inMemory: true)
    var migrations = 0
    let lengths = Array(stride(from: 0, to: log.count, by: 512)) + [log.count]
    for length in lengths {
      var cut = files
      cut["identityd.db-wal"] = Array(log.prefix(length))
      try workspace.restore(cut)
      let content = try workspace.found()
      #expect(content.registry == registry, "\(length) of \(log.count) bytes")
      #expect(content.events == events, "\(length) of \(log.count) bytes")
      #expect(content.condition == .writable, "\(length) of \(log.count) bytes")
      migrations += content.notices == [.migrated(from: version)] ? 1 : 0
      #expect(try workspace.read("master.key") == files["master.key"], "the one of the first try is used")
      if length % 4_096 == 0 { try expectMigrated(workspace) }
    }
    // The last one has the whole log: there was nothing left to migrate.
    #expect(migrations > 10 && migrations < lengths.count)
    try expectMigrated(workspace)
  }

  // MARK: Damaged

  /// Expects that a flipped bit, wherever it is, is noticed or harmless, and that a damaged file is left as it is.
  func expectFlipsNoticed(every step: Int) throws {
    let workspace = try Workspace(inMemory: true)
    let files = try files()
    let database = try #require(files["identityd.db"])
    var outcomes: [String: Int] = [:]
    for place in stride(from: 0, to: database.count, by: step) {
      var changed = files
      changed["identityd.db"]?[place] ^= 1 << UInt8(place % 8)
      try workspace.restore(changed)
      outcomes[try live(workspace, changed, "byte \(place)"), default: 0] += 1
    }
    #expect(outcomes["damaged", default: 0] > 50, "\(outcomes)")
    #expect(outcomes["exact", default: 0] > 50, "\(outcomes)")
  }

  private func live(_ workspace: Workspace, _ files: [String: [UInt8]], _ what: String) throws -> String {
    do {
      let content = try workspace.withStore { store, content in
        try expectNoOtherSecret(store, content.registry, what)
        return content
      }
      if content.condition == .writable {
        #expect(content.registry == registry, "\(what)")
        #expect(content.events == events, "\(what)")
        return "exact"
      }
      if case .unwritable = content.condition {
        // SQLite met the damage only when it made the new tables: all that is stored is proven, and a copy is whole.
        #expect(content.registry == unmigrated("read-only"), "\(what)")
        #expect(try workspace.read("identityd.db") == files["identityd.db"], "\(what)")
        let healed = try workspace.withStore { store, _ in store.heal() }
        #expect(healed == registry, "\(what)")
        try expectMigrated(workspace)
        return "healed"
      }
      #expect(content.condition.damage != nil, "\(what): \(content.condition)")
      #expect(content.registry.isPart(of: registry), "\(what)")
      let name = content.asideNames.first ?? "identityd.db"
      #expect(try workspace.read(name) == files["identityd.db"], "\(what)")
      #expect(try workspace.read("store.key") == files["store.key"])
      #expect(workspace.exists("master.key") == (files["master.key"] != nil), "nothing is made for a damaged store")
      return "damaged"
    } catch is StoreFailure {
      #expect(try workspace.read("identityd.db") == files["identityd.db"], "\(what)")
      return "refused"
    }
  }

  /// A secret that is opened is the right one; else it is said to be damaged.
  private func expectNoOtherSecret(_ store: borrowing Store, _ found: Registry, _ what: String) throws {
    for known in items where found.itemFault == nil && found.items[known.item.key] == known.item {
      do {
        let secret = try store.open(known.item)
        #expect(secret == known.secret, "\(what)")
      } catch let refusal as Refusal {
        #expect(refusal == .damagedSecret(known.item), "\(what)")
      }
    }
  }
}
