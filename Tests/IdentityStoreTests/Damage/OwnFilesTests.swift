import Foundation
import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// Files that are taken away under an open store. It must acknowledge nothing that the next start would not find.
struct OwnFilesTests {
  private static let items = (1...3 as ClosedRange<Int64>).map { Known($0) }

  /// A loss of files, and the expected text of the refusal.
  struct Loss: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let words: String
    /// Whether all acknowledged changes still exist, so that the store can be rewritten. Nil if that depends on the
    /// data that SQLite has in memory.
    var isMendable: Bool? = true
    let happen: @Sendable (Workspace) throws -> Void
  }

  static let losses: [Loss] = [
    .init(testDescription: "the database deleted", words: "replaced or deleted") { try $0.remove("identityd.db") },
    .init(testDescription: "the log deleted", words: "replaced or deleted") { try $0.remove("identityd.db-wal") },
    .init(testDescription: "the key deleted", words: "store.key") { try $0.remove("store.key") },
    .init(testDescription: "the key replaced", words: "store.key") {
      try $0.write("store.key", [UInt8](repeating: 65, count: 65))
    },
    .init(testDescription: "the master key deleted", words: "master.key") { try $0.remove("master.key") },
    .init(testDescription: "the master key replaced", words: "master.key") {
      try $0.write("master.key", [UInt8](repeating: 65, count: 65))
    },
    .init(testDescription: "everything deleted", words: "store.key") { workspace in
      for name in try workspace.names() where name != "lock" { try workspace.remove(name) }
    },
    .init(testDescription: "the database cut short", words: "truncated", isMendable: false) {
      try cut("identityd.db", in: $0)
    },
    .init(testDescription: "the log cut short", words: "truncated", isMendable: nil) {
      try cut("identityd.db-wal", in: $0)
    },
  ]

  private static func cut(_ name: String, in workspace: Workspace) throws {
    let file = try FileHandle(forUpdating: URL(filePath: workspace.path(name)))
    let length = try file.seekToEnd()
    try file.truncate(atOffset: length / 2)
    try file.close()
  }

  @Test(arguments: losses)
  func `row 14: a file that was taken away is noticed before the next acknowledgement`(loss: Loss) throws {
    let workspace = try Workspace()
    let expected = try workspace.withStore { store, content -> Registry? in
      var registry = content.registry
      for batch in sample(apps: 3) { try store.mustCommit(registry.recorded(batch)) }
      for known in Self.items { try store.mustCommit(registry.recorded([store.storing(known)])) }
      try loss.happen(workspace)
      let refused = store.commit(installed(500))
      guard case .unwritable(let reason) = refused else { throw Failure("committed: \(String(describing: refused))") }
      #expect(reason.contains(loss.words), "\(reason)")
      let healed = store.heal()
      if let isMendable = loss.isMendable { #expect((healed != nil) == isMendable, "\(store.condition)") }
      guard let healed else {
        // No commit succeeds while the files are missing.
        #expect(store.commit(installed(500)) != nil)
        return nil
      }
      #expect(healed == registry)
      for change in installed(501) { registry.apply(change) }
      try store.mustCommit(installed(501))
      return registry
    }
    guard let expected else { return }
    try workspace.withStore { store, content in
      #expect(content.condition == .writable)
      #expect(content.registry == expected)
      for known in Self.items {
        let secret = try store.open(known.item)
        #expect(secret == known.secret)
      }
    }
    // A file found in place of a key is kept.
    if loss.testDescription.hasSuffix("replaced") {
      let aside = try workspace.names().first { $0.contains(".key.damaged-") }
      #expect(try workspace.read(try #require(aside)) == [UInt8](repeating: 65, count: 65))
    }
  }

  @Test func `row 14: a state directory that was moved away takes no change until it is back`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, content in
      var registry = content.registry
      try store.mustCommit(registry.recorded(installed(1)))
      let elsewhere = workspace.root + "/elsewhere"
      try FileManager.default.moveItem(atPath: workspace.state, toPath: elsewhere)
      for isReplaced in [false, true] {
        if isReplaced { try workspace.makeState() }
        let refused = store.commit(installed(2))
        guard case .unwritable(let reason) = refused else { throw Failure("committed: \(String(describing: refused))") }
        #expect(reason.contains("was moved away while the daemon ran"), "\(reason)")
        let healed = store.heal()
        #expect(healed == nil)
      }
      #expect(try workspace.names() == [])
      try FileManager.default.removeItem(atPath: workspace.state)
      try FileManager.default.moveItem(atPath: elsewhere, toPath: workspace.state)
      let healed = store.heal()
      #expect(healed == registry)
      try store.mustCommit(installed(3))
    }
  }

  @Test func `a master key that appears late is left alone`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, content in
      var registry = content.registry
      for known in Self.items { try store.mustCommit(registry.recorded([store.storing(known)])) }
    }
    let key = try workspace.read("master.key")
    try workspace.remove("master.key")
    try workspace.withStore { store, content in
      #expect(content.registry.itemFault != nil)
      try workspace.write("master.key", key)
      try store.mustCommit(installed(1))
    }
    #expect(try workspace.read("master.key") == key)
    #expect(try workspace.found().registry.itemFault == nil)
  }
}

/// The store's key has a checksum, so that nothing is ever derived from a wrong key.
struct KeyChecksumTests {
  private func key(in workspace: Workspace) throws -> [UInt8] { try workspace.read("store.key") }

  @Test func `row 12: nothing is derived from a key with a flipped bit`() throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.commit(sample(apps: 3))
    let (files, key) = (try workspace.files(), try key(in: workspace))
    for bit in stride(from: 0, to: 8 * key.count, by: Trial.isShort ? 7 : 1) {
      var changed = files
      changed["store.key"]?[bit / 8] ^= 1 << UInt8(bit % 8)
      try workspace.restore(changed)
      try workspace.withStore { store, content in
        #expect(content.condition.damage != nil && content.derivation == nil, "bit \(bit)")
        #expect(content.registry.isNothing, "bit \(bit)")
      }
    }
  }

  @Test func `a key without a checksum is refused`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    let digits = try key(in: workspace).split(separator: UInt8(ascii: " "))[2]
    try workspace.write("store.key", Array(digits) + [UInt8(ascii: "\n")])
    try workspace.withStore { store, content in
      #expect(content.condition.damage != nil && content.derivation == nil)
      #expect(content.registry.isNothing)
    }
  }

  @Test func `the key of another store is refused`() throws {
    let (workspace, other) = (try Workspace(), try Workspace())
    for made in [workspace, other] { try made.commit(sample(apps: 3)) }
    try workspace.write("store.key", try key(in: other))
    try workspace.withStore { store, content in
      #expect(content.condition.damage != nil && content.registry.isNothing)
      #expect(content.derivation == nil)
    }
  }
}
