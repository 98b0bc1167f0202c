import Foundation
import IdentityCore
import Testing

@testable import IdentityStore

struct StartTests {
  @Test func `a first start makes a store, keys and witnesses with private modes`() throws {
    let workspace = try Workspace()
    let content = try workspace.withStore { store, content in
      #expect(store.condition == .writable)
      return content
    }
    #expect(content.registry == Registry())
    #expect(content.condition == .writable)
    #expect(content.notices == [.created(path: workspace.path("identityd.db"))])
    #expect(try workspace.mode("") == 0o700)
    for name in ["identityd.db", "master.key", "store.key", "witness", "witness.latest"] {
      #expect(try workspace.mode(name) == 0o600, "\(name)")
    }
  }

  @Test func `a second start makes nothing and finds the same store`() throws {
    let workspace = try Workspace()
    try workspace.commit([])
    let before = try workspace.files()
    let content = try workspace.withStore(at: Timestamp(milliseconds: 5), identity: uuid(7)) { store, content in
      try store.mustClose()
      return content
    }
    #expect(content.notices == [])
    #expect(try workspace.files() == before)
    #expect(try workspace.sql("SELECT id, created, revision FROM store") == "\(identity)|\(start)|0\n")
  }

  @Test func `a start does not rewrite a witness that is up to date`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 1))
    func witness() throws -> NSNumber? {
      try FileManager.default.attributesOfItem(atPath: workspace.path("witness"))[.systemFileNumber] as? NSNumber
    }
    let before = try witness()
    let same = try workspace.withStore { store, _ in
      let found = try witness()
      try store.mustCommit(installed(5))
      return found
    }
    #expect(same == before)
    // The run before was killed, so this start must update the witness.
    let told = try workspace.withStore { _, _ in try witness() }
    #expect(told != before)
  }

  @Test func `two first starts make different keys`() throws {
    let keys = try (0..<2).map { _ in
      let workspace = try Workspace()
      try workspace.commit([])
      return try workspace.read("store.key")
    }
    #expect(keys[0] != keys[1])
    #expect(keys[0].count == 114)
  }

  @Test func `two first starts begin different epochs, which later starts and commits keep`() throws {
    let epochs = try (0..<2).map { _ in
      let workspace = try Workspace()
      let epoch = try workspace.found().epoch
      try workspace.commit(sample(apps: 1), withEvents: true)
      let later = try workspace.found().epoch
      #expect(epoch != .zero && later == epoch)
      return epoch
    }
    #expect(epochs[0] != epochs[1])
  }

  @Test(arguments: ["link", "fifo", "folder"])
  func `row 19: a database that is no regular file is refused and kept`(what: String) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 1))
    let path = workspace.path("identityd.db")
    try workspace.rename("identityd.db", to: "real")
    let before = try workspace.files()
    switch what {
    case "link": try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "real")
    case "fifo":
      let made = unsafe mkfifo(path, 0o600)
      try #require(made == 0)
    default: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    }
    guard case .unusable(path, "it is not a regular file") = try workspace.failure() else {
      Issue.record("not refused")
      return
    }
    let kind = try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
    #expect(kind == ["link": .typeSymbolicLink, "folder": .typeDirectory][what] ?? .typeUnknown)
    try FileManager.default.removeItem(atPath: path)
    #expect(try workspace.files() == before)
  }

  private static let version = Int(Schema.version)

  @Test(arguments: [version + 1, version + 2, 255, Int(Int32.max), -1, Int(Int32.min)])
  func `row 17: a store of a later version is refused and left unchanged`(version: Int) throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    try workspace.sql("PRAGMA user_version = \(version)")
    // The draft of a rewrite by that later version must be left alone too.
    try workspace.write("identityd.db.draft", Array("of a later version".utf8))
    let before = try workspace.files()
    guard case .newer(let path, let found, Schema.version) = try workspace.failure() else {
      Issue.record("not refused as newer")
      return
    }
    #expect(path == workspace.path("identityd.db"))
    #expect(found == Int64(UInt32(truncatingIfNeeded: version)))
    #expect(try workspace.files() == before)
  }

  @Test func `row 17: a store from before the first release is refused and left unchanged`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    try workspace.sql("PRAGMA application_id = 0x49644401; PRAGMA user_version = 13")
    let before = try workspace.files()
    guard case .unreleased(workspace.path("identityd.db")) = try workspace.failure() else {
      Issue.record("not refused as unreleased")
      return
    }
    #expect(try workspace.files() == before)
  }

  @Test func `row 17: a later version that is only in the log is refused and left unchanged`() throws {
    let workspace = try Workspace()
    try workspace.commit(sample(apps: 3))
    // The tool is killed, so that the log with the new version remains beside the database.
    let script =
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA user_version=\(Schema.version + 1);\n.system kill -9 $PPID\n"
    let file = workspace.root + "/script"
    try Data(script.utf8).write(to: URL(filePath: file))
    _ = try workspace.run("/bin/sh", "-c", "exec sqlite3 \"$0\" < \"$1\"", workspace.path("identityd.db"), file)
    try workspace.remove("identityd.db-shm")
    let before = try workspace.files()
    try #require(before["identityd.db-wal"]?.isEmpty == false)
    guard case .newer(_, Schema.version + 1, Schema.version) = try workspace.failure() else {
      Issue.record("not refused as newer")
      return
    }
    #expect(try workspace.files() == before)
  }

  /// The points at which a first start can be interrupted, by the files that it leaves.
  enum Cut: String, CaseIterable {
    case onlyTheKey, halfAKey, halfAMasterKey, bothKeys, emptyDraft, halfADraft, draftWithJournal, allButTheWitness
    case halfAWitness

    /// Whether a master key without a store is left. It may belong to another store.
    var leavesMasterKey: Bool { [.bothKeys, .emptyDraft, .halfADraft, .draftWithJournal].contains(self) }
  }

  @Test(arguments: Cut.allCases) func `an interrupted first start is continued`(cut: Cut) throws {
    let workspace = try Workspace()
    try workspace.commit([])
    try workspace.remove("witness")
    try workspace.remove("witness.latest")
    let database = try workspace.read("identityd.db")
    if ![.allButTheWitness, .halfAWitness].contains(cut) {
      try workspace.remove("identityd.db")
      try workspace.remove("identityd.db-wal")
    }
    if [.onlyTheKey, .halfAKey, .halfAMasterKey].contains(cut) { try workspace.remove("master.key") }
    switch cut {
    case .onlyTheKey, .bothKeys, .allButTheWitness: break
    case .halfAMasterKey: try workspace.write("master.key.new", Array("0123456789".utf8))
    case .halfAKey:
      try workspace.rename("store.key", to: "store.key.new")
      try workspace.write("store.key.new", Array(try workspace.read("store.key.new").prefix(9)))
    case .emptyDraft: try workspace.write("identityd.db.draft", [])
    case .halfADraft: try workspace.write("identityd.db.draft", Array(database.prefix(4_096)))
    case .draftWithJournal:
      try workspace.write("identityd.db.draft", database)
      try workspace.write("identityd.db.draft-journal", [UInt8](repeating: 7, count: 512))
    case .halfAWitness: try workspace.write("witness.new", Array("identityd".utf8))
    }
    let aside = cut.leavesMasterKey ? ["master.key.damaged-\(start.milliseconds)"] : []
    try workspace.withStore { store, content in
      #expect(content.condition == .writable)
      #expect(content.registry == Registry())
      #expect(content.asideNames == aside)
      try store.mustCommit([deviceMade])
      try store.mustClose()
    }
    #expect(try workspace.names() == (storeNames + aside).sorted())
    let content = try workspace.found()
    #expect(content.registry == Registry(applying: [[deviceMade]]))
    #expect(content.condition == .writable)
  }
}
