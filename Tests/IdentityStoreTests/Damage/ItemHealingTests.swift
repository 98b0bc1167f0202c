import Foundation
import IdentityCore
import IdentityStore
import LinuxSystem
import TestSupport
import Testing

/// Items in a store that fails and is rewritten, and readers that are open meanwhile.
struct ItemHealingTests {
  private static let items = (1...5 as ClosedRange<Int64>).map { Known($0, length: Int($0) * 500) }

  private func withItems(
    options: Store.Options = .init(), _ body: (Workspace, inout Store, Registry) throws -> Void
  ) throws {
    let workspace = try Workspace()
    try workspace.withStore(options: options) { store, content in
      var registry = content.registry
      for known in Self.items { try store.mustCommit(registry.recorded([store.storing(known)])) }
      try body(workspace, &store, registry)
    }
  }

  @Test func `a failed commit loses no item`() throws {
    try withItems { workspace, store, registry in
      let change = try store.storing(Known(1, edition: 1), .updated)
      let refused = store.commit([change, .itemDeleted(Self.items[1].item), .appUninstalled("nobody")])
      let condition = try #require(refused)
      try store.expectOpen(Self.items, "until it is written anew")
      #expect(store.commit([change]) == condition)
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
      try store.mustCommit([change])
      try store.expectOpen([Known(1, edition: 1)] + Self.items.dropFirst())
    }
  }

  /// Changes of items that do not match the stored items.
  @Test(arguments: [
    "added twice", "another key", "replaced nothing", "updated nothing", "deleted nothing", "deleted twice",
    "deleted under another key", "the number of another",
  ])
  func `a change that does not match the stored items is refused and changes nothing`(what: String) throws {
    try withItems { workspace, store, registry in
      let first = Self.items[0]
      func stranger(_ number: Int64) -> Item {
        let item = first.item
        return Item(
          key: ItemKey(group: "g", service: "s", account: "a"), number: number, edition: uuid(77), owner: item.owner,
          label: nil, attributes: [], isThisDeviceOnly: false, endsWithInstallation: false, secretLength: 20,
          created: item.created, modified: item.modified)
      }
      let secret = sampleSecret(50)
      let changes: [Change] =
        switch what {
        case "added twice": [try store.storing(first)]
        case "another key": [try store.storing(Known(stranger(1), secret), .replaced)]
        case "replaced nothing": [try store.storing(Known(8), .replaced)]
        case "updated nothing": [try store.storing(Known(8), .updated)]
        case "deleted nothing": [.itemDeleted(Known(8).item)]
        case "deleted twice": [.itemDeleted(first.item), .itemDeleted(first.item)]
        case "deleted under another key": [.itemDeleted(stranger(1))]
        default: [try store.storing(Known(stranger(2), secret))]
        }
      guard case .unwritable = store.commit([deviceMade] + changes) else {
        Issue.record("taken")
        return
      }
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
      try store.mustCommit([deviceMade])
    }
  }

  @Test func `a reader from before a rewrite blocks nothing, and a new one continues`() throws {
    try withItems { workspace, store, registry in
      let old = try store.reader()
      let memory = try store.makeSecretMemory()
      func ask(_ known: Known) -> ReaderAnswer { ReaderAnswer(old, known.item, memory) }
      #expect(ask(Self.items[0]) == .appended(Self.items[0]))
      for round in 0..<3 as Range<UInt64> {
        let healed = store.heal()
        try #require(healed != nil)
        // The old reader has the old file, in which unchanged secrets are still right.
        #expect(ask(Self.items[2]) == .appended(Self.items[2]))
        let next = Known(1, edition: 1 + round, length: 900)
        try store.put([next], .updated)
        #expect(ask(next) == .changed)
        try store.expectOpen([next, Self.items[1], Self.items[2]])
      }
      #expect(store.condition == .writable)
      try store.mustClose()
      #expect(ask(Self.items[2]) == .appended(Self.items[2]))
      // The old reader outlives the store and does not affect the next start.
      let other = try Workspace()
      try other.restore(try workspace.files())
      try other.withStore { store, content in
        #expect(content.condition == .writable)
        try store.expectOpen([Known(1, edition: 3, length: 900)] + Self.items.dropFirst())
      }
    }
  }

  @Test(arguments: HealingTests.Loss.allCases)
  func `row 14: items survive the loss of files under an open store`(loss: HealingTests.Loss) throws {
    try withItems { workspace, store, registry in
      let reader = try store.reader()
      let memory = try store.makeSecretMemory()
      let copy = try workspace.read("identityd.db")
      switch loss {
      case .databaseDeleted: try workspace.remove("identityd.db")
      case .databaseReplaced: try workspace.write("identityd.db", copy)
      case .databaseMoved: try workspace.rename("identityd.db", to: "identityd.db.moved")
      case .logDeleted: try workspace.remove("identityd.db-wal")
      case .logReplaced: try workspace.write("identityd.db-wal", [])
      case .allButTheKeyDeleted:
        for name in ["identityd.db", "identityd.db-wal", "witness"] { try workspace.remove(name) }
      }
      // There may be no reader now. If there is one, it appends only correct secrets.
      if let stray = store.makeItemReader() {
        for known in Self.items {
          let answer = ReaderAnswer(stray, known.item, memory)
          #expect(answer == .appended(known) || answer.text == ReaderAnswer.changed.text, "\(answer.outcome)")
        }
      }
      let change = try store.storing(Known(6))
      guard case .unwritable = store.commit([change]) else {
        Issue.record("acknowledged")
        return
      }
      for known in Self.items { #expect(ReaderAnswer(reader, known.item, memory) == .appended(known)) }
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
      try store.mustCommit([change])
      try store.expectOpen(Self.items + [Known(6)])
    }
  }

  @Test func `an unfinished rewrite does not make secrets count as damaged`() throws {
    try withItems { workspace, store, registry in
      // A folder in place of the log can be neither removed nor ignored.
      try workspace.remove("identityd.db-wal")
      try workspace.makeFolder("identityd.db-wal")
      let inVain = store.heal()
      #expect(inVain == nil)
      #expect(store.makeItemReader() == nil)
      for known in Self.items {
        let refused = refusal { _ = try store.secret(of: known.item) }
        #expect(refused != .damagedSecret(known.item))
      }
      try workspace.remove("identityd.db-wal")
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
    }
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
  func `row 1: on a full disk secrets can be read, and stored again once there is room`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=640k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    try workspace.withStore { store, content in
      var registry = content.registry
      for known in Self.items { try store.mustCommit(registry.recorded([store.storing(known)])) }
      try workspace.fillDisk("ballast")
      let change = try store.storing(Known(6, length: 32_768))
      #expect(store.commit([change]) == .full)
      try store.expectOpen(Self.items)
      let inVain = store.heal()
      #expect(inVain == nil)
      try store.expectOpen(Self.items)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == registry)
      try store.expectOpen(Self.items)
      try store.mustCommit(registry.recorded([change]))
      try store.expectOpen(Self.items + [Known(6, length: 32_768)])
      try store.mustClose()
    }
    try workspace.withStore { store, _ in try store.expectOpen(Self.items + [Known(6, length: 32_768)]) }
  }
}

/// Readers in the middle of a read during a checkpoint.
struct CheckpointTests {
  @Test func `a reader in the way postpones a checkpoint, and the store stays writable`() throws {
    let workspace = try Workspace(inMemory: true)
    var options = Store.Options()
    options.checkpointSize = 16_384
    let items = (1...20 as ClosedRange<Int64>).map { Known($0, length: 2_000) }
    try workspace.withStore(options: options) { store, _ in
      try store.put(Array(items.prefix(5)))
      let foreign = try ForeignReader(workspace.path("identityd.db"))
      try foreign.beginReading("SELECT count(*) FROM secret")
      let before = try workspace.read("identityd.db-wal").count
      // These commits find the log too long, but cannot write it back.
      for item in items[5..<15] { try store.put([item]) }
      #expect(store.condition == .writable)
      let long = try workspace.read("identityd.db-wal").count
      #expect(long > max(before, options.checkpointSize))
      try store.expectOpen(Array(items.prefix(15)))
      foreign.endReading()
      for item in items[15..<18] { try store.put([item]) }
      // One of these commits may have met the reader.
      #expect(try workspace.read("identityd.db-wal").count < 2 * long, "the next commit catches up")
      try foreign.beginReading("SELECT count(*) FROM secret")
      // The reader does not prevent a rewrite of the store either.
      let healed = store.heal()
      #expect(healed?.items.total.items == 18)
      try store.put(Array(items[18...]))
      try store.expectOpen(items)
      foreign.endReading()
      try store.mustClose()
    }
    try workspace.withStore { store, _ in try store.expectOpen(items) }
  }

  @Test func `a reader in the way of a stop is reported, and nothing is lost`() throws {
    let workspace = try Workspace(inMemory: true)
    let items = (1...3 as ClosedRange<Int64>).map { Known($0, length: 2_000) }
    try workspace.withStore { store, _ in
      try store.put(items)
      let foreign = try ForeignReader(workspace.path("identityd.db"))
      try foreign.beginReading("SELECT count(*) FROM secret")
      let complaint = store.close()
      #expect(complaint?.contains("locked") == true, "\(complaint ?? "none")")
      foreign.endReading()
    }
    try workspace.withStore { store, content in
      #expect(content.condition == .writable && content.notices == [])
      try store.expectOpen(items)
    }
  }
}

/// A second SQLite connection of this process that stays in the middle of a read. No reader of the
/// store does so for long.
@safe
final class ForeignReader {
  // The functions of SQLite (sqlite.org/c3ref), which is loaded with the store.
  private typealias Open =
    @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>, Int32, UnsafePointer<CChar>) -> Int32
  private typealias Prepare =
    @convention(c) (
      OpaquePointer?, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>,
      UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) -> Int32
  private typealias Take = @convention(c) (OpaquePointer?) -> Int32

  private let connection: OpaquePointer
  private var statement: OpaquePointer?

  private static func function<Kind>(_ name: String, _ kind: Kind.Type) throws -> Kind {
    guard let symbol = unsafe dlsym(nil, name) else { throw Failure("no \(name)") }
    return unsafe unsafeBitCast(symbol, to: kind)
  }

  init(_ path: String) throws {
    var connection: OpaquePointer?
    // SQLITE_OPEN_READWRITE
    let code = try unsafe Self.function("sqlite3_open_v2", Open.self)(path, &connection, 2, "unix-excl")
    guard code == 0, let connection = unsafe connection else { throw Failure("not opened: \(code)") }
    unsafe self.connection = connection
  }

  deinit {
    endReading()
    _ = try? unsafe Self.function("sqlite3_close_v2", Take.self)(connection)
  }

  /// Begins a read and does not finish it.
  func beginReading(_ sql: String) throws {
    let code = try unsafe Self.function("sqlite3_prepare_v2", Prepare.self)(connection, sql, -1, &statement, nil)
    guard code == 0 else { throw Failure("not prepared: \(code)") }
    // SQLITE_ROW
    guard try unsafe Self.function("sqlite3_step", Take.self)(statement) == 100 else { throw Failure("no row") }
  }

  func endReading() {
    _ = try? unsafe Self.function("sqlite3_finalize", Take.self)(statement)
    unsafe statement = nil
  }
}
