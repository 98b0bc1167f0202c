import Glibc
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions

/// The answers to requests that need neither a rule nor the writer.
final class LocalRequests {
  private let state: CommittedState
  private let publisher: Publisher
  private let encoder: AnswerEncoder
  private let status: StatusAnswers
  private let statistics: StatisticsAnswers
  private let lifetimes: CurrentLifetimes
  private let lease: FleetLease
  private let failures: CredentialFailures
  private var upload = UploadSlot()

  init(
    _ state: CommittedState, _ publisher: Publisher, _ encoder: AnswerEncoder, status: StatusAnswers,
    statistics: StatisticsAnswers, lifetimes: CurrentLifetimes, lease: FleetLease, failures: CredentialFailures
  ) {
    self.state = state
    self.publisher = publisher
    self.encoder = encoder
    self.status = status
    self.statistics = statistics
    self.lifetimes = lifetimes
    self.lease = lease
    self.failures = failures
  }

  /// Answers a request, or begins to.
  func answer(_ command: LocalCommand, _ verb: Int, _ connection: Connection) throws(Refusal) {
    switch command {
    case .ping: Reply.done.append(to: &connection.output)
    case .hello: Reply.hello.append(to: &connection.output)
    case .help(let words): try VerbTable.help(words).append(to: &connection.output)
    case .whoami:
      let registry = state.registry
      let app = connection.peer.app
      try registry.requireRecord(of: app)
      Reply.whoami(
        connection.peer, vendor: registry.vendor(of: app), groups: registry.accessGroups(of: app),
        rights: registry.rights(of: app)
      ).append(to: &connection.output)
    case .said(let fleetState, let words):
      try state.registry.require(.fleet, of: connection.peer)
      try lease.say(fleetState, words, by: connection)
      Reply.done.append(to: &connection.output)
    case .check(let text): Reply.check(text).append(to: &connection.output)
    case .status: status.answer(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: false): statistics.answer(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: true): statistics.answerOfApps(for: connection).append(to: &connection.output)
    case .derived(let identifier):
      let reply = try lifetimes.value.answer(identifier, for: connection.subject, state.registry)
      _ = try encoder.append(reply, verb, to: connection)
    case .subscribe(let topics, let since, let snapshot):
      let reply = try publisher.subscribe(connection, to: topics, since: since, snapshot: snapshot)
      _ = try encoder.append(reply, verb, to: connection)
    case .unsubscribe(let topics): publisher.unsubscribe(connection, from: topics)
    case .compare(let left, let right, let order): Reply.compare(left, right, order).append(to: &connection.output)
    case .uuids(nil, let version): Reply.done(.uuid(try encoder.nextUUID(version))).append(to: &connection.output)
    case .uuids(let count?, let version):
      connection.begin(.uuids(left: count, of: count, version))
      encoder.appendPiece(to: connection)
    case .beginRestore(let key):
      try upload.begin(key, by: connection.token)
      Reply.done.append(to: &connection.output)
    case .addToRestore(let text):
      Reply.done(.number(Int64(try upload.add(text, by: connection.token)))).append(to: &connection.output)
    case .quit:
      Reply.done.append(to: &connection.output)
      connection.session.close()
    }
  }

  /// Removes and returns the backup that a connection has uploaded.
  func takeUpload(of connection: Connection) throws(Refusal) -> BackupUpload {
    try upload.take(by: connection.token)
  }

  /// Drops the upload of a connection that has closed, its lease, and its place among the failing answers.
  func forget(_ connection: Connection) {
    if upload.isTaken { upload.drop(of: connection.token) }
    lease.end(of: connection)
    failures.end(for: connection)
  }
}
