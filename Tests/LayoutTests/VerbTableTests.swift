import Foundation
import IdentityWire
import Testing
import identityctl

struct VerbTableLayoutTests {
  @Test func `no two verbs have the same words`() {
    #expect(Set(VerbTable.verbs.map(\.words)).count == VerbTable.verbs.count)
  }

  /// The verbs of both daemons.
  private var verbs: [Verb.Declaration] {
    VerbTable.verbs.map(\.declaration) + ControlVerb.allCases.map(\.declaration)
  }

  @Test func `a summary is one sentence that fits a line`() {
    for verb in verbs {
      #expect(verb.summary.hasSuffix("."), "\(verb.words)")
      #expect(verb.summary.count <= 100, "\(verb.words)")
    }
  }

  @Test func `names have the case in which they are compared`() {
    for verb in verbs {
      #expect(verb.words == verb.words.lowercased())
      for attribute in verb.attributes { #expect(attribute.name == attribute.name.lowercased(), "\(verb.words)") }
      for operand in verb.operands { #expect(operand.name == operand.name.uppercased(), "\(verb.words)") }
      #expect(verb.operands.dropLast().allSatisfy { !$0.repeats }, "\(verb.words)")
    }
  }

  @Test func `the decision lists each verb and command that destroys something, and whether the client asks`() throws {
    let losses =
      VerbTable.verbs.map { (name: $0.words, loss: $0.loss) }
      + ClientCommand.all.map { (name: $0.words, loss: $0.loss) }
    var expected: Set<String> = []
    for (name, loss) in losses {
      switch loss {
      case .nothing: continue
      case .named: expected.insert("\(name): no")
      case .askIfMore: expected.insert("\(name): if more")
      case .askIfAny: expected.insert("\(name): if any")
      case .ask: expected.insert("\(name): always")
      }
    }
    let path = "Sources/identityd/identityd.docc/Decisions/0069-commands-that-ask-for-consent.md"
    let rows = try Tree.lines(path).filter { $0.hasPrefix("| `") }.map { row in
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      return cells[0].filter { $0 != "`" }.replacing(" FILE", with: "") + ": " + cells[2]
    }
    #expect(Set(rows) == expected)
    #expect(rows.count == expected.count)
  }

  @Test func `a verb is added by its row, its rule and its test, as the article shows`() throws {
    let article = try Tree.text("Sources/identityd/identityd.docc/Architecture.md")
    let files = try Tree.text("Tests/AddedVerb/verb.patch").components(separatedBy: "\n+++ b/").dropFirst()
    let paths = ["Sources/IdentityCore/Rules/", "Sources/IdentityWire/Verbs/", "Tests/IdentityCoreTests/"]
    #expect(files.count == paths.count)
    for (file, path) in zip(files, paths) {
      let lines = file.split(separator: "\n", omittingEmptySubsequences: false)
      #expect(lines[0].hasPrefix(path) && article.contains("`\(lines[0])`"), "\(lines[0])")
      for line in lines where line.hasPrefix("+") { #expect(article.contains("\n\(line.dropFirst())\n"), "\(line)") }
      #expect(!lines.contains { $0.hasPrefix("-") && !$0.hasPrefix("--- ") }, "\(lines[0])")
    }
  }

  @Test func `a stored field takes five files with its verb, its event, its migration and its test`() throws {
    let files = try Tree.text("Tests/AddedVerb/field.patch").components(separatedBy: "\n+++ b/").dropFirst()
    #expect((4...5).contains(files.count))
    #expect(files.contains { $0.hasPrefix("Sources/IdentityCore/Records/") })
  }

  /// Words of the fuzz dictionary that are not in the table: values, names of the fuzzed peers, and words of files.
  private static let otherWords = [
    "%h", "%l", "%m", "%n", "%r", ".service", "557e5958-d390-4cbf-b928-2a2b19a1399a", "AccessGroups=",
    "DeviceIdentifier=", "ERR ", "EVENT ", "OK", "Rights=", "Unit=", "User=", "Vendor=", "VersionOrder=", "[App]",
    "\\\\u00",
    "%a2", "127.0.0.1", "AllowPlaintext=", "Broker=", "Sender=", "SiteKey=", "Spread=", "Username=", "[Fleet]",
    "app=*", "boot",
    "commit=yes", "device", "dry-run=yes",
    "force=yes", "generation=1 counter=1 record=AAAA", "group=*", "identityd-backup 1 argon2id ops=",
    "installation", "lifetime=installation", "limit=one", "mqtt://", "mqtts://", "of=os", "order=linux",
    "org.a", "org.b", "org.c", "org.media", "org.shared", "session", "snapshot=yes",
    "this-device-only=yes", "user:1000", "vendor",
  ]

  @Test func `the fuzz dictionary contains the words of the table`() throws {
    let path = "Tests/IdentityFuzz/words.dict"
    let ofTable = verbs.flatMap { verb in
      [verb.words] + verb.attributes.map { $0.name + ($0.suffix == nil ? "=" : "") }
    }
    let lines = Set(ofTable + Self.otherWords).sorted().map { "\"\($0)\"\n" }
    let expected = "# The words of the verb table and of the files, for libFuzzer.\n" + lines.joined()
    if ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_MANUAL"] != nil {
      try Data(expected.utf8).write(to: Tree.root.appending(path: path))
    }
    #expect(try Tree.text(path) == expected, "run the tests once with IDENTITYD_UPDATE_MANUAL=1")
  }
}
