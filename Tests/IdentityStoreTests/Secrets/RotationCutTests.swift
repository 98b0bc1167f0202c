import IdentityCore
import IdentityStore
import Testing

/// An interrupted rotation of the master key. Every item opens, and one start puts the files in order.
struct RotationCutTests {
  private static let items = [Known(1), Known(2, length: 3_000)]
  private static let credential = KeyCredentials(current: Credential.first)
  private static let stray = Array((String(repeating: "0f", count: 32) + "\n").utf8)

  /// The files of a store before and after a rotation.
  private struct Both {
    let before: [String: [UInt8]]
    let after: [String: [UInt8]]
    var oldKey: [UInt8]? { before["master.key"] }
    var newKey: [UInt8]? { after["master.key"] }
  }

  /// Returns the files of a rotation from one key file to another.
  ///
  /// - Parameter inLog: whether the rotation is only in the log, as after a kill.
  private func rotated(inLog: Bool) throws -> Both {
    let workspace = try Workspace(inMemory: true)
    return try workspace.withStore { store, _ in
      try store.put(Self.items)
      let before = try workspace.files()
      var after = try self.after(&store, in: workspace, inLog: inLog)
      // The state of the cleanup does not matter here.
      after["master.key"] = after["master.key.next"] ?? after["master.key"]
      after["master.key.next"] = nil
      return Both(before: before, after: after)
    }
  }

  /// Returns the files of a rotation from the key file to a credential.
  private func rotatedToCredential(inLog: Bool) throws -> Both {
    let workspace = try Workspace(inMemory: true)
    let before = try workspace.withStore { store, _ in
      try store.put(Self.items)
      if !inLog { try store.mustClose() }
      return try workspace.files()
    }
    return try workspace.withStore(credentials: Self.credential) { store, _ in
      var after = try self.after(&store, in: workspace, inLog: inLog)
      #expect(store.keySource == .credential)
      after["master.key"] = nil
      return Both(before: before, after: after)
    }
  }

  /// Rotates the key and returns the files on disk after that.
  private func after(_ store: inout Store, in workspace: Workspace, inLog: Bool) throws -> [String: [UInt8]] {
    // A reader keeps the log from being written back.
    let reader = inLog ? try ForeignReader(workspace.path("identityd.db")) : nil
    try reader?.beginReading("SELECT count(*) FROM item")
    _ = try store.rotateKey(at: later(1))
    reader?.endReading()
    if !inLog { try store.mustClose() }
    let files = try workspace.files()
    try #require((files["identityd.db-wal"]?.isEmpty == false) == inLog)
    return files
  }

  /// Expects that a start with these files opens every item and leaves no other file behind, also
  /// after another rotation.
  private func expectWhole(
    _ files: [String: [UInt8]], _ credentials: KeyCredentials = KeyCredentials(), key: [UInt8]?, _ what: String
  ) throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.restore(files)
    let names = storeNames.filter { $0 != "master.key" || key != nil }
    for _ in 0..<2 {
      try workspace.withStore(credentials: credentials) { store, content in
        #expect(content.condition == .writable, "\(what)")
        #expect(content.notices == [], "\(what)")
        #expect(content.registry.itemFault == nil, "\(what)")
        #expect(content.registry.items.total.items == Self.items.count, "\(what)")
        try store.expectOpen(Self.items, what)
        #expect(try workspace.names() == names, "\(what)")
        if let key { #expect(try workspace.read("master.key") == key, "\(what)") }
        let healed = store.heal()
        #expect(healed == content.registry, "\(what)")
        try store.expectOpen(Self.items, what)
      }
    }
    guard credentials.current == nil else { return }
    // The leftovers do not disturb the next rotation, even in the start that finds them.
    try workspace.restore(files)
    for _ in 0..<2 {
      try workspace.withStore(credentials: credentials) { store, _ in
        let source = try store.rotateKey(at: later(2))
        #expect(source == .file, "\(what)")
        #expect(try workspace.names() == names, "\(what)")
        try store.expectOpen(Self.items, what)
      }
      #expect(try workspace.read("master.key") != key, "\(what)")
    }
    try workspace.withStore { store, _ in try store.expectOpen(Self.items, what) }
  }

  @Test(arguments: [false, true])
  func `row 42b: an interrupted rotation from key file to key file loses no item`(inLog: Bool) throws {
    let both = try rotated(inLog: inLog)
    let (old, new) = (try #require(both.oldKey), try #require(both.newKey))
    try #require(old != new)

    // The next key is on disk, but nothing is wrapped with it.
    for next in [
      new, Array(new.prefix(40)), Array(new.prefix(31)), [], Self.stray, [UInt8](repeating: 7, count: 3_000),
    ] {
      var files = both.before
      files["master.key.next"] = next
      try expectWhole(files, key: old, "before the transaction, \(next.count) bytes")
    }
    // The data key is wrapped with the next key, and both key files exist.
    var files = both.after
    files["master.key"] = old
    files["master.key.next"] = new
    try expectWhole(files, key: new, "after the transaction")
    files["master.key"] = nil
    try expectWhole(files, key: new, "after the transaction, the old one gone")
    files["master.key"] = Self.stray
    try expectWhole(files, key: new, "after the transaction, a stray one")
    // The next key file has been renamed.
    try expectWhole(both.after, key: new, "renamed")
    files = both.after
    files["master.key.next"] = old
    try expectWhole(files, key: new, "renamed, with another one behind it")
    try expectWhole(both.before, key: old, "not begun")
  }

  @Test func `wherever the log ends, one of the two keys opens it`() throws {
    let both = try rotated(inLog: true)
    let (old, new) = (try #require(both.oldKey), try #require(both.newKey))
    let log = try #require(both.after["identityd.db-wal"])
    let start = try #require(both.before["identityd.db-wal"]).count
    try #require(log.count > start && log.prefix(start).elementsEqual(both.before["identityd.db-wal"] ?? []))
    let workspace = try Workspace(inMemory: true)
    var found: [Bool: Int] = [:]
    for length in Array(stride(from: start, to: log.count, by: 512)) + [log.count] {
      var files = both.after
      // The witness as an interrupted transaction leaves it.
      files["witness.latest"] = both.before["witness.latest"]
      files["identityd.db-wal"] = Array(log.prefix(length))
      files["master.key"] = old
      files["master.key.next"] = new
      try workspace.restore(files)
      try workspace.withStore { store, content in
        #expect(content.condition == .writable && content.registry.itemFault == nil, "\(length)")
        try store.expectOpen(Self.items, "\(length)")
      }
      let key = try workspace.read("master.key")
      #expect(key == old || key == new, "\(length)")
      #expect(try workspace.names() == storeNames, "\(length)")
      found[key == new, default: 0] += 1
    }
    #expect(found[true] == 1 && found[false, default: 0] > 5, "\(found)")
  }

  @Test(arguments: [false, true])
  func `row 42b: an interrupted rotation from key file to credential loses no item`(inLog: Bool) throws {
    let both = try rotatedToCredential(inLog: inLog)
    let old = try #require(both.oldKey)
    try expectWhole(both.before, Self.credential, key: old, "not begun")
    try expectWhole(both.after, Self.credential, key: nil, "done")
    // The data key is wrapped with the credential. The key file still exists, but opens nothing any more.
    var files = both.after
    files["master.key"] = old
    try expectWhole(files, Self.credential, key: nil, "after the transaction")
    files["master.key.next"] = Self.stray
    try expectWhole(files, Self.credential, key: nil, "after the transaction, with a key of an earlier try")
    files["master.key"] = nil
    try expectWhole(files, Self.credential, key: nil, "the file removed, a key of an earlier try not")
  }

  @Test(arguments: [false, true])
  func `an interrupted rotation of the key file can continue with a credential`(isWrapped: Bool) throws {
    let both = try rotated(inLog: true)
    let (old, new) = (try #require(both.oldKey), try #require(both.newKey))
    var files = isWrapped ? both.after : both.before
    files["master.key"] = old
    files["master.key.next"] = new
    try expectWhole(files, Self.credential, key: isWrapped ? new : old, "a credential beside")
    let workspace = try Workspace(inMemory: true)
    try workspace.restore(files)
    try workspace.withStore(credentials: Self.credential) { store, _ in
      let source = try store.rotateKey(at: later(1))
      #expect(source == .credential)
      try store.expectOpen(Self.items)
    }
    #expect(try workspace.names() == storeNames.filter { $0 != "master.key" })
    try workspace.withStore(credentials: Self.credential) { store, _ in try store.expectOpen(Self.items) }
  }

  @Test func `a locked store keeps every key that it does not know`() throws {
    let both = try rotated(inLog: false)
    let new = try #require(both.newKey)
    var files = both.before
    files["master.key"] = nil
    files["master.key.next"] = new
    let workspace = try Workspace(inMemory: true)
    try workspace.restore(files)
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        #expect(content.registry.itemFault?.contains("none of the master keys found is the right one") == true)
        try store.mustCommit([deviceMade])
        let healed = store.heal()
        #expect(healed?.itemFault == content.registry.itemFault)
        try store.mustCommit([.identifierEnded(.device, .init(time: start, cause: .sealed))])
        try store.mustClose()
      }
      #expect(try workspace.read("master.key.next") == new)
      #expect(!workspace.exists("master.key"))
    }
  }

  @Test func `a partly written key does no harm`() throws {
    let both = try rotated(inLog: true)
    for name in ["master.key.next.new", "master.key.new"] {
      let workspace = try Workspace(inMemory: true)
      try workspace.restore(both.before)
      try workspace.write(name, Array(Self.stray.prefix(33)))
      try workspace.withStore { store, content in
        #expect(content.condition == .writable && content.notices == [])
        try store.expectOpen(Self.items)
        let source = try store.rotateKey(at: later(1))
        #expect(source == .file)
        try store.expectOpen(Self.items)
      }
      try workspace.withStore { store, _ in try store.expectOpen(Self.items) }
    }
  }
}
