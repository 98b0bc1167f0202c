import IdentityCore
import IdentityStore
import Testing

/// Rows of versions and push tokens, edited with sqlite3.
struct VersionTamperingTests {
  /// An edit, and the expected text of the fault. If rows are authentic but not current, nothing of their table
  /// is served.
  struct Edit: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let named: String
    var isAllLost: Bool { named == count }

    init(_ testDescription: String, _ sql: String, named: String = count) {
      self.testDescription = testDescription
      self.sql = sql
      self.named = named
    }
  }

  static let count = "proven rows and should hold"

  static let edits: [Edit] = [
    Edit(
      "another version", "UPDATE installed_release SET version = '13' WHERE n = 1",
      named: "a row of installed_release (1 debian 13) is not authentic"),
    Edit(
      "an app's release for the system", "UPDATE installed_release SET app = NULL WHERE n = 2",
      named: "a row of installed_release (2 1.0"),
    Edit(
      "two apps' reports swapped",
      "UPDATE version_report SET app = CASE app WHEN 'user:7' THEN 'com.example.full' ELSE 'user:7' END WHERE app NOT NULL",
      named: "a row of version_report (3 user:7 \(uuid(2_003)) upgraded) is not authentic, and 2 more"),
    Edit(
      "a report of another session", "UPDATE version_report SET session = '\(uuid(2_003))' WHERE n = 4",
      named: "a row of version_report (4 com.example.full \(uuid(2_003)) downgraded) is not authentic"),
    Edit(
      "a downgrade hidden", "UPDATE version_report SET state = 'upgraded' WHERE n = 4",
      named: "a row of version_report (4 com.example.full \(uuid(2_004)) upgraded) is not authentic"),
    Edit(
      "the order of two reports",
      """
      UPDATE version_report SET n = -1 WHERE n = 3; UPDATE version_report SET n = 3 WHERE n = 4;
      UPDATE version_report SET n = 4 WHERE n = -1
      """, named: "a row of version_report (3 com.example.full \(uuid(2_004)) downgraded) is not authentic, and 1 more"),
    Edit(
      "a claim of another app", "UPDATE version_claim SET app = 'com.example.full' WHERE n = 3",
      named: "a row of version_claim (3 com.example.full 1 "),
    Edit(
      "a copied claim",
      "INSERT INTO version_claim SELECT 4, app, version, 'x', revision, proof FROM version_claim WHERE n = 2",
      named: "a row of version_claim (4 com.example.full 2.0 x) is not authentic"),
    Edit(
      "two tokens swapped",
      "UPDATE token SET token = CASE n WHEN 2 THEN 'token 3.0/é' ELSE 'token 2.1/é' END",
      named: "a row of token (2 com.example.full provider 0 token 3.0/) is not authentic, and 1 more"),
    Edit(
      "a token of another app", "UPDATE token SET app = 'user:8' WHERE n = 3",
      named: "a row of token (3 user:8 provider 1 token 3.0/) is not authentic"),
    Edit(
      "an invalid token made valid", "UPDATE token SET valid = 1 WHERE n = 3", named: "a row of token (3 user:7"),
    Edit(
      "a token moved to another device", "UPDATE token SET device = '\(uuid(3))' WHERE n = 2",
      named: "a row of token (2 com.example.full provider 0"),
    Edit(
      "a row of another table",
      """
      INSERT INTO version_claim SELECT 9, app, version, session, revision, proof FROM version_report WHERE n = 4
      """, named: "a row of version_claim (9 com.example.full 1.0 \(uuid(2_004))) is not authentic"),
    Edit("a release deleted", "DELETE FROM installed_release WHERE n = 2"),
    Edit("a report deleted", "DELETE FROM version_report WHERE n = 5"),
    Edit("a claim deleted", "DELETE FROM version_claim WHERE n = 2"),
    Edit("a token deleted", "DELETE FROM token WHERE n = 2"),
    Edit("all claims deleted", "DELETE FROM version_claim"),
  ]

  @Test(arguments: edits)
  func `an edited row of versions or tokens is named, and verified rows are served`(edit: Edit) throws {
    let workspace = try Workspace()
    let original = try workspace.commit(sample(apps: 4) + life, withEvents: true)
    let events = try workspace.found().events
    try workspace.sql(edit.sql)
    for _ in 0..<2 {
      try workspace.withStore { store, content in
        let reason = try #require(content.condition.damage, "\(content)")
        #expect(reason.contains(edit.named), "\(reason)")
        #expect(content.registry.isPart(of: original))
        #expect(store.commit(installed(50)) == content.condition)
        let kind: Records = edit.sql.contains(" token") ? .tokens : .versions
        #expect(content.registry.unproven == kind)
        if edit.isAllLost {
          #expect(kind == .tokens ? content.registry.tokens.count == 0 : Array(content.registry.versions.all).isEmpty)
        }
        #expect(content.events == events)
        #expect(content.registry.apps == original.apps, "others go on")
      }
    }
  }

  /// Rows of an earlier time, each with the proof it had then.
  @Test(arguments: [
    "installed_release WHERE n = 2", "token WHERE n = 2", "token WHERE n = 3",
  ])
  func `row 16: a row rolled back to an earlier state is noticed, and nothing of its table is served`(row: String)
    throws
  {
    let workspace = try Workspace()
    let batches = sample(apps: 2) + life
    // Up to the release that comes again, or the tokens that are said of.
    let length = batches.count - (row.hasPrefix("token") ? 4 : 10)
    try workspace.commit(Array(batches[..<length]), withEvents: true)
    let early = try workspace.read("identityd.db")
    try workspace.commit(Array(batches[length...]), withEvents: true)
    try workspace.rollBack(row, to: early)
    let content = try workspace.found()
    #expect(content.condition.damage?.contains("are proven, but not all of them are current") == true)
    expectNothing(of: row, content.registry)
  }

  /// Rows that were deleted, with the proof they had.
  @Test(arguments: [
    "installed_release WHERE n = 3", "version_report WHERE n = 2", "version_claim WHERE n = 1", "token WHERE n = 1",
  ])
  func `a deleted row that is put back is noticed`(row: String) throws {
    let workspace = try Workspace()
    let batches = sample(apps: 2) + life
    let length = batches.count - (row.hasPrefix("token") ? 1 : row.hasPrefix("version_report") ? 9 : 7)
    try workspace.commit(Array(batches[..<length]), withEvents: true)
    let early = try workspace.read("identityd.db")
    try workspace.commit(Array(batches[length...]), withEvents: true)
    #expect(try workspace.sql("SELECT count(*) FROM \(row)") == "0\n")
    try workspace.rollBack(row, to: early)
    #expect(try workspace.sql("SELECT count(*) FROM \(row)") == "1\n")
    let content = try workspace.found()
    #expect(content.condition.damage?.contains(Self.count) == true, "\(content.condition)")
    expectNothing(of: row, content.registry)
  }

  private func expectNothing(of row: String, _ registry: Registry) {
    #expect(registry.unproven == (row.hasPrefix("token") ? .tokens : .versions))
    #expect(row.hasPrefix("token") ? registry.tokens.count == 0 : Array(registry.versions.all).isEmpty)
  }
}

struct FingerprintTests {
  @Test(arguments: [
    "x", "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD", "é \"quoted\" %s\\n", String(repeating: "a", count: 4_096),
  ])
  func `a fingerprint is the beginning of the token's SHA-256 digest`(token: String) throws {
    let workspace = try Workspace()
    let said = try workspace.run("/bin/sh", "-c", "printf %s \"$0\" | sha256sum | cut -c1-16", token)
    #expect(said.output == "\(Token.fingerprint(of: Text(token)))\n")
    #expect(Token.fingerprint(of: Text(token)).bytes.count == 16)
  }
}
