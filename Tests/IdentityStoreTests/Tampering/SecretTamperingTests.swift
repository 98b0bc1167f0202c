import Foundation
import IdentityCore
import IdentityStore
import Testing

/// Rows of secrets that were swapped, truncated, edited or rolled back. The damaged item is named, all others work, and
/// a new secret can replace the damaged one.
struct SecretTamperingTests {
  /// An edit, the items that it damages, and whether a reader reports the damage.
  struct Edit: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let damaged: [Int64]
    let isNoticedByReader: Bool

    init(_ testDescription: String, _ sql: String, _ damaged: Int64..., isNoticedByReader: Bool = true) {
      self.testDescription = testDescription
      self.sql = sql
      self.damaged = damaged
      self.isNoticedByReader = isNoticedByReader
    }
  }

  private static let two = "CREATE TEMP TABLE two AS SELECT * FROM secret WHERE n IN (1, 2);"
  private static func other(_ column: String) -> String { "(SELECT \(column) FROM two WHERE two.n <> secret.n)" }
  private static let longest = Bound.secretLength + 40

  static let edits: [Edit] = [
    Edit("two secrets swapped", "\(two) UPDATE secret SET sealed = \(other("sealed")) WHERE n IN (1, 2)", 1, 2),
    Edit(
      "two secrets swapped with their editions",
      "\(two) UPDATE secret SET sealed = \(other("sealed")), edition = \(other("edition")) WHERE n IN (1, 2)", 1, 2,
      isNoticedByReader: false),
    Edit(
      "two numbers swapped",
      "UPDATE secret SET n = -1 WHERE n = 1; UPDATE secret SET n = 1 WHERE n = 2; UPDATE secret SET n = 2 WHERE n = -1",
      1, 2, isNoticedByReader: false),
    Edit("one secret in the place of another", "\(two) UPDATE secret SET sealed = \(other("sealed")) WHERE n = 1", 1),
    Edit("one byte less", "UPDATE secret SET sealed = substr(sealed, 1, length(sealed) - 1) WHERE n = 1", 1),
    Edit("one byte more", "UPDATE secret SET sealed = CAST(sealed || x'00' AS BLOB) WHERE n = 1", 1),
    Edit("the first byte gone", "UPDATE secret SET sealed = substr(sealed, 2) WHERE n = 1", 1),
    Edit("only a nonce and a tag", "UPDATE secret SET sealed = substr(sealed, 1, 40) WHERE n = 1", 1),
    Edit("less than a nonce and a tag", "UPDATE secret SET sealed = substr(sealed, 1, 39) WHERE n = 1", 1),
    Edit("half a nonce", "UPDATE secret SET sealed = substr(sealed, 1, 12) WHERE n = 1", 1),
    Edit("no bytes", "UPDATE secret SET sealed = x'' WHERE n = 1", 1),
    Edit("zeros", "UPDATE secret SET sealed = zeroblob(length(sealed)) WHERE n = 1", 1),
    Edit("the maximum length", "UPDATE secret SET sealed = zeroblob(\(longest)) WHERE n = 1", 1),
    Edit("more than the maximum length", "UPDATE secret SET sealed = zeroblob(\(longest + 1)) WHERE n = 1", 1),
    Edit("far too long", "UPDATE secret SET sealed = zeroblob(5000000) WHERE n = 1", 1),
    Edit("the row gone", "DELETE FROM secret WHERE n = 1", 1, isNoticedByReader: false),
    Edit("all rows gone", "DELETE FROM secret", 1, 2, 3, 4, isNoticedByReader: false),
    Edit(
      "another edition", "UPDATE secret SET edition = '\(uuid(5))' WHERE n = 1", 1, isNoticedByReader: false),
    Edit("no edition", "UPDATE secret SET edition = '' WHERE n = 1", 1, isNoticedByReader: false),
    Edit(
      "an invalid edition", "UPDATE secret SET edition = 'x' || edition WHERE n = 1", 1,
      isNoticedByReader: false),
    Edit(
      "the item's description in the place of its secret",
      "UPDATE secret SET sealed = (SELECT description FROM item WHERE n = 1) WHERE n = 1", 1),
    Edit(
      "the data key in the place of a secret", "UPDATE secret SET sealed = (SELECT sealed FROM data_key) WHERE n = 1", 1
    ),
  ]

  private static let items = (1...4 as ClosedRange<Int64>).map { Known($0, length: 30) }

  /// Expects that exactly these items are damaged. Then gives one of them a new secret and deletes another.
  private func expectDamaged(_ numbers: [Int64], _ answer: ReaderAnswer, in workspace: Workspace, _ original: Registry)
    throws
  {
    let damaged = Self.items.filter { numbers.contains($0.item.number) }
    let whole = Self.items.filter { !numbers.contains($0.item.number) }
    var registry = original
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        #expect(content.condition == .writable)
        #expect(content.registry == original)
        try store.expectOpen(whole)
        for known in damaged { try store.expectDamaged(known.item, answer) }
        let healed = store.heal()
        #expect(healed == original, "a rewrite keeps it for somebody to look at")
        for known in damaged { try store.expectDamaged(known.item, answer) }
      }
    }
    let number = try #require(numbers.first)
    let again = Known(number, edition: 3, length: 50)
    try workspace.withStore { store, _ in
      try store.mustCommit(registry.recorded([store.storing(again, .replaced)]))
      try store.expectOpen(whole + [again])
      if let last = damaged.dropFirst().last {
        try store.mustCommit(registry.recorded([.itemDeleted(last.item)]))
        try store.expectDamaged(last.item, .changed, "it is gone")
      }
      try store.mustClose()
    }
    try workspace.withStore { store, content in
      #expect(content.registry == registry || registry.items.lastNumber > content.registry.items.lastNumber)
      #expect(content.condition == .writable)
      try store.expectOpen(whole + [again])
    }
  }

  @Test(arguments: edits) func `row 12: a damaged secret is named, and no other is affected`(edit: Edit) throws {
    let workspace = try Workspace()
    let registry = try workspace.fill(Self.items)
    try workspace.sql(edit.sql)
    try expectDamaged(edit.damaged, edit.isNoticedByReader ? .damaged : .changed, in: workspace, registry)
  }

  @Test(arguments: [false, true]) func `row 16: a secret set back to an earlier one is damaged`(
    withEdition: Bool
  )
    throws
  {
    let workspace = try Workspace()
    // Both editions have the same secret. The earlier row must be refused all the same.
    let early = Known(sampleItem(1, edition: 9, length: 30), Self.items[0].secret)
    try workspace.fill([early] + Self.items.dropFirst())
    let file = try workspace.read("identityd.db")
    let registry = try workspace.withStore { store, content in
      var registry = content.registry
      try store.mustCommit(registry.recorded([store.storing(Self.items[0], .updated)]))
      try store.mustClose()
      return registry
    }
    try workspace.write("early", file)
    let columns = withEdition ? "n, edition, sealed" : "n, '\(Self.items[0].item.edition)', sealed"
    try workspace.sql(
      """
      ATTACH '\(workspace.path("early"))' AS early;
      REPLACE INTO main.secret SELECT \(columns) FROM early.secret WHERE n = 1
      """)
    try workspace.remove("early")
    try expectDamaged([1], withEdition ? .changed : .damaged, in: workspace, registry)
  }

  @Test func `a secret of another store under the same master key does not open`() throws {
    let credentials = KeyCredentials(current: [UInt8](repeating: 0x4b, count: 32))
    let (workspace, other) = (try Workspace(), try Workspace())
    for (place, identity) in [(workspace, identity), (other, uuid(9))] {
      try place.withStore(identity: identity, credentials: credentials) { store, _ in
        try store.put(Self.items)
        try store.mustClose()
      }
    }
    try workspace.sql(
      """
      ATTACH '\(other.path("identityd.db"))' AS other;
      REPLACE INTO main.secret SELECT * FROM other.secret WHERE n IN (1, 3)
      """)
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.condition == .writable)
      try store.expectOpen([Self.items[1], Self.items[3]])
      for known in [Self.items[0], Self.items[2]] { try store.expectDamaged(known.item, .damaged) }
    }
  }

  @Test func `row 12: a change of any byte of a sealed secret is noticed`() throws {
    let workspace = try Workspace(inMemory: true)
    let length = 140
    let items = (1...Int64(length)).map { Known($0, length: length - 40) }
    try workspace.fill(items)
    let sealed = try workspace.sql("SELECT hex(sealed) FROM secret ORDER BY n").split(separator: "\n")
    var edits = "BEGIN;"
    for (place, line) in sealed.enumerated() {
      try #require(line.utf8.count == 2 * length)
      // In the secret of item n, the byte at offset n - 1 is changed.
      var digits = Array(line.utf8)
      let byte = (UInt8(line.dropFirst(2 * place).prefix(2), radix: 16) ?? 0) ^ 1 << UInt8(place % 8)
      digits.replaceSubrange((2 * place)..<(2 * place + 2), with: Array(String(format: "%02X", byte).utf8))
      edits += "UPDATE secret SET sealed = x'\(String(decoding: digits, as: UTF8.self))' WHERE n = \(place + 1);"
    }
    try workspace.sql(edits + "COMMIT")
    try workspace.withStore { store, content in
      #expect(content.condition == .writable)
      let reader = try store.reader()
      let memory = try store.makeSecretMemory()
      for known in items {
        #expect(ReaderAnswer(reader, known.item, memory) == .damaged, "byte \(known.item.number - 1)")
        #expect(refusal { _ = try store.secret(of: known.item) } == .damagedSecret(known.item))
      }
    }
  }
}
