import Foundation
import IdentityCore
import IdentityStore
import Testing

/// Credentials as the service manager could hand them over.
enum Credential {
  static let first = [UInt8](repeating: 0x4b, count: 32)
  static let second = Array("any text of at least thirty-two bytes will do\n".utf8)
  static let third = (0..<100).map { UInt8($0) }
}

/// The source of the master key.
struct MasterKeyTests {
  @Test func `a first start draws a key and keeps it in a private file`() throws {
    var keys: Set<[UInt8]> = []
    for _ in 0..<3 {
      let workspace = try Workspace()
      try workspace.withStore { store, content in
        #expect(store.keySource == .file)
        #expect(content.registry.itemFault == nil)
        #expect(content.notices.count == 1)
      }
      let key = try workspace.read("master.key")
      #expect(key.count == 65 && key.last == UInt8(ascii: "\n"))
      #expect(key.dropLast().allSatisfy { Array("0123456789abcdef".utf8).contains($0) })
      #expect(try workspace.mode("master.key") == 0o600)
      #expect(key != (try workspace.read("store.key")))
      keys.insert(key)
      _ = try workspace.found()
      #expect(try workspace.read("master.key") == key, "it stays")
    }
    #expect(keys.count == 3)
  }

  @Test(arguments: [Credential.first, Credential.second, Credential.third, [UInt8](repeating: 0, count: 5_000)])
  func `a credential is preferred, and no key file is made`(credential: [UInt8]) throws {
    let workspace = try Workspace()
    let credentials = KeyCredentials(current: credential)
    try workspace.withStore(credentials: credentials) { store, _ in
      #expect(store.keySource == .credential)
      try store.put([Known(1)])
      try store.mustClose()
    }
    #expect(!workspace.exists("master.key"))
    #expect(try workspace.sql("SELECT source, length(master) FROM data_key") == "credential|16\n")
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.notices == [])
      try store.expectOpen([Known(1)])
    }
    #expect(!workspace.exists("master.key"))
  }

  /// The IDs were computed by another program: keyed BLAKE2b-256 of the content, and of the result again for the ID.
  @Test(arguments: [
    (Credential.first, "e21738f2ac504644"), (Credential.second, "a44d0a66c62cbb1f"),
    (Credential.third, "2b0ec12b6f114650"),
  ])
  func `the ID of a key never changes`(credential: [UInt8], id: String) throws {
    let workspace = try Workspace()
    _ = try workspace.found(credentials: KeyCredentials(current: credential))
    #expect(try workspace.sql("SELECT master FROM data_key") == "\(id)\n")
  }

  @Test(arguments: [0, 1, 16, 31]) func `a credential of fewer than 32 bytes is ignored`(length: Int) throws {
    let workspace = try Workspace()
    let short = KeyCredentials(current: Array(Credential.first.prefix(length)))
    try workspace.withStore(credentials: short) { store, _ in
      #expect(store.keySource == .file)
      try store.put([Known(1)])
    }
    #expect(workspace.exists("master.key"))
    // No credential beside the file does harm either.
    for credentials in [short, KeyCredentials(), KeyCredentials(current: Credential.first)] {
      try workspace.withStore(credentials: credentials) { store, _ in
        #expect(store.keySource == .file)
        try store.expectOpen([Known(1)])
      }
    }
  }

  @Test(arguments: [nil, Array(Credential.first.prefix(31))])
  func `the previous credential never wraps a new store`(current: [UInt8]?) throws {
    let workspace = try Workspace()
    let credentials = KeyCredentials(current: current, previous: Credential.second)
    try workspace.withStore(credentials: credentials) { store, _ in #expect(store.keySource == .file) }
    #expect(workspace.exists("master.key"))
  }

  @Test func `a key without a store is set aside`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let old = Array((String(repeating: "0f", count: 32) + "\n").utf8)
    let next = Array((String(repeating: "f0", count: 32) + "\n").utf8)
    try workspace.write("master.key", old)
    try workspace.write("master.key.next", next)
    let content = try workspace.found()
    let names = ["master.key", "master.key.next"].map { "\($0).damaged-\(start.milliseconds)" }
    #expect(content.asideNames == names)
    #expect(content.condition == .writable)
    #expect(try workspace.read(names[0]) == old)
    #expect(try workspace.read(names[1]) == next)
    #expect(try workspace.read("master.key") != old)
    #expect(try workspace.names() == (storeNames + names).sorted())
    // With a credential the old key is set aside too, and no new file takes its place.
    let other = try Workspace()
    try other.makeState()
    try other.write("master.key", old)
    #expect(try other.found(credentials: KeyCredentials(current: Credential.first)).asideNames == [names[0]])
    #expect(!other.exists("master.key"))
  }

  @Test func `a foreign file beside a store with a credential is left alone`() throws {
    let workspace = try Workspace()
    let credentials = KeyCredentials(current: Credential.first)
    try workspace.withStore(credentials: credentials) { store, _ in try store.put([Known(1)]) }
    let stranger = Array("an administrator's own copy of something".utf8)
    try workspace.write("master.key.old", stranger)
    try workspace.withStore(credentials: credentials) { store, _ in try store.expectOpen([Known(1)]) }
    #expect(try workspace.read("master.key.old") == stranger)
  }

  @Test func `a store sealed under a credential leaves no data that the credential opens`() throws {
    let workspace = try Workspace()
    let credentials = KeyCredentials(current: Credential.first)
    try workspace.fill([], behind: [])
    try workspace.withStore(credentials: credentials) { store, content in
      try store.put([Known(1), Known(2)])
      let source = try store.rotateKey(at: later(1))
      #expect(source == .credential)
      var registry = content.registry
      registry.restore([Known(1), Known(2)].map { HeldItem($0.item) })
      try store.mustCommit(registry.recorded(sealing(registry)))
      try store.mustClose()
    }
    #expect(try workspace.sql("SELECT count(*) FROM item; SELECT count(*) FROM secret") == "0\n0\n")
    let old = try workspace.sql("SELECT hex(sealed) FROM data_key")
    try workspace.withStore(at: later(9), identity: uuid(500), credentials: credentials) { store, content in
      #expect(content.notices == [.unsealed, .created(path: workspace.path("identityd.db"))])
      #expect(content.registry == Registry())
      #expect(store.keySource == .credential)
      try store.put([Known(3)])
      try store.expectOpen([Known(3)])
      try store.mustClose()
    }
    #expect(try workspace.names() == storeNames.filter { $0 != "master.key" })
    #expect(try workspace.sql("SELECT hex(sealed) FROM data_key") != old)
  }

  @Test func `two stores with one credential have different data keys`() throws {
    let credentials = KeyCredentials(current: Credential.first)
    let (workspace, other) = (try Workspace(), try Workspace())
    for place in [workspace, other] {
      try place.withStore(credentials: credentials) { store, _ in
        try store.put([Known(1)])
        try store.mustClose()
      }
    }
    let key = "SELECT hex(sealed) FROM data_key"
    #expect(try workspace.sql(key) != (try other.sql(key)))
    #expect(try workspace.sql("SELECT master FROM data_key") == (try other.sql("SELECT master FROM data_key")))
  }
}

/// A store whose master key is missing. Its items are locked, and everything else works.
struct LockedStoreTests {
  /// A loss of the key in the file, or of the credential.
  enum Loss: String, CaseIterable {
    case fileGone, fileEmpty, fileShort, fileOfAnother, fileChanged, fileTooLong, fileIsFolder, fileIsLink, fileIsPipe
    case credentialGone, credentialShort, credentialOfAnother, credentialChanged, onlyFile

    var isOfFile: Bool { rawValue.hasPrefix("file") }

    var credentials: KeyCredentials {
      switch self {
      case .credentialShort: KeyCredentials(current: Array(Credential.first.prefix(31)))
      case .credentialOfAnother: KeyCredentials(current: Credential.second, previous: Credential.third)
      case .credentialChanged: KeyCredentials(current: Credential.first + [10])
      default: KeyCredentials()
      }
    }

    /// Applies the loss to the key file.
    func happen(in workspace: Workspace) throws {
      guard isOfFile || self == .onlyFile else { return }
      let key = isOfFile ? try workspace.read("master.key") : []
      if isOfFile { try workspace.remove("master.key") }
      let another = Array((String(repeating: "0f", count: 32) + "\n").utf8)
      switch self {
      case .fileEmpty: try workspace.write("master.key", [])
      case .fileShort: try workspace.write("master.key", Array(key.prefix(31)))
      case .fileOfAnother, .onlyFile: try workspace.write("master.key", another)
      case .fileChanged: try workspace.write("master.key", Array(key.dropLast()))
      case .fileTooLong: try workspace.write("master.key", key + [UInt8](repeating: 0x20, count: 1_000))
      case .fileIsFolder: try workspace.makeFolder("master.key")
      case .fileIsLink:
        try workspace.write("elsewhere", key)
        try FileManager.default.createSymbolicLink(
          atPath: workspace.path("master.key"), withDestinationPath: "elsewhere")
      case .fileIsPipe:
        let made = unsafe mkfifo(workspace.path("master.key"), 0o600)
        try #require(made == 0)
      default: break
      }
    }
  }

  private static let items = [Known(1), Known(2, length: 3_000), Known(3), Known(4)]
  /// Returns the rows of items, secrets and the data key, with all columns.
  private func dump(_ workspace: Workspace) throws -> [String] {
    let lines = try workspace.sql(".dump item secret data_key").split(separator: "\n").map(String.init)
    return lines.filter { $0.hasPrefix("INSERT") }
  }

  @Test(arguments: Loss.allCases)
  func `row 42: without the key items are locked, other data is served, and the key unlocks them`(loss: Loss) throws {
    let workspace = try Workspace()
    let right = KeyCredentials(current: loss.isOfFile ? nil : Credential.first)
    var registry = try workspace.withStore(credentials: right) { store, content in
      var registry = content.registry
      for batch in sample(apps: 2) { try store.mustCommit(registry.recorded(batch)) }
      for known in Self.items { try store.mustCommit(registry.recorded([store.storing(known)])) }
      try store.mustClose()
      return registry
    }
    let id = try workspace.sql("SELECT master FROM data_key").trimmingCharacters(in: .newlines)
    let before = try dump(workspace)
    let key = loss.isOfFile ? try workspace.read("master.key") : []
    try loss.happen(in: workspace)
    let left = try workspace.files(apartFrom: ["identityd.db", "identityd.db-wal", "witness", "witness.latest"])

    var known = Self.items
    for round in 0..<2 {
      try workspace.withStore(credentials: loss.credentials) { store, content in
        #expect(content.condition == .writable)
        #expect(content.notices == [])
        let fault = try #require(content.registry.itemFault)
        #expect(
          fault.contains(" \(id), from \(loss.isOfFile ? "master.key" : "the credential identityd.key")"), "\(fault)")
        #expect(content.registry == registry.locked(fault))
        #expect(store.keySource == nil)
        #expect(store.makeItemReader() == nil)
        let item = known[0].item
        #expect(refusal { _ = try store.secret(of: item) } == .unavailable("the master key of the items is missing"))
        #expect(
          refusal { _ = try store.rotateKey(at: later(9)) } == .unavailable("the master key of the items is missing"))
        try store.mustCommit(registry.recorded(installed(10 + round)))
        let healed = store.heal()
        #expect(healed == registry.locked(fault), "it can be written anew")
        // The end of an installation deletes its items even without the key.
        try store.mustCommit(registry.recorded([.itemDeleted(known[1].item.undescribed)]))
        known.remove(at: 1)
        try store.mustClose()
      }
      let numbers = known.map { "(\($0.item.number)," }
      let kept = before.filter { line in line.contains("data_key") || numbers.contains { line.contains($0) } }
      #expect(try dump(workspace) == kept, "no row was touched")
      #expect(
        try workspace.files(apartFrom: ["identityd.db", "identityd.db-wal", "witness", "witness.latest"]) == left,
        "no file was touched")
    }
    if loss.isOfFile {
      if workspace.exists("master.key") { try workspace.remove("master.key") }
      try workspace.write("master.key", key)
    }
    try workspace.withStore(credentials: right) { store, content in
      #expect(content.registry.items == registry.items)
      #expect(content.registry.itemFault == nil && content.registry.apps == registry.apps)
      #expect(content.condition == .writable)
      #expect(store.keySource == (loss.isOfFile ? .file : .credential))
      try store.expectOpen(known)
      try store.put([Known(1, edition: 1)], .updated)
    }
  }

  @Test func `storing an item without the key fails only that transaction`() throws {
    let workspace = try Workspace()
    let registry = try workspace.fill(Self.items)
    let key = try workspace.read("master.key")
    try workspace.remove("master.key")
    try workspace.withStore { store, content in
      let change = try store.storing(Known(9))
      guard case .unwritable(let reason) = store.commit([.accountSet("x"), change]) else {
        Issue.record("stored")
        return
      }
      #expect(reason.contains("without its key"))
      let healed = store.heal()
      #expect(healed == content.registry)
      let update = try store.storing(Known(1, edition: 1), .updated)
      let refused = store.commit([update])
      try #require(refused != nil)
      let again = store.heal()
      #expect(again == content.registry)
      try store.mustClose()
    }
    try workspace.write("master.key", key)
    try workspace.withStore { store, content in
      #expect(content.registry == registry)
      try store.expectOpen(Self.items)
    }
  }

  @Test func `sealing a locked store deletes its items, and the next store has a new key`() throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    try workspace.remove("master.key")
    try workspace.withStore { store, content in
      var registry = content.registry
      try store.mustCommit(registry.recorded(sealing(registry)))
    }
    try workspace.withStore(at: later(5), identity: uuid(500)) { store, content in
      #expect(content.notices == [.unsealed, .created(path: workspace.path("identityd.db"))])
      #expect(content.registry == Registry())
      #expect(store.keySource == .file)
      try store.put([Known(1)])
      try store.expectOpen([Known(1)])
    }
  }
}
