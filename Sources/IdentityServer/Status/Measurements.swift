import Attestation
import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions

/// The counts and measurements of the loop, for `stats`.
///
/// Only the loop's thread uses them, so a count is a plain addition. Answers from the cache are counted
/// in ``KnownAnswers``.
final class Measurements {
  /// The index that stands for a line without a known verb.
  static let noVerb = VerbTable.verbs.count
  /// The names of outcomes: `ok`, then the error codes of the protocol.
  static let outcomes = ["ok"] + ErrorCode.allCases.map(\.rawValue)

  /// The number of answers, by verb and then by outcome.
  private let answers = Slots<UInt64>(repeating: 0, count: (noVerb + 1) * outcomes.count)
  /// The durations of jobs, by the family of the verb.
  private(set) var jobs = [Histogram](repeating: Histogram(.seconds), count: VerbTable.families.count)
  private(set) var turns = Histogram(.seconds)
  private(set) var commits = (done: 0, failed: 0)
  private(set) var commitSeconds = Histogram(.seconds)
  private(set) var commitChanges = Histogram(.amounts)
  private(set) var storeSize: Int64 = 0
  private(set) var events = 0
  var accepted = 0
  /// The number of refused connections, by reason.
  private(set) var refused: [ConnectionRefusal.Reason: Int] = [:]
  private var countedRequests: [Text: UInt64] = [:]
  /// The peer whose connection ended last, and its requests that are not counted for its app yet. The next connection
  /// that ends often has the same peer.
  private var latest: (peer: HeldPeer, requests: UInt64)?

  /// The number of turns until the next measured one.
  private var untilMeasurement = Bound.turnsBetweenMeasurements
  /// The start of the measured turn, in microseconds of the monotonic clock; 0 if no turn is being measured.
  private var turnStarted: UInt64 = 0

  /// Counts a refused connection.
  func countRefusal(_ reason: ConnectionRefusal.Reason) { refused[reason, default: 0] += 1 }

  // MARK: Requests

  /// Counts an answer.
  ///
  /// - Parameters:
  ///   - verb: the index of the verb, or ``noVerb``.
  ///   - code: the error code; nil for `OK`.
  func countAnswer(to verb: Int, _ code: ErrorCode?) {
    let outcome = code.flatMap { ErrorCode.allCases.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
    answers[verb * Self.outcomes.count + outcome] &+= 1
  }

  /// Returns the number of answers of a kind, without answers from the cache.
  func count(ofVerb verb: Int, outcome: Int) -> UInt64 { answers[verb * Self.outcomes.count + outcome] }

  /// Keeps the request count of a connection that has ended, for its app.
  func keepRequests(of connection: Connection) {
    guard connection.session.requests > 0 else { return }
    if latest?.peer !== connection.held { countLatest() }
    latest = (connection.held, (latest?.requests ?? 0) + connection.session.requests)
  }

  /// The number of requests by app, from connections that have ended.
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

  /// Notes the start of a turn: the kernel has reported events.
  func beginTurn() {
    untilMeasurement -= 1
    guard untilMeasurement == 0 else { return }
    untilMeasurement = Bound.turnsBetweenMeasurements
    turnStarted = Clock.monotonicMicroseconds
  }

  /// Notes the end of a turn.
  func endTurn() {
    guard turnStarted > 0 else { return }
    turns.add(Clock.monotonicMicroseconds - turnStarted)
    turnStarted = 0
  }

  // MARK: The writer

  /// Counts the outcome of a job, and measures its duration.
  ///
  /// - Parameter now: the current time, in microseconds of the monotonic clock.
  func record(_ outcome: WriterReport.Outcome, at now: UInt64) {
    switch outcome.result {
    case .success: countAnswer(to: outcome.verb, nil)
    case .failure(let refusal): countAnswer(to: outcome.verb, refusal.code)
    }
    jobs[VerbTable.familyPlaces[outcome.verb]].add(now - outcome.started)
  }

  /// Adds the measurements of the writer.
  func record(_ report: WriterReport) {
    for commit in report.commits {
      if commit.isDone { commits.done += 1 } else { commits.failed += 1 }
      commitSeconds.add(commit.microseconds)
      commitChanges.add(UInt64(commit.changes))
    }
    events += report.results.events.count
    if let store = report.store { storeSize = store.size }
  }
}
