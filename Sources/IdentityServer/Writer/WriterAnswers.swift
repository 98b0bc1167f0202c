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

  /// Takes in the writer's reports: first the changes of the state, then the answers.
  func take() {
    var touched: [Connection] = []
    let reports = writer.takeReports()
    let now = Clock.monotonicMicroseconds
    for report in reports {
      commits.apply(report)
      for outcome in report.outcomes {
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
