import IdentityCore
import IdentityStore
import IdentityWire
import Testing

/// Rows that replace others, and a log that is overwritten from its beginning.
struct ReplacingTests {
  @Test func `of several changes of one row in a batch the last one is stored`() throws {
    let workspace = try Workspace()
    let items = (0...3 as ClosedRange<UInt64>).map { Known(1, edition: $0, length: 20 + Int($0)) }
    var registry = Registry()
    try workspace.withStore { store, _ in
      let batches: [[Change]] = try [
        // Rows that are added and changed in one batch, and a row that is changed and deleted in one batch.
        [
          .tokenStored(token(1), .created), .tokenStored(token(1, edition: 1), .replaced),
          .tokenStored(token(2), .created), .tokenStored(token(2, edition: 1), .replaced),
          store.storing(items[0], .added), store.storing(items[1], .replaced),
        ],
        [
          .tokenStored(token(2, edition: 2), .replaced), .tokenStored(token(1, edition: 2), .replaced),
          store.storing(items[2], .replaced), .tokenStored(token(2, edition: 3), .confirmed),
          .tokenDeleted(token(1, edition: 2)), store.storing(items[3], .updated),
          .tokenStored(token(2, edition: 4), .replaced),
        ],
      ]
      for batch in batches { try store.mustCommit(registry.recorded(batch)) }
      try store.expectOpen([items[3]])
      try store.mustClose()
    }
    try workspace.withStore { store, content in
      #expect(content.condition == .writable)
      #expect(content.registry == registry)
      #expect(Array(content.registry.tokens.all) == [token(2, edition: 4)])
      #expect(content.events.map(\.sequence) == Array(1...content.registry.lastEvent), "each of them is told")
      try store.expectOpen([items[3]])
    }
    #expect(try workspace.sql("SELECT count(*) FROM token") == "1\n")
  }

  @Test func `a change replaces the row of its own predecessor and no other`() throws {
    let workspace = try Workspace()
    let known = Known(1)
    try workspace.withStore { store, _ in
      try store.mustCommit([.tokenStored(token(1), .created)])
      try store.put([known])
    }
    let foreign: [(borrowing Store) throws -> Change] = [
      { _ in .tokenStored(token(1, of: "user:8"), .replaced) },
      { store in
        var other = Known(2)
        other.item = Item(
          key: other.item.key, number: 1, edition: other.item.edition, owner: other.item.owner, label: nil,
          attributes: [], isThisDeviceOnly: false, endsWithInstallation: false, secretLength: other.secret.count,
          created: known.item.created, modified: known.item.modified)
        return try store.storing(other, .replaced)
      },
    ]
    for change in foreign {
      try workspace.withStore { store, _ in
        let foreign = try change(store)
        let condition = store.commit([foreign])
        #expect(condition != nil)
      }
      let content = try workspace.found()
      #expect(content.condition == .writable)
      #expect(Array(content.registry.tokens.all) == [token(1)])
      try workspace.withStore { store, _ in try store.expectOpen([known]) }
    }
  }

  @Test func `after a checkpoint the log is reused, and truncated only if it became long`() throws {
    let workspace = try Workspace(inMemory: true)
    var options = Store.Options()
    options.checkpointSize = 65_536
    func length() throws -> Int { try workspace.read("identityd.db-wal").count }
    try workspace.withStore(options: options) { store, _ in
      try store.mustCommit([.tokenStored(token(1), .created)])
      func replace(_ editions: ClosedRange<Int64>) throws {
        for edition in editions { try store.mustCommit([.tokenStored(token(1, edition: edition), .replaced)]) }
      }
      try replace(1...100)
      let settled = try length()
      #expect(settled > options.checkpointSize)
      try replace(101...400)
      #expect(try length() == settled)
      // After a kill the log now contains frames of several rounds.
      let other = try Workspace(inMemory: true)
      try other.restore(try workspace.files())
      #expect(Array(try other.found().registry.tokens.all) == [token(1, edition: 400)])
      let large = (1...200 as ClosedRange<Int64>).map { Known($0, length: 32_768) }
      var changes: [Change] = []
      for known in large { changes.append(try store.storing(known)) }
      try store.mustCommit(changes)
      #expect(try length() > Store.Options().checkpointSize)
      try replace(401...402)
      #expect(try length() <= Store.Options().checkpointSize)
      try store.expectOpen(Array(large.prefix(3)))
    }
  }
  @Test func `a log that may be long is not cut to the usual length`() throws {
    let workspace = try Workspace(inMemory: true)
    var options = Store.Options()
    options.checkpointSize = 6_291_456
    func length() throws -> Int { try workspace.read("identityd.db-wal").count }
    try workspace.withStore(options: options) { store, _ in
      try store.mustCommit([.tokenStored(token(1), .created)])
      var changes: [Change] = []
      for number in 1...210 { changes.append(try store.storing(Known(Int64(number), length: 32_768))) }
      try store.mustCommit(changes)
      let long = try length()
      #expect(long > options.checkpointSize, "it was written back")
      try store.mustCommit([.tokenStored(token(1, edition: 1), .replaced)])
      try store.mustCommit([.tokenStored(token(1, edition: 2), .replaced)])
      #expect(try length() == long)
    }
  }
}
