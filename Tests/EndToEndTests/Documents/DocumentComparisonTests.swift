import Testing

/// The comparison of a document with real output, which must be able to fail.
struct DocumentComparisonTests {
  private static let one = "00000000-0000-4000-8000-000000000001"
  private static let two = "00000000-0000-4000-8000-000000000002"
  private static let three = "00000000-0000-4000-8000-000000000003"
  private static let time = "2026-11-21T18:40:58.904Z"
  private static let later = "2027-01-01T00:00:00.000Z"

  /// Returns for each pair of lines, in order, whether the comparison accepts it.
  private func taken(_ pairs: [(shown: String, came: String)], typed: [String] = []) -> [Bool] {
    var comparison = DocumentComparison(typed: typed)
    return pairs.map { comparison.take([$0.shown], [$0.came]) }
  }

  @Test(arguments: [
    (one, two), ("at \(time)", "at \(later)"), ("    PID: 22253", "    PID: 7"), ("3061", "3062"),
    ("identityd 0.1.0 protocol=1", "identityd 0.2.0 protocol=1"),
  ])
  func `what varies may be another one`(shown: String, came: String) {
    #expect(taken([(shown, came)]) == [true])
  }

  @Test func `a UUID is the same one wherever it stands, and another one is another`() {
    let pairs = [
      (Self.one, Self.two), (Self.one, Self.three), (Self.three, Self.two), ("again \(Self.one)", "again \(Self.two)"),
    ]
    #expect(taken(pairs) == [true, false, false, true])
  }

  @Test func `what is typed stays itself, in whatever form`() {
    let pairs = [(Self.one, Self.two), (Self.two, Self.one), (Self.one, Self.one)]
    #expect(taken(pairs, typed: ["check \(Self.one.replacing("-", with: ""))"]) == [false, false, true])
  }

  @Test func `a time is the same one wherever it stands`() {
    #expect(taken([(Self.time, Self.later), (Self.time, Self.time)]) == [true, false])
  }

  @Test(arguments: [
    (["created"], ["replaced"]), (["created"], []), ([], ["created"]), (["a", "b"], ["b", "a"]), (["1"], ["2"]),
    (["exit status 15"], ["exit status 16"]), (["UID: 1000"], ["UID: 0"]), ([one], ["none"]), (["x"], [time]),
  ])
  func `anything else may not`(shown: [String], came: [String]) {
    var comparison = DocumentComparison(typed: [])
    let isTaken = comparison.take(shown, came)
    #expect(!isTaken)
  }

  @Test func `what came is shown with the UUIDs that are shown already`() {
    var comparison = DocumentComparison(typed: [])
    _ = comparison.take([Self.one], [Self.two])
    #expect(comparison.asShown("now \(Self.two)") == "now \(Self.one)")
  }
}
