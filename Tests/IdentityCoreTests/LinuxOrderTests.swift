import Foundation
import IdentityCore
import TestSupport
import Testing

/// The version order `linux`, compared with systemd's implementation.
struct LinuxOrderTests {
  private static let alphabet = Array("~~--^^..__++0001239abzAZ").map(String.init)

  /// Returns two versions. Mostly the second is a variation of the first, because versions that differ
  /// early test little.
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

  /// Returns the exit status of `systemd-analyze compare-versions` for each pair.
  private static func verdicts(on pairs: [(String, String)]) throws -> [String] {
    let shell = Process()
    shell.executableURL = URL(filePath: "/bin/sh")
    // No version has a space. The `=` before each makes an empty version a word too.
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

  // systemd-analyze(1): 12 if the first version is older, 11 if it is newer, 0 if both are equal.
  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func `the linux order of random versions agrees with systemd's`(seed: UInt64) throws {
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
