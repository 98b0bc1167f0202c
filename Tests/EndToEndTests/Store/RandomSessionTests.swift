import TestSupport
import Testing

@Suite(.enabled(if: isRoot, "acting as several users needs root"), .tags(.trial, .threads)) struct RandomSessionTests {
  @Test func `rows 40 and 40d: a daemon killed repeatedly gives the answers and events of the reference model`()
    throws
  {
    let sessions = Trial.rounds(12, long: 300)
    var (requests, kills, lost) = (0, 0, 0)
    for seed in 1...UInt64(sessions) {
      let session = try RandomSession(seed)
      do {
        try session.run(lives: 4, requests: 300)
      } catch {
        lost += 1
        Issue.record("session \(seed): \(error)")
        // Ends after the first failure, which may have taken long. The long run continues up to five.
        if lost == (Trial.isLong ? 5 : 1) { break }
      }
      requests += session.requests
      kills += session.kills
    }
    try Trial("requests to a real daemon against the reference model")
      .report(tried: requests, lost: lost, "\(sessions) daemons, \(kills) times kill -9")
  }
}
