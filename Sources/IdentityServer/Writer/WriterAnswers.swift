import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions

/// The answers of the writer, which are sent once the changes before them are applied.
final class WriterAnswers {
  private let writer: WriterChannel
  private let commits: Commits
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let service: ConnectionService
  private let encoder: AnswerEncoder
  private let proofs: ProofAnswers
  private let lease: FleetLease
  private let measurements: Measurements
  private let shutdown: Shutdown
  /// The reports that are to be taken in, the oldest last.
  private var reports: [WriterReport] = []
  /// Whether the writer may have sent further ones.
  private var hasNews = false
  /// Whether there are reports to take in.
  private(set) var isDue = false

  init(
    _ writer: WriterChannel, _ commits: Commits, _ connections: ConnectionTable, _ scheduler: TurnScheduler,
    _ service: ConnectionService, _ encoder: AnswerEncoder, proofs: ProofAnswers, lease: FleetLease,
    measurements: Measurements, shutdown: Shutdown
  ) {
    self.writer = writer
    self.commits = commits
    self.connections = connections
    self.scheduler = scheduler
    self.service = service
    self.encoder = encoder
    self.proofs = proofs
    self.lease = lease
    self.measurements = measurements
    self.shutdown = shutdown
  }

  /// Notes that the writer has sent reports.
  func noteNews() {
    hasNews = true
    isDue = true
  }

  /// Takes in the writer's reports: of each, first the changes of the state, then the answers.
  ///
  /// Takes in a large commit in pieces, for as long as a turn lasts. Further pieces follow in the next runs of the loop.
  func take() {
    if reports.isEmpty {
      hasNews = false
      reports = writer.takeReports()
      if reports.count > 1 { reports.reverse() }
    }
    defer { isDue = hasNews || !reports.isEmpty }
    var touched: [Connection] = []
    let now = Clock.monotonicMicroseconds
    while let report = reports.popLast() {
      guard !report.results.hasPieces(of: connections.turn.changes) else {
        reports += report.pieces(of: connections.turn.changes).reversed()
        continue
      }
      commits.apply(report)
      for outcome in report.results.outcomes {
        connections.finishJob(of: outcome.principal)
        measurements.record(outcome, at: now)
        // The client may have gone. Its changes are made all the same.
        guard let connection = connections[outcome.connection] else { continue }
        connection.session.finishJob()
        switch outcome.result {
        case .success(let answer):
          lease.settle(connection, isOpen: true)
          answerOrSign(answer, outcome.verb, connection)
        case .failure(let refusal):
          lease.settle(connection, isOpen: false)
          encoder.refuse(refusal, to: connection)
        }
        if touched.last !== connection { touched.append(connection) }
      }
      if report.hasStopped { return shutdown.finish() }
      if !reports.isEmpty, Clock.monotonicMicroseconds - now >= connections.turn.microseconds { break }
    }
    // A connection may be in the list more than once, which is harmless.
    for connection in touched where connections[connection.token] === connection {
      // If several principals are connected, sending the answers is part of the principal's turn.
      if connections.isShared { scheduler.enqueue(connection) } else { service.advance(connection) }
    }
  }

  /// Appends the writer's answer, or has the proof signed that is the answer.
  private func answerOrSign(_ answer: WriterReport.Answer, _ verb: Int, _ connection: Connection) {
    guard let statement = answer.reply.proof else { return encoder.append(answer, to: connection) }
    do throws(Refusal) {
      try proofs.sign(statement, verb, connection, isCounted: true)
    } catch {
      encoder.refuse(error, to: connection)
    }
  }
}
