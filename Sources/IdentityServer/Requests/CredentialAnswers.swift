import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions
import Systemd

/// The answers to service managers, which request credentials of units (identityd-protocol(7), section "CREDENTIALS OF
/// SERVICES").
final class CredentialAnswers {
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let dispatcher: RequestDispatcher
  private let encoder: AnswerEncoder
  private let lifetimes: CurrentLifetimes
  private let mainProcess: (Peer, _ userID: UInt32) -> Peer
  private let measurements: Measurements
  private let users: UnitUsers

  /// - Parameter mainProcess: returns the peer that the main process of a peer's service is, as a user.
  init(
    _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ dispatcher: RequestDispatcher,
    _ encoder: AnswerEncoder, _ measurements: Measurements, loop: EventLoop, lifetimes: CurrentLifetimes,
    mainProcess: @escaping (Peer, _ userID: UInt32) -> Peer
  ) {
    self.connections = connections
    self.scheduler = scheduler
    self.dispatcher = dispatcher
    self.encoder = encoder
    self.lifetimes = lifetimes
    self.mainProcess = mainProcess
    self.measurements = measurements
    users = UnitUsers(loop)
  }

  /// Answers a connection that has ended its input without a request, if a service manager requests a credential with it.
  ///
  /// - Returns: whether the connection is such a request. Its answer is in the output, or follows.
  func answer(_ connection: Connection) -> Bool {
    guard let request = CredentialRequest(of: connection.descriptor) else { return false }
    var verb = Self.readVerb
    do throws(Refusal) {
      connection.credential = CredentialRequest.mayBeManager(connection.peer) ? request : nil
      switch try request.content(for: connection.peer) {
      case .secret:
        let group = CredentialRequest.group(of: request.unit, owner: connection.peer.place.owner)
        try dispatcher.answer(.registry(.readCredential(of: group, request.name)), verb, connection)
        if connection.session.hasSecret { measurements.countAnswer(to: verb, nil) }
      case .identifier(let identifier):
        verb = identifier.verb
        try begin(identifier.command, verb, of: request.unit, connection)
      case .proof(let name):
        verb = Self.proveVerb
        try begin(.registry(.prove(lifetimes.value.proofs.request(for: name))), verb, of: request.unit, connection)
      }
    } catch {
      refuse(error, verb, connection)
    }
    return true
  }

  /// Answers the request for a credential that the last run has read and not answered, if the connection is one.
  func answerLeft(by connection: Connection) {
    guard connection.session.hasEnded, !connection.hasInput, !connection.hasOutput else { return }
    guard connection.session.isClosing else {
      _ = answer(connection)
      return
    }
    guard let request = CredentialRequest(of: connection.descriptor) else { return }
    connection.credential = request
    encoder.refuse(.unavailable("the daemon was restarted within its answer"), to: connection)
  }

  /// Closes the connection of a service manager, which has one request, after its answer.
  ///
  /// If the connection waits for a turn when the daemon stops, it would be left to the next run, which would answer again.
  func closeIfAnswered(_ connection: Connection) {
    if connection.credential != nil, connection.session.hasAnswered { connection.session.close() }
  }

  /// Marks a connection for the next run, which then sends a whole answer that makes the start of a unit fail. It may have
  /// got a part of one, so no secret may follow.
  func markFailing(_ connection: Connection) {
    guard connection.session.isFailing, connection.outgoing != nil else { return }
    connection.output = []
    connection.sent = 0
    connection.session.close()
  }

  // MARK: Identifiers and proofs

  /// Begins to answer with an identifier or a proof. A service of a user's manager runs as this user. About any other
  /// service, its service manager is asked first.
  private func begin(_ command: Command, _ verb: Int, of unit: Text, _ connection: Connection) throws(Refusal) {
    guard connection.peer.place.owner == nil else {
      return try answer(command, verb, connection.peer.userID, connection)
    }
    let token = connection.token
    do {
      try users.find("\(unit)") { [unowned self] found in
        // The connection may have closed, or belong to the next run.
        guard let connection = connections[token], connection.session.answer == .awaiting(.lookup) else { return }
        connection.session.finishAnswer()
        do throws(Refusal) {
          switch found {
          case .success(let user): try answer(command, verb, user, connection)
          case .failure(let failure): throw Self.unknownUser(failure.reason)
          }
        } catch {
          refuse(error, verb, connection)
        }
        // The answers of writer and signer are sent when they arrive. A connection that waited for a turn as well would not
        // end after it at a restart of the daemon, and the next run would answer again.
        if connection.session.hasNoRequest { scheduler.enqueue(connection) }
      }
    } catch {
      throw Self.unknownUser(error.description)
    }
    connection.session.wait(for: .lookup)
  }

  /// Answers with an identifier or a proof of the app that the main process of the service is.
  private func answer(_ command: Command, _ verb: Int, _ user: UInt32, _ connection: Connection) throws(Refusal) {
    connection.subject = mainProcess(connection.peer, user)
    try dispatcher.answer(command, verb, connection)
    // A request at the writer or the signer is counted when its answer arrives.
    if connection.session.hasNoRequest { measurements.countAnswer(to: verb, nil) }
  }

  private static func unknownUser(_ reason: String) -> Refusal {
    .unavailable("the user of the unit is not known, so its app is not known either: \(reason)")
  }

  private func refuse(_ refusal: Refusal, _ verb: Int, _ connection: Connection) {
    encoder.refuse(refusal, to: connection)
    measurements.countAnswer(to: verb, refusal.code)
  }

  /// The index of the verb that reads an item, which a request for a secret counts as.
  private static let readVerb = CredentialRequest.verb("item read")
  private static let proveVerb = CredentialRequest.verb("prove")
}

extension CredentialRequest {
  /// Reads the request of a service manager from the name of its socket.
  ///
  /// - Returns: nil if the peer has no such name.
  init?(of socket: borrowing Descriptor) {
    guard let name = try? socket.abstractNameOfPeer() else { return nil }
    self.init(peerName: name)
  }

  /// Returns the index of a verb.
  fileprivate static func verb(_ words: String) -> Int {
    VerbTable.verbs.firstIndex { $0.words == words } ?? Measurements.noVerb
  }
}

extension CredentialRequest.Identifier {
  /// The request that has the same answer.
  fileprivate var command: Command {
    switch self {
    case .device: .registry(.get(.device, app: nil))
    case .installation: .registry(.get(.installation, app: nil))
    case .vendor: .registry(.get(.vendor, app: nil))
    case .boot: .local(.derived(.boot(app: nil)))
    case .session: .local(.derived(.session))
    }
  }

  /// The index of the verb of ``command``.
  fileprivate var verb: Int { CredentialRequest.verb("get \(rawValue)") }
}

extension Session {
  /// Whether neither the writer nor the signer has a request of the client.
  fileprivate var hasNoRequest: Bool { !isAtWriter && !awaitsSignature }
}
