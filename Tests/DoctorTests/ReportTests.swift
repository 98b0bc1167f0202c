import Foundation
import IdentityWire
import Testing

@testable import Doctor

struct ReportTests {
  private static let facts: [Verb.Field] = [.word("a"), .number("n"), .boolean("f"), .list("l"), .number("odd")]

  private let findings: [(check: Check, finding: Finding)] = named([
    (
      "good",
      Finding(facts: [
        Finding.Fact("a", "b"), Finding.Fact("n", "7"), Finding.Fact("f", "no"), Finding.Fact("l", list: ["x y", "z"]),
        Finding.Fact("odd", "seven"), Finding.Fact("undeclared", "1"),
      ])
    ),
    ("passed-over", Finding(skipped: "nobody\u{1b}[2J\u{202e}looks")),
    (
      "bad",
      Finding([
        .failure("line\nfeed", .root("rm", "/a b"), .anybody("true")).causing(.unreachable),
        .warning("a \"word\" \u{9b}", .root("id")),
      ])
    ), ("late", Finding([.failure("no\twhere", .root("ls")).being(.unreachable)])),
  ])

  private static func named(_ findings: [(String, Finding)]) -> [(check: Check, finding: Finding)] {
    findings.map { name, finding in (Check(name, "", facts: facts) { _ in finding }, finding) }
  }

  @Test func `checks are listed first, then each cause with its remedy and its symptoms`() {
    let text = Report(findings, for: 1_000).text(isColoured: false) { $0 + "\n" }
    #expect(
      text == """
        good         ok
        passed-over  skipped  nobody\\u001b[2J\\u202elooks
        bad          failed
        late         failed  symptom of bad

        bad failed: line\\u000afeed
            sudo rm '/a b'
            true
        symptom of bad: late failed: no\\u0009where

        bad warning: a "word" \\u009b
            sudo id

        """)
    #expect(!text.unicodeScalars.contains { WordEncoder.isHidden($0) && $0 != "\n" })
  }

  @Test func `causes are broken into lines, and commands are not`() {
    let text = Report(findings, for: 0).text(isColoured: false) { $0.replacing(" ", with: "\n  ") + "\n" }
    #expect(text.contains("\nbad\n  failed:\n  line\\u000afeed\n    rm '/a b'\n"))
  }

  @Test func `remarks follow warnings, and are no fault`() {
    let report = Report(
      Self.named([
        ("a", Finding([.info("x", .root("x"))])), ("b", Finding([.warning("y", .root("y")), .info("z", .root("z"))])),
      ]), for: 0)
    let text = report.text(isColoured: false) { $0 + "\n" }
    #expect(text.hasPrefix("a  info\nb  warning\n\nb warning: y\n"), "\(text)")
    #expect(report.isGood && report.count(of: .warning) == 1 && report.count(of: .info) == 1)
  }

  @Test func `a coloured report has the same text, with an emphasis of results, notes and commands`() {
    let report = Report(findings, for: 1_000)
    let text = report.text(isColoured: true) { $0 + "\n" }
    #expect(text.replacing(/\u{1b}\[\d+m/, with: "") == report.text(isColoured: false) { $0 + "\n" })
    for line in [
      "good         \u{1b}[32mok\u{1b}[0m\n",
      "late         \u{1b}[31mfailed\u{1b}[0m  \u{1b}[2msymptom of bad\u{1b}[0m\n",
      "bad \u{1b}[33mwarning\u{1b}[0m: ", "\n    \u{1b}[1msudo id\u{1b}[0m\n", "  \u{1b}[2mskipped\u{1b}[0m  ",
    ] {
      #expect(text.contains(line), "\(text)")
    }
  }

  @Test func `remedies for root have no sudo`() {
    #expect(!Report(findings, for: 0).text(isColoured: false) { $0 + "\n" }.contains("sudo"))
  }

  @Test func `JSON is one document with the content of the text and no hidden characters`() throws {
    let report = Report(findings, for: 0)
    let document = try #require(try JSONSerialization.jsonObject(with: Data(report.json.utf8)) as? [String: Any])
    #expect(document["ok"] as? Bool == false)
    let checks = try #require(document["checks"] as? [[String: Any]])
    #expect(checks.map { $0["name"] as? String } == ["good", "passed-over", "bad", "late"])
    #expect(checks.map { $0["result"] as? String } == ["ok", "skipped", "failed", "failed"])
    #expect(checks.map { $0["reason"] as? String } == [nil, "nobody\u{1b}[2J\u{202e}looks", nil, nil])
    let facts: NSDictionary = ["a": "b", "n": 7, "f": false, "l": ["x y", "z"], "odd": "seven", "undeclared": "1"]
    #expect(checks[0]["facts"] as? NSDictionary == facts)
    let found = try #require(document["findings"] as? [[String: Any]])
    #expect(found.map { $0["check"] as? String } == ["bad", "late", "bad"])
    #expect(found.map { $0["result"] as? String } == ["failed", "failed", "warning"])
    #expect(found.map { $0["cause"] as? String } == ["line\nfeed", "no\twhere", "a \"word\" \u{9b}"])
    #expect(found.map { $0["mend"] as? [String] } == [["rm '/a b'", "true"], [], ["id"]])
    #expect(found.map { $0["symptom-of"] as? String } == [nil, "bad", nil])
    #expect(report.json.unicodeScalars.filter(WordEncoder.isHidden) == ["\n"])
  }

  @Test func `warnings and skipped checks are no failure`() {
    #expect(Report(Self.named([("a", Finding([.warning("w")])), ("b", Finding(skipped: "s"))]), for: 0).isGood)
    #expect(!Report(Self.named([("a", Finding([.warning("w"), .failure("f")]))]), for: 0).isGood)
  }

  @Test(arguments: [
    "plain", "two words", "it's", "a\nb", "\u{1b}[1m'\\", "", "$(id)", "`id`", "*", "ä\u{9b}", "a\u{2066}b\u{200b}'c",
  ])
  func `a quoted word is read back unchanged by a shell`(word: String) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/bash")
    process.arguments = ["-c", "printf %s \(Remedy.quoted(word))"]
    process.environment = ["LC_ALL": "C.UTF-8"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let read = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(String(decoding: read, as: UTF8.self) == word)
    #expect(!Remedy.quoted(word).unicodeScalars.contains(where: WordEncoder.isHidden))
  }

  @Test func `every check has its own name and a sentence as summary`() {
    #expect(Set(Check.all.map(\.name)).count == Check.all.count)
    for check in Check.all {
      #expect(check.name.utf8.allSatisfy { $0 == 0x2d || (0x61...0x7a).contains($0) }, "\(check.name)")
      #expect(check.summary.hasSuffix("."), "\(check.name)")
    }
  }
}
