import Foundation
import IdentityCore
import TestSupport
import Testing

/// The orders of versions, compared with the programs that they come from.
@Suite(.tags(.trial)) struct OriginalOrderTests {
  private typealias Pair = (left: String, right: String)

  /// A program that compares versions.
  struct Original: Sendable, CustomTestStringConvertible {
    let order: VersionOrder
    let program: String
    /// The arguments of the program, which reads a pair of versions in each line, each behind `=`, and writes `<`, `=` or
    /// `>` for each.
    let arguments: [String]
    /// The parts of a random version, one of each list after the other.
    let parts: [[String]]
    /// Characters of which more are put anywhere.
    let alphabet: String
    /// The file of versions from the field, two in each line.
    let found: String
    /// The number of random pairs for each seed. A program that runs for each pair gets all of them only in the long run.
    let rounds: Int
    var testDescription: String { "\(order) as \(arguments.last ?? program)" }
  }

  private static let numbers = ["0", "1", "2", "9", "10", "99", "2024"]

  private static func shell(_ comparison: String) -> [String] {
    [
      "-c",
      """
      while read -r a b; do
        a=${a#=} b=${b#=}
        \(comparison)
      done
      """,
    ]
  }

  private static func python(_ module: String, _ version: String) -> [String] {
    [
      "-c",
      """
      import sys, \(module)
      for line in sys.stdin:
        left, right = (\(version)(word[1:]) for word in line.split())
        print("<" if left < right else ">" if left > right else "=")
      """,
    ]
  }

  private static let originals = [
    // systemd-analyze(1): 12 if the first version is older, 11 if it is newer, 0 if both are equal.
    Original(
      order: .linux, program: "/bin/sh",
      arguments: shell(
        #"systemd-analyze compare-versions -- "$a" "$b" >/dev/null </dev/null; case $? in 0) echo =;; 11) echo ">";; 12) echo "<";; esac"#
      ),
      parts: [["", "", "1.2", "123", "1.2~rc1", "6.1.0-28-amd64", "252.39-1~deb12u2", "1.0^git1", "a1"]],
      alphabet: "~~--^^..__++0001239abzAZ", found: "debian", rounds: Trial.rounds(200, long: 1_000)),
    // A version begins with a digit, or dpkg warns.
    Original(
      order: .debian, program: "/bin/sh",
      arguments: shell(
        #"if dpkg --compare-versions "$a" lt "$b"; then echo "<"; elif dpkg --compare-versions "$a" gt "$b"; then echo ">"; else echo =; fi"#
      ),
      parts: [
        ["", "", "", "1:", "2:"], numbers, ["", ".", "~", "+", "a"], numbers, ["", "", "-1", "-1+b1", "-2~deb12u3"],
      ],
      alphabet: "~~..++001239abzAZ", found: "debian", rounds: Trial.rounds(200, long: 1_000)),
    Original(
      order: .semver, program: "/usr/bin/python3", arguments: python("semver", "semver.VersionInfo.parse"),
      parts: [
        numbers, ["."], numbers, ["."], numbers, ["", "-"], ["rc", "alpha", "beta", "1", "10", "a-b", "x1"],
        ["", ".1", ".2", ".10", ".x", ".1a"], ["", "+7", "+b.8"],
      ],
      alphabet: "", found: "semver", rounds: 1_000),
    // Of versions with as many numbers: 1.0 and 1.0.0 are one for Python.
    Original(
      order: .auto, program: "/usr/bin/python3", arguments: python("packaging.version", "packaging.version.Version"),
      parts: [
        numbers, ["."], numbers, ["."], numbers, ["", "", "a1", "a2", "b1", "rc1", "rc10", "alpha1", "beta2", ".pre1"],
        ["", "", "", ".dev1", ".dev2"],
      ],
      alphabet: "", found: "python", rounds: 1_000),
  ]

  /// Returns two versions. Mostly the second is a variation of the first, because versions that differ early test little.
  private static func pair(of original: Original, _ random: inout SeededGenerator) -> Pair {
    var parts = original.parts.map { random.one(of: $0) }
    let left = version(parts, original, &random)
    for _ in 0..<(random.once(in: 4) ? parts.count : 2) {
      let place = Int.random(in: parts.indices, using: &random)
      parts[place] = random.one(of: original.parts[place])
    }
    let right = version(parts, original, &random)
    return random.once(in: 2) ? (left, right) : (right, left)
  }

  private static func version(_ parts: [String], _ original: Original, _ random: inout SeededGenerator) -> String {
    // A hyphen without a pre-release is none.
    var text = original.order == .semver && parts[5].isEmpty ? parts[..<5].joined() + parts[8] : parts.joined()
    let letters = original.alphabet.map(String.init)
    guard !letters.isEmpty else { return text }
    for _ in 0..<Int.random(in: 0...3, using: &random) { text += random.one(of: letters) }
    return text
  }

  private static func verdicts(of original: Original, on pairs: [Pair]) throws -> [String] {
    let process = Process()
    process.executableURL = URL(filePath: original.program)
    process.arguments = original.arguments
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    let text = Data(pairs.map { "=\($0.left) =\($0.right)\n" }.joined().utf8)
    let writer = Thread {
      try? input.fileHandleForWriting.write(contentsOf: text)
      try? input.fileHandleForWriting.close()
    }
    writer.start()
    let answer = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return answer.split(separator: "\n").map(String.init)
  }

  private func expectOrder(of original: Original, on pairs: [Pair]) throws {
    let verdicts = try Self.verdicts(of: original, on: pairs)
    try #require(verdicts.count == pairs.count)
    for ((left, right), verdict) in zip(pairs, verdicts) {
      let outcome = original.order.compare(Text(left), Text(right))
      let expected = ["=": VersionOrder.Outcome.equal, ">": .greater, "<": .less][verdict]
      #expect(outcome == expected, "'\(left)' and '\(right)': the original says \(verdict)")
    }
    for verdict in ["<", ">"] { #expect(verdicts.contains(verdict) || Trial.isShort, "no pair is \(verdict)") }
  }

  @Test(arguments: originals, 1...5 as ClosedRange<UInt64>)
  func `the order of random versions is that of the original`(original: Original, seed: UInt64) throws {
    var random = SeededGenerator(seed)
    try expectOrder(of: original, on: (0..<original.rounds).map { _ in Self.pair(of: original, &random) })
  }

  // Versions of packages of Debian 12, 13 and unstable, of a JavaScript library and of twelve Python packages.
  @Test(arguments: originals)
  func `the order of versions from the field is that of the original`(original: Original) throws {
    let file = Document.root.appending(path: "Tests/IdentityCoreTests/Fixtures/versions/\(original.found).txt")
    let pairs: [Pair] = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      return (words[0], words[1])
    }
    try #require(pairs.count == 300)
    try expectOrder(of: original, on: pairs)
    // The order that fits by form is the right one for each of these, too.
    for (left, right) in pairs where original.order != .linux {
      #expect(
        VersionOrder.auto.compare(Text(left), Text(right)) == original.order.compare(Text(left), Text(right)),
        "'\(left)' and '\(right)'")
    }
  }
}
