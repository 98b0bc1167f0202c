import Foundation
import IdentityCore
import IdentityStore
import LinuxSystem
import Testing

struct CommitTests {
  @Test(arguments: [0, 1, 2, 40]) func `committed changes are found by the next start`(apps: Int) throws {
    let workspace = try Workspace()
    let committed = try workspace.commit(sample(apps: apps))
    #expect(committed == Registry(applying: sample(apps: apps)))
    let content = try workspace.found()
    #expect(content.registry == committed)
    #expect(content.condition == .writable)
    #expect(content.notices == [])
  }

  @Test func `an app without identifiers, a random device and odd names are read back unchanged`() throws {
    let workspace = try Workspace()
    let odd: [Text] = ["unit:é.service", "unit:e\u{301}.service", "K", "\u{212A}", "'; DROP TABLE app; --", ""]
    let batch: [Change] =
      [made(.device, uuid(3), .random)]
      + odd.map { .appInstalled($0, App(installed: start)) } + odd.map { made(.installation($0), uuid(4), .random) }
      + odd.map { made(.vendor($0), uuid(5), .random) } + odd.map { made(.deviceOfVendor($0), uuid(6), .random) }
      + odd.map { made(.deviceOfApp($0), uuid(7), .random) } + odd.map { .accountSet($0) }
    try workspace.commit([batch])
    let registry = try workspace.found().registry
    #expect(registry == Registry(applying: [batch]))
    #expect(registry.apps.count == odd.count)
  }

  @Test func `row 10: committed changes are found after a kill, wherever the log stands`() throws {
    let workspace = try Workspace()
    let other = try Workspace()
    try workspace.withStore { store, _ in
      var batches: [[Change]] = []
      for batch in sample(apps: 12) {
        try store.mustCommit(batch)
        batches.append(batch)
        // The next start has only the files that are on disk at this moment.
        try other.restore(try workspace.files())
        let content = try other.found()
        #expect(content.registry == Registry(applying: batches))
        #expect(content.condition == .writable)
      }
    }
  }

  @Test func `a store that was released without closing serves everything`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in for batch in sample(apps: 5) { try store.mustCommit(batch) } }
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: sample(apps: 5)))
    #expect(content.condition == .writable)
  }

  @Test func `revisions count transactions and continue across starts`() throws {
    let workspace = try Workspace()
    for _ in 0..<2 {
      let next = try workspace.found().registry.apps.count
      try workspace.commit([installed(next), installed(next + 1) + installed(next + 2)])
    }
    #expect(try workspace.sql("SELECT revision FROM store") == "4\n")
    #expect(
      try workspace.sql("SELECT group_concat(revision) FROM (SELECT revision FROM app ORDER BY 1)") == "1,2,2,3,4,4\n")
    #expect(try workspace.found().condition == .writable)
  }

  @Test func `an empty batch writes nothing`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      let before = try workspace.files()
      try store.mustCommit([] as [Change])
      #expect(try workspace.files() == before)
    }
  }

  @Test func `a batch that fails in the middle leaves no trace`() throws {
    let workspace = try Workspace()
    try workspace.commit([installed(1)])
    try workspace.withStore { store, content in
      // The second row exists already.
      let condition = store.commit([deviceMade] + installed(1))
      guard case .unwritable = condition else {
        Issue.record("\(String(describing: condition))")
        return
      }
      #expect(store.condition == condition)
      // No further commit succeeds before the store has been rewritten.
      #expect(store.commit(installed(2)) == condition)
      let healed = store.heal()
      #expect(healed == content.registry)
      #expect(store.condition == .writable)
      try store.mustCommit(installed(3))
    }
    #expect(try workspace.found().registry == Registry(applying: [installed(1), installed(3)]))
  }

  @Test func `the content found at the start is handed out once`() throws {
    let workspace = try Workspace()
    try workspace.commit([[deviceMade]])
    try workspace.withStore { store, first in
      let second = store.takeContent()
      #expect(first.registry[.device] != nil)
      #expect(second.registry == Registry())
    }
  }

  @Test func `checkpoints keep the log small, and no change is lost`() throws {
    let workspace = try Workspace(inMemory: true)
    var options = Store.Options()
    options.checkpointSize = 65_536
    let batches = sample(apps: 300)
    try workspace.withStore(options: options) { store, _ in
      for batch in batches { try store.mustCommit(batch) }
      #expect(try workspace.read("identityd.db-wal").count < 4 * options.checkpointSize)
      let other = try Workspace(inMemory: true)
      try other.restore(try workspace.files())
      #expect(try other.found().registry == Registry(applying: batches))
    }
  }

  @Test func `closing leaves an empty log and a witness of the last revision`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 4))
    #expect(try workspace.read("identityd.db-wal") == [])
    let witness = String(decoding: try workspace.read("witness"), as: UTF8.self)
    #expect(witness.hasPrefix("identityd-witness 1 \(identity) 5 "))
  }

  @Test func `a released store keeps no file open`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 1))
    try workspace.withStore { store, _ in
      try store.mustCommit(installed(9))
      #expect(try openFiles(under: workspace.root).isEmpty == false)
    }
    #expect(try openFiles(under: workspace.root) == [])
  }

  @Test func `days of use are stored, replaced and deleted, and read back`() throws {
    let workspace = try Workspace()
    let id: Text = "user:1000"
    func use(_ day: Int64) -> AppUse { AppUse(day: day, date: Day(number: 20_000 + day)) }
    var changes: [[Change]] = [
      [
        .appInstalled(id, App(installed: Timestamp(milliseconds: 1))), .dayBegan(use(1)),
        .appUsed(id, use(1)),
      ]
    ]
    try workspace.commit(changes)
    for step in [
      [.dayBegan(use(2)), .appUsed(id, use(2))],
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

  @Test func `identifiers that the history forgot are deleted from the store`() throws {
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
    #expect(Array(found.registry.history) == [identifier(2)])
    #expect(try workspace.sql("SELECT count(*) FROM identifier") == "1\n")
    // One that is not there as it was written fails the whole.
    try workspace.withStore { store, _ in
      let wrong = NumberedIdentifier(number: 2, identifier: identifier(7))
      #expect(store.commit([.identifierForgotten(wrong)]) != nil)
    }
  }
}

/// Returns the files below a folder that this process has open.
func openFiles(under folder: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { number in
    let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
    return target.flatMap { $0.hasPrefix(folder + "/") ? $0 : nil }
  }
}
