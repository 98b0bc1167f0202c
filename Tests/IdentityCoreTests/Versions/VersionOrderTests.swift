import IdentityCore
import TestSupport
import Testing

extension VersionOrder.Outcome {
  /// The outcome of the comparison with both sides exchanged.
  var mirrored: Self {
    switch self {
    case .less: .greater
    case .equal: .equal
    case .greater: .less
    }
  }
}

struct VersionOrderTests {
  @Test(
    arguments: [
      ("1.2.3", "1.2.3.1", .less), ("1.2.3", "1.22", .less), ("2.0.0", "2.00.00.0.0", .equal),
      ("1.4.5.3.4.6.", "1.4.5", .greater), ("2.0", "2.00.0", .equal), ("1.2", "1.2.0.1", .less), ("1.2", "1.10", .less),
      // Empty fields are skipped, and the value of a field is the number at its beginning.
      ("", "0", .equal), ("", "0.0.0", .equal), ("", "1", .less), ("..1...2.", "1.2", .equal), (".", "", .equal),
      ("1..0.2", "1.0.2", .equal), ("abc", "0", .equal), ("v1", "1", .less), ("1rc2", "1", .equal),
      ("1.2rc1.3", "1.2.3", .equal), ("1.9a", "1.10", .less), ("-1", "0", .equal), ("+1", "1", .less),
      (" 1", "1", .less), ("1 2", "1", .equal), ("1.~2", "1.2", .less), ("1,5", "1", .equal), ("0x10", "0", .equal),
      ("\u{661}", "1", .less), ("1\u{301}", "1", .equal), ("1.000000000000000000000000", "1", .equal),
      ("007", "7", .equal), ("0", "00000000000000000000000000000000", .equal),
      // Numbers that do not fit into 64 bits.
      ("9223372036854775807", "9223372036854775808", .less), ("9223372036854775808", "9223372036854775809", .less),
      ("18446744073709551615", "18446744073709551616", .less), ("18446744073709551617", "1", .greater),
      ("20261121000000000000000000", "20261120999999999999999999", .greater),
    ] as [(Text, Text, VersionOrder.Outcome)])
  func `the numeric order compares fields as numbers`(left: Text, right: Text, expected: VersionOrder.Outcome) {
    #expect(VersionOrder.numeric.compare(left, right) == expected)
    #expect(VersionOrder.numeric.compare(right, left) == expected.mirrored)
  }

  /// Versions in ascending order, as documented for systemd.
  private static let ascending: [Text] = [
    "~1", "", "ab", "abb", "abc", "0001", "002", "12", "122", "122.9", "123~rc1", "123", "123-a", "123-a.1", "123-a1",
    "123-a1.1", "123-3", "123-3.1", "123^patch1", "123^1", "123.a-1", "123.1-1", "123a-1", "124",
  ]

  @Test func `the linux order is that of the specification`() {
    for (place, left) in Self.ascending.enumerated() {
      for (other, right) in Self.ascending.enumerated() {
        let expected: VersionOrder.Outcome = place < other ? .less : place == other ? .equal : .greater
        #expect(VersionOrder.linux.compare(left, right) == expected, "\(left) and \(right)")
      }
    }
  }

  @Test(
    arguments: [
      ("123_aa2-67.89", "123aa+2-67.89", .equal), ("0_", "0", .equal), ("1.2~rc1", "1.2", .less),
      ("1.2", "1.2.0", .less),
      ("1.2", "1.02", .equal), ("1.2", "1.10", .less), ("1..2", "1.2", .less), ("1.2.", "1.2", .greater),
      ("1-", "1", .greater), ("1-", "1_-", .equal), ("~", "", .less), ("~~", "~", .greater), ("~~", "", .less),
      ("é", "", .equal),
      ("1é2", "1_2", .equal), ("é1", "1", .equal), ("a", "A", .greater), ("a", "1", .less), ("1-_2", "1-2", .less),
      ("184467440737095516160", "18446744073709551617", .greater),
    ] as [(Text, Text, VersionOrder.Outcome)])
  func `the linux order has these corner cases`(left: Text, right: Text, expected: VersionOrder.Outcome) {
    #expect(VersionOrder.linux.compare(left, right) == expected)
    #expect(VersionOrder.linux.compare(right, left) == expected.mirrored)
  }

  @Test func `the two orders differ where they should`() {
    #expect(VersionOrder.numeric.compare("1.2~rc1", "1.2") == .equal)
    #expect(VersionOrder.numeric.compare("1.2", "1.2.0") == .equal)
    #expect(VersionOrder.numeric.compare("1.2-3", "1.2-4") == .equal)
    #expect(VersionOrder.linux.compare("1.2-3", "1.2-4") == .less)
  }

  @Test(arguments: VersionOrder.allCases)
  func `fields of thousands of digits are compared as numbers`(order: VersionOrder) {
    let nines = String(repeating: "9", count: 5_000)
    let zeros = String(repeating: "0", count: 5_000)
    let (small, large) = (Text("1.\(nines)8.5"), Text("1.\(nines)9.4"))
    #expect(order.compare(small, large) == .less)
    #expect(order.compare(large, small) == .greater)
    #expect(order.compare(Text("1.\(zeros)\(nines)8.5"), small) == .equal)
    #expect(order.compare(Text("1.1\(zeros)\(nines)8.5"), large) == .greater)
    #expect(order.compare(Text("1.\(zeros)"), "1.0") == .equal)
    #expect(order.compare(Text("1.\(zeros)1"), "1.2") == .less)
  }

  @Test func `thousands of fields are compared up to the last`() {
    let fields = String(repeating: "7.", count: 5_000)
    #expect(VersionOrder.numeric.compare(Text(fields + "1"), Text(fields + "2")) == .less)
    #expect(VersionOrder.numeric.compare(Text(fields + "0.0.0"), Text(fields)) == .equal)
    #expect(VersionOrder.linux.compare(Text(fields + "1~"), Text(fields + "1")) == .less)
  }

  // MARK: Generated versions

  /// Returns the numbers of a version, each padded to 40 digits, so that the result does not depend on integer sizes.
  private static func padded(_ version: String) -> String {
    var numbers = version.split(separator: ".").map { field in
      let digits = field.prefix { ("0"..."9").contains($0) }
      return String(repeating: "0", count: 40 - digits.count) + digits
    }
    while numbers.count < 24 { numbers.append(String(repeating: "0", count: 40)) }
    return numbers.joined()
  }

  private static func version(_ random: inout SeededGenerator, of alphabet: [String], upTo length: Int) -> String {
    (0..<Int.random(in: 0...length, using: &random)).map { _ in random.one(of: alphabet) }.joined()
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `the numeric order equals a comparison of padded digits`(seed: UInt64) {
    var random = SeededGenerator(seed)
    var outcomes: [VersionOrder.Outcome: Int] = [:]
    for _ in 0..<4_000 {
      let alphabet = ["0", "0", "1", "9", ".", ".", random.one(of: ["a", "~", "é", " "])]
      let left = Self.version(&random, of: alphabet, upTo: 20)
      let isClose = random.once(in: 2)
      let right =
        isClose ? left + random.one(of: ["", ".", ".0", "0", ".1", "x"]) : Self.version(&random, of: alphabet, upTo: 6)
      let (padded, other) = (Self.padded(left), Self.padded(right))
      let expected: VersionOrder.Outcome = padded < other ? .less : padded == other ? .equal : .greater
      let outcome = VersionOrder.numeric.compare(Text(left), Text(right))
      #expect(outcome == expected, "seed \(seed): \(left) and \(right)")
      outcomes[outcome, default: 0] += 1
    }
    for outcome in [.less, .equal, .greater] as [VersionOrder.Outcome] { #expect(outcomes[outcome, default: 0] > 100) }
  }

  @Test(arguments: VersionOrder.allCases, 1...3 as ClosedRange<UInt64>)
  func `the order is total and transitive`(order: VersionOrder, seed: UInt64) {
    var random = SeededGenerator(seed)
    let alphabet = ["0", "1", "2", "a", "b", ".", ".", "-", "~", "^", "_"]
    let versions = (0..<70).map { _ in Text(Self.version(&random, of: alphabet, upTo: 5)) }
    let places = versions.map { left in versions.map { right in order.compare(left, right) } }
    for (left, row) in places.enumerated() {
      #expect(row[left] == .equal)
      for (right, outcome) in row.enumerated() {
        #expect(outcome == places[right][left].mirrored, "\(versions[left]) and \(versions[right])")
        for third in versions.indices where places[right][third] == outcome {
          #expect(
            row[third] == outcome, "\(versions[left]), \(versions[right]) and \(versions[third])")
        }
      }
    }
  }

  @Test(
    arguments: [
      // SemVer 2.0.0, section 11.
      ("1.0.0", "2.0.0", .less), ("2.0.0", "2.1.0", .less), ("2.1.0", "2.1.1", .less), ("1.0.0-alpha", "1.0.0", .less),
      ("1.0.0-alpha", "1.0.0-alpha.1", .less), ("1.0.0-alpha.1", "1.0.0-alpha.beta", .less),
      ("1.0.0-alpha.beta", "1.0.0-beta", .less), ("1.0.0-beta", "1.0.0-beta.2", .less),
      ("1.0.0-beta.2", "1.0.0-beta.11", .less), ("1.0.0-beta.11", "1.0.0-rc.1", .less),
      ("1.0.0-rc.1", "1.0.0", .less), ("1.0.0+7", "1.0.0+8", .equal), ("1.0.0-a+7", "1.0.0-a", .equal),
      ("1.0.0--1", "1.0.0-1", .greater), ("1.0.0-1a", "1.0.0-2", .greater), ("1.10.0", "1.9.0", .greater),
    ] as [(Text, Text, VersionOrder.Outcome)])
  func `the order of semantic versions ranks pre-releases`(left: Text, right: Text, expected: VersionOrder.Outcome) {
    #expect(VersionOrder.semver.compare(left, right) == expected)
    #expect(VersionOrder.semver.compare(right, left) == expected.mirrored)
  }

  @Test(
    arguments: [
      ("2:9.1.0", "2:10.0.0", .less), ("1:1", "9", .greater), ("0:1", "1", .equal), ("1.0-1", "1.0-1+b1", .less),
      ("1.0-1+b1", "1.0-1+b2", .less), ("12+deb12u3", "12+deb12u10", .less), ("1.0~rc1", "1.0", .less),
      ("1.0", "1.0-0", .equal), ("1.0-1-2", "1.0-1-10", .less), ("1.a", "1.+", .less), ("1.", "1.0", .equal),
      ("1~~", "1~", .less), ("1~~a", "1~", .less), ("a:1", "a:2", .less),
    ] as [(Text, Text, VersionOrder.Outcome)])
  func `the order of Debian knows epochs and revisions`(left: Text, right: Text, expected: VersionOrder.Outcome) {
    #expect(VersionOrder.debian.compare(left, right) == expected)
    #expect(VersionOrder.debian.compare(right, left) == expected.mirrored)
  }

  @Test(
    arguments: [
      ("2.0", "2.00.0"), ("1", "1.0.0"), ("1.0rc1", "1.0.0-rc1"), ("1.0a1", "1.0.alpha.1"), ("v1", "v1.0"),
    ])
  func `the automatic order knows spellings of one version`(one: Text, other: Text) {
    #expect(VersionOrder.auto.compare(one, other) == .equal)
    #expect(VersionOrder.auto.compare(other, one) == .equal)
  }

  /// Upgrades as people write them, the older version first.
  private static let upgrades: [(Text, Text)] = [
    ("v1.9.0", "v2.0.0"), ("player-1.9", "player-2.0"), ("player-1.9", "player-1.10"), ("2:9.1.0", "2:10.0.0"),
    ("1.0.0-rc.1", "1.0.0"), ("1.0.0-beta.2", "1.0.0-beta.11"), ("12.2.0+deb12u3", "12.2.0+deb12u10"),
    ("1.0-1+b1", "1.0-1+b2"), ("r123", "r124"), ("r99", "r124"), ("2024-01-31", "2024-02-01"), ("3.11.0rc2", "3.11.0"),
    ("3.11.0a1", "3.11.0b1"), ("1.0.dev3", "1.0"), ("1.0-beta2", "1.0"), ("1.0-BETA2", "1.0-RC1"), ("1.0_pre1", "1.0"),
    ("1.2.3-4", "1.2.3-10"), ("1.2.3", "1.2.3-1"), ("1.0.2", "1.0.2a"), ("1.0.2a", "1.0.2k"), ("1.0", "1.0.post1"),
    ("1.2~rc1", "1.2"), ("6.1.0-28-amd64", "6.1.0-31-amd64"), ("252.39-1~deb12u1", "252.39-1~deb12u2"),
    ("1.0alpha.1", "1.0alpha.2"), ("20240131", "20240201"), ("v1.0.0-alpha", "v1.0.0"), ("1.0.0-rc.1+7", "1.0.0+8"),
    ("1.0.0+7", "1.0.0+8"),
  ]

  @Test(arguments: upgrades)
  func `the automatic order knows upgrades as people write them`(older: Text, newer: Text) {
    #expect(VersionOrder.auto.compare(older, newer) == .less)
    #expect(VersionOrder.auto.compare(newer, older) == .greater)
    #expect(VersionOrder.auto.compare(older, older) == .equal)
  }
}
