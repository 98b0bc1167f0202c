import Foundation
import IdentityCore
import TestSupport
import Testing

/// The linux order beside systemd's own.
@Suite struct LinuxOrderTests {
  private static let alphabet = Array("~~--^^..__++0001239abzAZ").map(String.init)

  /// A pair; in most the second is the first with something done to it, because what differs early tells little.
  private static func pair(_ random: inout SeededGenerator) -> (String, String) {
    let left = version(&random)
    if random.once(in: 4) { return (left, version(&random)) }
    var right = left.map(String.init)
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      let place = Int.random(in: 0...right.count, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0 where place < right.count: right.remove(at: place)
      case 1 where place < right.count: right[place] = random.one(of: alphabet)
      default: right.insert(random.one(of: alphabet), at: place)
      }
    }
    return random.once(in: 2) ? (left, right.joined()) : (right.joined(), left)
  }

  private static func version(_ random: inout SeededGenerator) -> String {
    let plain = ["1.2", "123", "1.2~rc1", "6.1.0-28-amd64", "252.39-1~deb12u2", "1.0^git1", "a1"]
    let beginning = random.once(in: 3) ? random.one(of: plain) : ""
    return beginning + (0..<Int.random(in: 0...6, using: &random)).map { _ in random.one(of: alphabet) }.joined()
  }

  /// What `systemd-analyze compare-versions` says of each pair, by its exit status.
  private static func verdicts(on pairs: [(String, String)]) throws -> [String] {
    let shell = Process()
    shell.executableURL = URL(filePath: "/bin/sh")
    // Neither version has a space; one that is empty is still a word.
    shell.arguments = [
      "-c",
      "while read -r a b; do /usr/bin/systemd-analyze compare-versions -- \"${a#=}\" \"${b#=}\" >/dev/null </dev/null; echo $?; done",
    ]
    let (input, output) = (Pipe(), Pipe())
    shell.standardInput = input
    shell.standardOutput = output
    try shell.run()
    try input.fileHandleForWriting.write(contentsOf: Data(pairs.map { "=\($0) =\($1)\n" }.joined().utf8))
    try input.fileHandleForWriting.close()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    shell.waitUntilExit()
    return text.split(separator: "\n").map(String.init)
  }

  // systemd-analyze(1): 12 where the first is older, 11 where it is newer, 0 where they are equal.
  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func `whatever two versions are, the order is systemd's`(seed: UInt64) throws {
    var random = SeededGenerator(seed)
    let pairs = (0..<Trial.rounds(100, long: 300)).map { _ in Self.pair(&random) }
    let verdicts = try Self.verdicts(on: pairs)
    try #require(verdicts.count == pairs.count)
    for ((left, right), verdict) in zip(pairs, verdicts) {
      let outcome = VersionOrder.linux.compare(Text(left), Text(right))
      let expected = ["0": VersionOrder.Outcome.equal, "11": .greater, "12": .less][verdict]
      #expect(outcome == expected, "'\(left)' and '\(right)': systemd-analyze ends with \(verdict)")
    }
    for verdict in ["0", "11", "12"] { #expect(verdicts.count { $0 == verdict } > 2 || Trial.isShort) }
  }
}
