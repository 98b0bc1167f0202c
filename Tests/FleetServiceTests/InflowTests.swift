import FleetService
import Testing

/// The pace at which messages of a broker are opened.
struct InflowTests {
  /// Takes messages until one has to wait. Returns the number of them, and the verdict on the last.
  private func fill(_ inflow: inout Inflow, at now: UInt64) -> (taken: Int, verdict: Inflow.Verdict) {
    for taken in 0... {
      let verdict = inflow.next(at: now)
      if verdict != .open { return (taken, verdict) }
    }
    return (0, .open)
  }

  @Test func `of many messages, so many are opened in a second`() {
    var inflow = Inflow()
    let first = fill(&inflow, at: 5_000_000)
    #expect(first.taken == Inflow.most && first.verdict == .wait(1_000_000))
    #expect(inflow.next(at: 5_400_000) == .wait(600_000))
    let second = fill(&inflow, at: 6_000_000)
    #expect(second.taken == Inflow.most && second.verdict == .wait(1_000_000))
  }

  @Test func `a broker that sends too many for a minute is left`() {
    var inflow = Inflow()
    for second in 1...60 as ClosedRange<UInt64> {
      #expect(fill(&inflow, at: second * 1_000_000).verdict == .wait(1_000_000))
    }
    #expect(fill(&inflow, at: 61_000_000).verdict == .flood)
  }

  @Test func `a second with room makes up for a full one`() {
    var inflow = Inflow()
    for second in 1...60 as ClosedRange<UInt64> { _ = fill(&inflow, at: second * 1_000_000) }
    // A broker that pauses now and then is left, too.
    #expect(inflow.next(at: 61_000_000) == .open)
    #expect(fill(&inflow, at: 62_000_000).verdict == .wait(1_000_000))
    #expect(fill(&inflow, at: 63_000_000).verdict == .flood)
    // After a minute, nothing is left of it.
    inflow = Inflow()
    for second in 1...60 as ClosedRange<UInt64> { _ = fill(&inflow, at: second * 1_000_000) }
    for second in 122...181 as ClosedRange<UInt64> {
      #expect(fill(&inflow, at: second * 1_000_000).verdict == .wait(1_000_000))
    }
  }
}
