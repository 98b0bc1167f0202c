import Foundation
import IdentityCore
import IdentityStore
import LinuxSystem
import TestSupport
import Testing

/// A store on a failing disk, and its recovery.
struct HealingTests {
  @Test(.enabled(if: isRoot, "mounting a small file system needs root"), arguments: [320, 416])
  func `row 1: a full disk is reported, keeps acknowledged changes and recovers once there is room`(
    kilobytes: Int
  )
    throws
  {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run(
      "mount", "-t", "tmpfs", "-o", "size=\(kilobytes)k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    var registry = Registry()
    try workspace.withStore { store, _ in
      var number = 0
      func commit() -> StoreCondition? {
        let changes = installed(number)
        number += 1
        let condition = store.commit(changes)
        if condition == nil { for change in changes { registry.apply(change) } }
        return condition
      }
      for _ in 0..<3 { #expect(commit() == nil) }
      try workspace.fillDisk("ballast")
      // The rest of the last page has room for a commit or two.
      var condition: StoreCondition?
      for _ in 0..<20 where condition == nil { condition = commit() }
      #expect(condition == .full)
      #expect(store.condition == .full)
      #expect(commit() == .full, "nothing is acknowledged before the store was written anew")
      let inVain = store.heal()
      #expect(inVain == nil)
      #expect(store.condition == .full)
      try expectServed(try workspace.files(), registry)

      try workspace.remove("ballast")
      let healed = store.heal()
      #expect(healed == registry)
      #expect(store.condition == .writable)
      for _ in 0..<5 { #expect(commit() == nil) }
      try expectServed(try workspace.files(), registry)
      try store.mustClose()
    }
    let content = try workspace.found()
    #expect(content.registry == registry)
    #expect(content.condition == .writable)
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
  func `row 1: a first start on a full disk fails, and succeeds once there is room`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=144k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    try workspace.fillDisk("ballast", sparing: 8_192)
    guard case .unusable = try workspace.failure() else {
      Issue.record("not refused")
      return
    }
    try workspace.remove("ballast")
    let content = try workspace.found()
    #expect(content.condition == .writable)
    #expect(content.registry == Registry())
  }

  @Test(.enabled(if: isRoot, "mounting a small file system needs root"))
  func `failed first starts do not accumulate key files`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let mounted = try workspace.run("mount", "-t", "tmpfs", "-o", "size=144k,mode=0700", "tmpfs", workspace.state)
    try #require(mounted.status == 0, "\(mounted.output)")
    defer { _ = try? workspace.run("umount", "-l", workspace.state) }
    // The space suffices for the keys but not for the store. The service manager would restart the
    // daemon again and again.
    try workspace.fillDisk("ballast", sparing: 40_960)
    for second in 0..<5 as Range<Int64> {
      #expect(throws: StoreFailure.self) { try workspace.found(at: later(second)) }
      let keys = try workspace.names().filter { $0.hasPrefix("master.key") }
      #expect(keys.count <= 2, "\(keys)")
    }
    try workspace.remove("ballast")
    #expect(try workspace.found(at: later(9)).condition == .writable)
  }

  /// A loss of files under a running daemon.
  enum Loss: String, CaseIterable {
    case databaseDeleted, databaseReplaced, databaseMoved, logDeleted, logReplaced, allButTheKeyDeleted
  }

  @Test(arguments: Loss.allCases)
  func `row 14: files lost under an open store are noticed before the next commit, and rewritten`(loss: Loss) throws {
    let workspace = try Workspace()
    let acknowledged = sample(apps: 4)
    try workspace.withStore { store, _ in
      for batch in acknowledged { try store.mustCommit(batch) }
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
      let condition = store.commit(installed(30))
      guard case .unwritable = condition else {
        Issue.record("acknowledged although the files were gone: \(String(describing: condition))")
        return
      }
      #expect(store.commit(installed(31)) == condition)
      guard let healed = store.heal() else { throw Failure("not healed: \(store.condition)") }
      #expect(store.condition == .writable)
      #expect(Registry(applying: acknowledged).isPart(of: healed), "everything acknowledged is back")
      #expect(healed.isPart(of: Registry(applying: acknowledged + [installed(30)])), "and nothing that was never asked")
      try store.mustCommit(installed(32))
      var expected = healed
      for change in installed(32) { expected.apply(change) }
      // The files as a kill at this moment would leave them.
      var files = try workspace.files()
      files["identityd.db.moved"] = nil
      try expectServed(files, expected)
    }
  }

  @Test func `a change refused because of a missing file is not in force later`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      try store.mustCommit(installed(1))
      try workspace.remove("identityd.db")
      let refused = store.commit([deviceMade])
      try #require(refused != nil)
      let healed = store.heal()
      #expect(healed == Registry(applying: [installed(1)]))
    }
  }

  @Test func `a rewrite closes the file that it replaced`() throws {
    let workspace = try Workspace()
    try workspace.withStore { store, _ in
      try store.mustCommit(installed(1))
      try workspace.remove("identityd.db")
      let refused = store.commit(installed(2))
      try #require(refused != nil)
      let healed = store.heal()
      try #require(healed != nil)
      #expect(try openFiles(under: workspace.root).filter { $0.hasSuffix("(deleted)") } == [])
    }
  }

  @Test func `a healthy store can be rewritten at any time`() throws {
    let workspace = try Workspace()
    var batches = sample(apps: 2)
    try workspace.withStore { store, _ in
      for batch in batches { try store.mustCommit(batch) }
      for number in 10..<15 {
        let healed = store.heal()
        #expect(healed == Registry(applying: batches))
        try store.mustCommit(installed(number))
        batches.append(installed(number))
      }
    }
    #expect(try workspace.names() == storeNames)
    #expect(try workspace.mode("identityd.db") == 0o600)
    #expect(try workspace.found().registry == Registry(applying: batches))
  }
}

/// Expects that a start with these files serves exactly this registry and accepts changes.
private func expectServed(_ files: [String: [UInt8]], _ registry: Registry) throws {
  let workspace = try Workspace()
  try workspace.restore(files)
  let content = try workspace.found()
  #expect(content.registry == registry)
  #expect(content.condition == .writable)
}
