import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A rotation of the master key: the items stay, and the old key no longer opens them.
struct RotationTests {
  private static let items = [Known(1), Known(2, length: 3_000), Known(3, length: 0)]
  private static let credential = KeyCredentials(current: Credential.first)

  private func filled(_ credentials: KeyCredentials = KeyCredentials()) throws -> Workspace {
    let workspace = try Workspace()
    try workspace.withStore(credentials: credentials) { store, _ in
      try store.put(Self.items)
      try store.mustClose()
    }
    return workspace
  }

  private func expectOpen(_ workspace: Workspace, _ credentials: KeyCredentials = KeyCredentials()) throws {
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.condition == .writable)
      #expect(content.notices == [])
      #expect(content.registry.itemFault == nil)
      #expect(content.registry.items.total.items == Self.items.count)
      try store.expectOpen(Self.items)
      try store.mustClose()
    }
  }

  private func expectLocked(_ workspace: Workspace, _ credentials: KeyCredentials = KeyCredentials()) throws {
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.condition == .writable)
      #expect(content.registry.itemFault?.contains("none of the master keys") == true || store.keySource == nil)
      #expect(store.keySource == nil)
      try store.mustClose()
    }
  }

  /// Expects that a start after a kill at this moment opens every item.
  private func expectOpenAfterKill(_ workspace: Workspace, _ credentials: KeyCredentials = KeyCredentials()) throws {
    let other = try Workspace()
    try other.restore(try workspace.files())
    try other.withStore(credentials: credentials) { store, content in
      #expect(content.registry.itemFault == nil)
      try store.expectOpen(Self.items)
    }
  }

  @Test func `the key file can be rotated repeatedly, and old keys open nothing`() throws {
    let workspace = try filled()
    var keys = [try workspace.read("master.key")]
    let rows = try workspace.sql(".dump item secret")
    for round in 1...3 {
      try workspace.withStore { store, _ in
        // Rotates twice in one run, with and without a rewrite in between.
        for second in 0..<2 {
          let source = try store.rotateKey(at: later(Int64(round)))
          #expect(source == .file)
          #expect(store.keySource == .file)
          #expect(store.condition == .writable)
          #expect(try workspace.names() == storeNames)
          keys.append(try workspace.read("master.key"))
          try store.expectOpen(Self.items)
          try expectOpenAfterKill(workspace)
          if second == 0, round > 1 {
            let healed = store.heal()
            #expect(healed?.itemFault == nil)
            try store.expectOpen(Self.items)
          }
        }
        if round != 2 { try store.mustClose() }
      }
      try expectOpen(workspace)
      #expect(try workspace.sql(".dump item secret") == rows, "no item was touched")
      #expect(
        try workspace.sql("SELECT source, created, revision FROM data_key")
          == "file|\(later(Int64(round)))|\(3 + 2 * round)\n")
    }
    #expect(Set(keys).count == 7)
    #expect(try workspace.mode("master.key") == 0o600)
    for old in keys.dropLast() {
      try workspace.write("master.key", old)
      try expectLocked(workspace)
    }
    try workspace.write("master.key", keys[6])
    try expectOpen(workspace)
  }

  @Test func `a credential replaces the key file`() throws {
    let workspace = try filled()
    let file = try workspace.read("master.key")
    try workspace.write("master.key.next", Array((String(repeating: "0f", count: 32) + "\n").utf8))
    try workspace.withStore(credentials: Self.credential) { store, content in
      #expect(store.keySource == .file, "it goes on with the one that wraps the data key")
      try store.expectOpen(Self.items)
      let source = try store.rotateKey(at: later(1))
      #expect(source == .credential)
      #expect(store.keySource == .credential)
      #expect(try workspace.names() == storeNames.filter { $0 != "master.key" })
      try store.expectOpen(Self.items)
      #expect(refusal { _ = try store.rotateKey(at: later(2)) }?.isConflict == true, "it wraps the data key now")
      #expect(store.condition == .writable)
      let healed = store.heal()
      #expect(healed == content.registry)
      try store.expectOpen(Self.items)
    }
    try expectOpen(workspace, Self.credential)
    try expectLocked(workspace)
    try workspace.write("master.key", file)
    try expectLocked(workspace)
    try expectLocked(workspace, KeyCredentials(current: Credential.second, previous: Credential.third))
    #expect(try workspace.read("master.key") == file, "what is not understood stays")
    try expectOpen(workspace, Self.credential)
  }

  @Test func `a credential replaces the previous credential`() throws {
    let workspace = try filled(Self.credential)
    let both = KeyCredentials(current: Credential.second, previous: Credential.first)
    try expectLocked(workspace, KeyCredentials(current: Credential.second))
    for _ in 0..<2 { try expectOpen(workspace, both) }
    try workspace.withStore(credentials: both) { store, _ in
      let source = try store.rotateKey(at: later(1))
      #expect(source == .credential)
      try store.expectOpen(Self.items)
      #expect(refusal { _ = try store.rotateKey(at: later(2)) }?.isConflict == true)
    }
    #expect(try workspace.names() == storeNames.filter { $0 != "master.key" })
    try expectOpen(workspace, both)
    try expectOpen(workspace, KeyCredentials(current: Credential.second))
    try expectLocked(workspace, Self.credential)
    try expectLocked(workspace, KeyCredentials(previous: Credential.first))
    // With the two credentials exchanged the store opens too, and can rotate back.
    let back = KeyCredentials(current: Credential.first, previous: Credential.second)
    try workspace.withStore(credentials: back) { store, _ in
      let source = try store.rotateKey(at: later(3))
      #expect(source == .credential)
    }
    try expectOpen(workspace, Self.credential)
  }

  @Test func `a rotation is refused if the credential is unchanged or only the previous one is there`() throws {
    let workspace = try filled(Self.credential)
    let same = [Self.credential, KeyCredentials(current: Credential.first, previous: Credential.first)]
    for credentials in same {
      try workspace.withStore(credentials: credentials) { store, _ in
        #expect(refusal { _ = try store.rotateKey(at: later(1)) }?.isConflict == true)
        #expect(store.condition == .writable)
        try store.mustCommit([.accountSet("x")])
      }
    }
    let files = try workspace.files()
    for current in [nil, Array(Credential.second.prefix(31))] {
      let credentials = KeyCredentials(current: current, previous: Credential.first)
      try workspace.withStore(credentials: credentials) { store, _ in
        guard case .unavailable? = refusal({ _ = try store.rotateKey(at: later(1)) }) else {
          Issue.record("not refused")
          return
        }
        try store.expectOpen(Self.items)
      }
    }
    #expect(try workspace.files().keys.sorted() == files.keys.sorted())
    try expectOpen(workspace, Self.credential)
  }

  @Test func `a store that cannot be written refuses a rotation and makes no key`() throws {
    let workspace = try filled()
    let key = try workspace.read("master.key")
    try workspace.withStore { store, _ in
      let refused = store.commit([.appUninstalled("nobody")])
      let condition = try #require(refused)
      #expect(refusal { _ = try store.rotateKey(at: later(1)) } == condition.refusal)
      #expect(try workspace.names() == storeNames)
      let healed = store.heal()
      #expect(healed != nil)
      let source = try store.rotateKey(at: later(1))
      #expect(source == .file)
      try store.mustClose()
    }
    #expect(try workspace.read("master.key") != key)
    try expectOpen(workspace)
  }

  @Test func `a key file that cannot be written leaves the old key in force`() throws {
    let workspace = try filled()
    let key = try workspace.read("master.key")
    // A folder in place of the file can be neither written nor removed like a file.
    try workspace.makeFolder("master.key.next.new")
    try workspace.withStore { store, _ in
      guard case .readOnly? = refusal({ _ = try store.rotateKey(at: later(1)) }) else {
        Issue.record("not refused")
        return
      }
      #expect(try workspace.read("master.key") == key)
      try store.expectOpen(Self.items)
      let healed = store.heal()
      #expect(healed?.itemFault == nil)
      try store.expectOpen(Self.items)
      try workspace.remove("master.key.next.new")
      let source = try store.rotateKey(at: later(1))
      #expect(source == .file)
    }
    #expect(try workspace.read("master.key") != key)
    try expectOpen(workspace)
  }

  @Test(arguments: [KeyCredentials(), KeyCredentials(current: Credential.first)])
  func `a failed commit leaves the old key in force`(credentials: KeyCredentials) throws {
    let workspace = try filled()
    let key = try workspace.read("master.key")
    try workspace.withStore(credentials: credentials) { store, content in
      try workspace.remove("identityd.db")
      guard case .readOnly? = refusal({ _ = try store.rotateKey(at: later(1)) }) else {
        Issue.record("not refused")
        return
      }
      #expect(try workspace.read("master.key") == key)
      let healed = store.heal()
      #expect(healed == content.registry)
      try store.expectOpen(Self.items)
      try expectOpenAfterKill(workspace)
      let source = try store.rotateKey(at: later(2))
      #expect(source == (credentials.current == nil ? .file : .credential))
      try store.expectOpen(Self.items)
      try expectOpenAfterKill(workspace, credentials)
    }
    try expectOpen(workspace, credentials)
    #expect(try workspace.names() == storeNames.filter { $0 != "master.key" || credentials.current == nil })
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
  func `a full disk leaves the old key in force`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    try workspace.withStore { store, _ in
      try store.put(Self.items)
      try workspace.fillDisk("ballast")
      #expect(refusal { _ = try store.rotateKey(at: later(1)) } == .noSpace)
      #expect(store.condition == .full)
      try store.expectOpen(Self.items)
      try expectOpenAfterKill(workspace)
      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed?.items.total.items == Self.items.count && healed?.itemFault == nil)
      try store.expectOpen(Self.items)
      let source = try store.rotateKey(at: later(1))
      #expect(source == .file)
    }
    try expectOpen(workspace)
    #expect(try workspace.names() == storeNames)
  }

  @Test(arguments: [KeyCredentials(), KeyCredentials(current: Credential.first)])
  func `row 42d: no file keeps the data key that the old key wrapped`(credentials: KeyCredentials) throws {
    let workspace = try filled()
    let digits = try workspace.sql("SELECT hex(substr(sealed, 1, 24)) FROM data_key").utf8.dropLast()
    let nonce = stride(from: 0, to: 48, by: 2).compactMap {
      UInt8(String(decoding: Array(digits)[$0..<($0 + 2)], as: UTF8.self), radix: 16)
    }
    try #require(Data(try workspace.read("identityd.db")).range(of: Data(nonce)) != nil)
    try workspace.withStore(credentials: credentials) { store, _ in
      _ = try store.rotateKey(at: later(1))
      for (name, bytes) in try workspace.files() {
        #expect(Data(bytes).range(of: Data(nonce)) == nil, "\(name): the old key and this file are enough")
      }
      try store.mustClose()
    }
    for (name, bytes) in try workspace.files() {
      #expect(Data(bytes).range(of: Data(nonce)) == nil, "\(name), after a stop")
    }
  }
}

extension Refusal {
  /// Whether the refusal is a conflict with the state.
  var isConflict: Bool { if case .conflict = self { true } else { false } }
}
