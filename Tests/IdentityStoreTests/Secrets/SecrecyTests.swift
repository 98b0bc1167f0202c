import Foundation
import IdentityCore
import IdentityStore
import Testing

/// No file of a store has secret data in plain text.
struct SecrecyTests {
  /// Random texts that exist nowhere else.
  private struct Markers {
    let secret = (0..<96).map { _ in UInt8.random(in: 0...255) }
    let label = marker("label")
    let name = marker("name")
    let value = marker("value")
    /// The service, which is stored in plain text.
    static let service = marker("service")

    static func marker(_ kind: String) -> Text {
      Text(
        "\(kind)-" + (0..<48).map { _ in "abcdefghijklmnopqrstuvwxyz".randomElement().map(String.init) ?? "" }.joined())
    }

    func known(_ number: Int64, edition: UInt64) -> Known {
      var item = sampleItem(number, edition: edition)
      item = Item(
        key: ItemKey(group: "shared", service: Self.service, account: Text("a\(number)")), number: number,
        edition: item.edition, owner: item.owner, label: label, attributes: [.init(name: name, value: value)],
        isThisDeviceOnly: true, endsWithInstallation: false, secretLength: secret.count, created: item.created,
        modified: item.modified)
      return Known(item, secret)
    }

    /// The parts of the secret data that must not be found, also as hexadecimal digits and as Base64.
    var hidden: [(String, Data)] {
      var all: [(String, Data)] = []
      for (name, text) in [("label", label.bytes), ("name", name.bytes), ("value", value.bytes), ("secret", secret)] {
        for start in stride(from: 0, through: text.count - 12, by: 12) {
          let part = Data(text[start..<(start + 12)])
          all.append((name, part))
          all.append(("the digits of the \(name)", Data(part.map { String(format: "%02x", $0) }.joined().utf8)))
          // Leaves out the digits that depend on the neighbouring bytes.
          for shift in 0..<3 {
            let text = (Data(repeating: 0, count: shift) + part).base64EncodedString().prefix { $0 != "=" }
            all.append(("the Base64 of the \(name)", Data(text.dropFirst(shift + 1).dropLast().utf8)))
          }
        }
      }
      return all
    }
  }

  private func expectHidden(_ markers: [Markers], in workspace: Workspace, _ stage: String) throws {
    for (name, bytes) in try workspace.files() {
      let data = Data(bytes)
      for (what, part) in markers.flatMap(\.hidden) {
        #expect(data.range(of: part) == nil, "\(stage): \(what) in \(name)")
      }
    }
  }

  private func names(_ part: Text, in workspace: Workspace) throws -> [String] {
    try workspace.files().filter { Data($0.value).range(of: Data(part.bytes)) != nil }.keys.sorted()
  }

  @Test func `row 42d: no file ever has a secret, a label or an attribute in clear text`() throws {
    let workspace = try Workspace(inMemory: true)
    let (first, second) = (Markers(), Markers())
    var stages = 0
    func check(_ stage: String) throws {
      try expectHidden([first, second], in: workspace, stage)
      stages += 1
    }
    try workspace.withStore { store, _ in
      try store.put([first.known(1, edition: 0), first.known(2, edition: 0)])
      try check("added")
      // The same search finds data in plain text, so the search works.
      #expect(try names(Markers.service, in: workspace) == ["identityd.db-wal"])
      try store.put([second.known(1, edition: 1)], .replaced)
      try check("replaced")
      try store.put([first.known(1, edition: 2)], .updated)
      try check("updated")
      let healed = store.heal()
      try #require(healed != nil)
      try check("written anew")
      #expect(try names(Markers.service, in: workspace) == ["identityd.db"])
      try store.expectOpen([first.known(1, edition: 2), first.known(2, edition: 0)])
      try check("read")
      let rotated = try store.rotateKey(at: later(5))
      try #require(rotated == .file)
      try check("another master key")
      try store.mustCommit([.itemDeleted(first.known(1, edition: 2).item)])
      try check("deleted")
      let refused = store.commit([deviceMade] + [deviceMade] + [.appUninstalled("nobody")])
      try #require(refused != nil)
      try check("refused")
      let mended = store.heal()
      try #require(mended != nil)
      try store.put([second.known(1, edition: 3)])
      try check("added again")
      try store.mustClose()
      try check("closed")
    }
    try workspace.withStore { store, _ in
      try check("opened")
      try store.expectOpen([second.known(1, edition: 3), first.known(2, edition: 0)])
    }
    #expect(stages == 11)
  }

  @Test func `a change that was never committed leaves nothing in clear text either`() throws {
    let workspace = try Workspace(inMemory: true)
    let markers = Markers()
    try workspace.withStore { store, _ in
      // More than SQLite keeps in memory before it writes pages of an open transaction.
      var changes: [Change] = []
      for number in 1...300 as ClosedRange<Int64> {
        changes.append(try store.storing(markers.known(number, edition: 0)))
        changes.append(try store.storing(Known(1_000 + number, length: 16_000)))
      }
      let refused = store.commit(changes.sorted { _, _ in false } + [.appUninstalled("nobody")])
      try #require(refused != nil)
      try expectHidden([markers], in: workspace, "refused")
    }
  }

  @Test func `row 42d: a deleted secret is not left in the file, not even sealed`() throws {
    let workspace = try Workspace(inMemory: true)
    try workspace.fill([Known(1, length: 200), Known(2, length: 9_000), Known(3)])
    let sealed = try workspace.sql("SELECT hex(sealed) FROM secret ORDER BY n").split(separator: "\n").map { line in
      Data(stride(from: 0, to: line.utf8.count, by: 2).compactMap { UInt8(line.dropFirst($0).prefix(2), radix: 16) })
    }
    try #require(sealed.map(\.count) == [240, 9_040, 60])
    try workspace.withStore { store, _ in
      try store.mustCommit([.itemDeleted(Known(1, length: 200).item), .itemDeleted(Known(2, length: 9_000).item)])
      try store.put([Known(3, edition: 1)], .updated)
      try store.mustClose()
    }
    for (name, bytes) in try workspace.files() {
      for secret in sealed {
        for start in stride(from: 24, through: secret.count - 32, by: 1_000) {
          #expect(Data(bytes).range(of: secret[start..<(start + 32)]) == nil, "\(name)")
        }
      }
    }
  }

  @Test func `the keys are in no file but their own`() throws {
    let workspace = try Workspace(inMemory: true)
    let credential = (0..<40).map { _ in UInt8.random(in: 0...255) }
    try workspace.fill([Known(1)])
    let key = try workspace.read("master.key")
    try workspace.withStore(credentials: KeyCredentials(current: credential)) { store, _ in
      for (name, bytes) in try workspace.files() where name != "master.key" {
        #expect(Data(bytes).range(of: Data(key.prefix(16))) == nil, "\(name)")
      }
      let source = try store.rotateKey(at: later(1))
      #expect(source == .credential)
      for (name, bytes) in try workspace.files() {
        #expect(Data(bytes).range(of: Data(credential.prefix(12))) == nil, "\(name)")
        #expect(Data(bytes).range(of: Data(credential.map { String(format: "%02x", $0) }.joined().utf8)) == nil)
      }
    }
  }
}
