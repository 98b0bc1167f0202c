import IdentityCore
import IdentityWire
import LinuxSystem

/// What the loop counts and measures, for `stats`. It belongs to the loop's thread alone, so a count is an addition.
///
/// How often a known answer was given is with those, in ``KnownAnswers``.
final class Measurements {
  /// In the place of a verb, for a line that has none.
  static let noVerb = VerbTable.verbs.count
  /// `ok`, then the codes of the protocol.
  static let outcomes = ["ok"] + ErrorCode.allCases.map(\.rawValue)

  /// By verb, and for each by outcome.
  private let answers = Slots<UInt64>(repeating: 0, count: (noVerb + 1) * outcomes.count)
  /// By the family of the verb.
  private(set) var jobs = [Histogram](repeating: Histogram(.seconds), count: VerbTable.families.count)
  private(set) var turns = Histogram(.seconds)
  private(set) var commits = (done: 0, failed: 0)
  private(set) var commitSeconds = Histogram(.seconds)
  private(set) var commitChanges = Histogram(.amounts)
  private(set) var storeSize: Int64 = 0
  var events = 0
  var accepted = 0
  var refused = 0
  private var countedRequests: [Text: UInt64] = [:]
  /// Whose connection ended last, and what it asked that is not counted for its app yet: the next one often is the same.
  private var latest: (peer: HeldPeer, requests: UInt64)?

  /// How many turns it is until one is measured.
  private var untilMeasurement = Bound.turnsBetweenMeasurements
  /// When the turn that is measured began, in microseconds of the monotonic clock; 0 where none is.
  private var turnStarted: UInt64 = 0

  // MARK: Requests

  /// Counts an answer.
  ///
  /// - Parameters:
  ///   - verb: its place, or ``noVerb``.
  ///   - code: nil for `OK`.
  func countAnswer(to verb: Int, _ code: ErrorCode?) {
    let outcome = code.flatMap { ErrorCode.allCases.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
    answers[verb * Self.outcomes.count + outcome] &+= 1
  }

  /// How many answers of a kind there were but for the known ones.
  func count(ofVerb verb: Int, outcome: Int) -> UInt64 { answers[verb * Self.outcomes.count + outcome] }

  /// A connection has ended: what it asked still counts for its app.
  func keepRequests(of connection: Connection) {
    guard connection.requests > 0 else { return }
    if latest?.peer !== connection.held { countLatest() }
    latest = (connection.held, (latest?.requests ?? 0) + connection.requests)
  }

  /// How many requests apps have made by connections that have ended.
  var requestsOfApps: [Text: UInt64] {
    countLatest()
    return countedRequests
  }

  private func countLatest() {
    guard let (peer, requests) = latest.take() else { return }
    let app = peer.peer.app
    guard countedRequests.count < Bound.countedApps || countedRequests[app] != nil else { return }
    countedRequests[app, default: 0] += requests
  }

  // MARK: Turns

  /// The kernel has told of something, which is to be done now.
  func beginTurn() {
    untilMeasurement -= 1
    guard untilMeasurement == 0 else { return }
    untilMeasurement = Bound.turnsBetweenMeasurements
    turnStarted = Clock.monotonicMicroseconds
  }

  /// It is done.
  func endTurn() {
    guard turnStarted > 0 else { return }
    turns.add(Clock.monotonicMicroseconds - turnStarted)
    turnStarted = 0
  }

  // MARK: The writer

  /// Takes in the answer to a job.
  ///
  /// - Parameter now: microseconds of the monotonic clock.
  func take(_ outcome: WriterReport.Outcome, at now: UInt64) {
    switch outcome.result {
    case .success: countAnswer(to: outcome.verb, nil)
    case .failure(let refusal): countAnswer(to: outcome.verb, refusal.code)
    }
    jobs[VerbTable.familyPlaces[outcome.verb]].add(now - outcome.started)
  }

  /// Takes in what the writer has measured.
  func take(_ report: WriterReport) {
    for commit in report.commits {
      if commit.isDone { commits.done += 1 } else { commits.failed += 1 }
      commitSeconds.add(commit.microseconds)
      commitChanges.add(UInt64(commit.changes))
    }
    if let size = report.storeSize { storeSize = size }
  }
}
