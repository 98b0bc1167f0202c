import Foundation
import IdentityCore
import IdentityStore
import Testing

/// A backup that is made between changes of its items.
struct BackupWriterTests {
  /// Items that a backup contains: those with an odd number.
  private static let items = [Known(1), Known(3, length: 30_000), Known(5), Known(7, length: 0), Known(9)]

  private struct Failed: Error { let refusal: Refusal }

  /// Makes a backup, calls `between` after each record, and returns the items in the backup.
  private func backedUp(
    in workspace: Workspace, _ between: (Int, inout Store, inout Registry, BackupWriter) throws -> Void
  ) throws -> [Known] {
    try workspace.withStore { store, content in
      var registry = content.registry
      let key = try store.makeSecretMemory().encrypt(Array(1...32))
      let writer = try store.beginBackup(of: registry, key: key, at: later(100))
      var pieces: [[UInt8]]?
      var records = 0
      while pieces == nil {
        do throws(Refusal) {
          pieces = try writer.writeRecord(from: store)
        } catch {
          throw Failed(refusal: error)
        }
        records += 1
        try between(records, &store, &registry, writer)
      }
      var upload = try BackupUpload(key: key)
      for piece in pieces ?? [] { _ = try upload.add(Text(Data(piece).base64EncodedString())) }
      let reader = try store.beginReading(upload)
      var backup: Backup?
      while backup == nil { backup = try reader.readRecord() }
      try store.mustClose()
      return try (backup?.items ?? []).map { Known($0.item, try store.makeSecretMemory().decrypt($0.secret)) }
    }
  }

  /// Replaces the first items, and removes the others, as the writer of the daemon does.
  private func change(
    _ store: inout Store, _ registry: inout Registry, _ writer: BackupWriter, replaced: Int
  ) throws {
    for (place, known) in Self.items.enumerated() {
      let next = Known(known.item.number, edition: 1)
      let change = place < replaced ? try store.storing(next, .replaced) : Change.itemDeleted(known.item)
      let recorded = registry.recorded([change])
      writer.writeAhead(of: recorded, from: store)
      try store.mustCommit(recorded)
    }
  }

  @Test(arguments: 1...20) func `a backup has the items of its beginning, whenever they change`(place: Int) throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    let found = try backedUp(in: workspace) { records, store, registry, writer in
      if records == place { try change(&store, &registry, writer, replaced: 3) }
      if records == place + 1 { _ = try store.rotateKey(at: later(101)) }
    }
    #expect(found.sorted { $0.item.number < $1.item.number } == Self.items)
  }

  /// Lets another app take over all items, as the writer of the daemon does.
  private func replaceApp(_ store: inout Store, _ registry: inout Registry, _ writer: BackupWriter) throws {
    let app = App(installed: start, manifest: Manifest(vendor: "org.v"))
    let moved = try Self.items.map { known in
      let old = known.item
      let item = Item(
        key: ItemKey(group: "org.new", service: old.key.service, account: old.key.account), number: old.number,
        edition: uuid(900 + UInt64(old.number)), owner: "org.new", label: old.label, attributes: old.attributes,
        isThisDeviceOnly: old.isThisDeviceOnly, endsWithInstallation: old.endsWithInstallation,
        secretLength: old.secretLength, created: old.created, modified: old.modified)
      return Replacement.MovedItem(before: old, item: item, secret: try store.makeSecretMemory().encrypt(known.secret))
    }
    let replacement = Replacement(previous: "org.old", id: "org.new", app: app, items: moved)
    for change in [Change.appInstalled("org.old", app), .appReplaced(replacement)] {
      let recorded = registry.recorded([change])
      writer.writeAhead(of: recorded, from: store)
      try store.mustCommit(recorded)
    }
    try store.expectOpen(zip(moved, Self.items).map { Known($0.item, $1.secret) })
  }

  @Test(arguments: 1...12)
  func `a backup has the items of its beginning, whenever another app takes them over`(place: Int) throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    let found = try backedUp(in: workspace) { records, store, registry, writer in
      if records == place { try replaceApp(&store, &registry, writer) }
    }
    #expect(found.sorted { $0.item.number < $1.item.number } == Self.items)
  }

  @Test func `an item that is replaced twice is backed up once`() throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    let found = try backedUp(in: workspace) { records, store, registry, writer in
      guard records < 3 else { return }
      let change = try store.storing(Known(9, edition: UInt64(records)), .replaced)
      let recorded = registry.recorded([change])
      writer.writeAhead(of: recorded, from: store)
      try store.mustCommit(recorded)
    }
    #expect(found.sorted { $0.item.number < $1.item.number } == Self.items)
  }

  @Test func `a damaged secret ahead of a change ends the backup and not the change`() throws {
    let workspace = try Workspace()
    try workspace.fill(Self.items)
    let last = try #require(Self.items.last)
    // The secret of another item, which has another key.
    try workspace.sql("UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE n = 1) WHERE n = 9")
    let failed = #expect(throws: Failed.self) {
      try backedUp(in: workspace) { records, store, registry, writer in
        guard records == 1 else { return }
        try change(&store, &registry, writer, replaced: Self.items.count)
        try store.expectOpen([Known(last.item.number, edition: 1)])
      }
    }
    #expect(failed?.refusal == .damagedSecret(last.item))
  }
}
