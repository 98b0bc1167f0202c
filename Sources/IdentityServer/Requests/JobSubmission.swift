import Attestation
import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem
import Sessions

/// The requests of connections to the writer.
final class JobSubmission {
  private let connections: ConnectionTable
  private let writer: WriterChannel
  private let publisher: Publisher

  init(_ connections: ConnectionTable, _ writer: WriterChannel, _ publisher: Publisher) {
    self.connections = connections
    self.writer = writer
    self.publisher = publisher
  }

  /// Sends a request to the writer.
  ///
  /// - Throws: `limit` if too many backups are in progress.
  func submit(_ work: Job.Work, _ verb: Int, of connection: Connection) throws(Refusal) {
    if case .long(.backup) = work {
      // Each backup is held in memory as a whole.
      guard connections.all.count(where: \.hasBackup) < Bound.backups else {
        throw .limit("\(Bound.backups) backups are under way, which is the limit; try again later")
      }
    }
    connection.session.sendJob(last: work.exclusiveAnswer)
    connections.beginJob(of: connection)
    writer.submit(
      Job(
        connection: connection.token, work: work, verb: verb, started: Clock.monotonicMicroseconds,
        peer: connection.subject, principal: connection.held.principal, isShared: connections.isShared))
  }

  /// Has the writer record the time of a backup, once the client has read all of it. The connection then goes on.
  ///
  /// The connection also goes on, without a record, if the client has closed it before, or if nobody waits any more:
  /// requests that it sent completely are still carried out.
  ///
  /// - Parameter waits: whether a later call may find that the client has read more.
  /// - Throws: the error of the socket.
  func recordBackup(of connection: Connection, waits: Bool) throws(SystemError) {
    guard !connection.hasUnsentOutput else { return }
    do {
      if try connection.descriptor.isAllReadByPeer() {
        if let made = connection.endReading() { writer.send(.backupTaken(made)) }
      } else if !waits {
        _ = connection.endReading()
      }
    } catch  where error.code == ECONNRESET {
      _ = connection.endReading()
      publisher.endSubscription(of: connection)
    }
  }
}

extension Job.Work {
  /// The exclusive answer that this work leads to; nil if its answer is not exclusive.
  fileprivate var exclusiveAnswer: Session.ExclusiveAnswer? {
    switch self {
    case .registry(let command):
      switch command.rule.answerKind {
      case .secret: .secret
      // The signature follows.
      case .proof: .steps
      case .steps, .search: .steps
      case .plain, .list, .standing, .lease: nil
      }
    case .store: nil
    case .long(.backup): .backup
    case .long(.restore): .steps
    }
  }
}

extension Connection {
  /// Whether the daemon holds a backup for the client, or makes one.
  fileprivate var hasBackup: Bool {
    switch session.answer {
    case .pieces(.backup), .writer(_, last: .backup): true
    default: false
    }
  }
}
