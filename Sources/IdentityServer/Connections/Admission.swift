import Attestation
import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

/// The acceptance of connections: attests each peer, and refuses a connection without rights or room.
final class Admission {
  private let listener: Descriptor
  private let readiness: ReadinessSet
  private let connections: ConnectionTable
  private let processes: PeerProcesses
  private let uses: AppUses
  private let writer: WriterChannel
  private let measurements: Measurements
  private let loop: EventLoop
  private let log: LogSink
  private var limits: Limits
  private let rules: AttestationRules
  /// Users whose ranges of subordinate users the writer was asked to look up.
  private var rangeOwners: Set<UInt32> = []
  /// Whether connections are accepted. The daemon accepts none before its start has finished, or once it stops.
  private var isOpen = false
  private var acceptAgain: EventSource?

  init(
    _ readiness: ReadinessSet, _ connections: ConnectionTable, _ processes: PeerProcesses, _ uses: AppUses,
    _ writer: WriterChannel, _ measurements: Measurements, listener: consuming Descriptor, loop: EventLoop,
    log: LogSink, settings: ServerSettings
  ) throws(SystemError) {
    self.listener = listener
    self.readiness = readiness
    self.connections = connections
    self.processes = processes
    self.uses = uses
    self.writer = writer
    self.measurements = measurements
    self.loop = loop
    self.log = log
    limits = settings.limits
    rules = try AttestationRules(settings.attestation)
  }

  // MARK: Rules

  /// Applies new settings to later connections.
  func use(_ settings: ServerSettings) {
    limits = settings.limits
    rules.settings = settings.attestation
  }

  /// Applies the claims of new manifests to later connections.
  func use(_ claims: AppClaims) { rules.claims = claims }

  /// Applies new ranges of subordinate users to later connections.
  func use(_ subordinates: SubordinateUsers) { rules.subordinates = subordinates }

  /// Returns the peer that the main process of a peer's service is.
  func mainProcess(of peer: Peer, userID: UInt32) -> Peer { rules.mainProcess(of: peer, userID: userID) }

  // MARK: Accepting

  /// Begins to accept connections.
  func open() throws(SystemError) {
    try readiness.add(listener.number, .read, token: LoopToken.listener)
    isOpen = true
  }

  /// Accepts no more connections.
  func close() {
    isOpen = false
    watchListener(false)
  }

  /// Accepts one pending connection. The kernel reports further pending connections again.
  ///
  /// A call that finds no pending connection costs as much as a call that accepts one. The time is charged to the
  /// principal that connects.
  ///
  /// - Parameter admit: takes the connection unless it is refused.
  /// - Returns: whether there was a pending connection.
  @discardableResult
  func acceptOne(_ admit: (Connection) -> Void) -> Bool {
    guard isOpen else { return false }
    // Without another connection, no other principal can be delayed.
    let started = connections.count > 0 ? Clock.monotonicMicroseconds : nil
    do {
      guard let socket = try UnixSocket.accept(on: listener) else { return false }
      let principal = letIn(socket, admit)
      if let started, let principal { connections.charge(Clock.monotonicMicroseconds - started, to: principal) }
      return true
    } catch {
      pause(error)
      return false
    }
  }

  /// Adds a connection to the table, or refuses it with an answer.
  ///
  /// - Returns: the principal to charge; nil if unknown.
  private func letIn(_ socket: consuming Descriptor, _ admit: (Connection) -> Void) -> Principal? {
    let attested: PeerAttestation
    do {
      attested = try attest(socket)
    } catch {
      refuse(error, socket)
      return error.principal
    }
    let held = attested.peer.held
    let connection = connections.insert(socket, peer: held, limits, process: attested.intoProcess())
    measurements.accepted += 1
    let principal = connection.held.principal
    admit(connection)
    return principal
  }

  private func attest(_ socket: borrowing Descriptor) throws(ConnectionRefusal) -> PeerAttestation {
    let attested: PeerAttestation
    do {
      attested = try PeerAttestation(of: socket, by: rules)
    } catch {
      throw ConnectionRefusal(failedAttestation: error, of: principal(of: socket))
    }
    if let refusal = connections.refusal(of: attested.peer.held, limits),
      !isAdmittedAllTheSame(socket, attested.peer.held.peer)
    {
      throw refusal
    }
    if attested.peer !== rules.latest {
      attested.peer.held = processes.held(attested.peer.held)
      uses.note(attested.peer.held.peer)
      askForRanges(of: attested.peer)
      rules.latest = attested.peer
    }
    return attested
  }

  /// Returns whether a connection beyond the bounds is the service manager's request for a credential. The text of a
  /// refusal would be the credential, and the unit would start with it.
  private func isAdmittedAllTheSame(_ socket: borrowing Descriptor, _ peer: Peer) -> Bool {
    guard peer.userID == 0, !peer.place.isContained,
      connections.count < limits.connections.total + Bound.credentialConnections
    else { return false }
    return CredentialRequest(of: socket) != nil
  }

  /// Returns the principal of a peer that could not be attested, by its user alone; nil if the user is unknown.
  private func principal(of socket: borrowing Descriptor) -> Principal? {
    guard let user = try? PeerCredentials(of: socket).userID, user != rules.unnamedUser else { return nil }
    return .user(rules.subordinates.owner(of: user))
  }

  /// Asks the writer for the subordinate users of the user whose slice the peer is in, once per user.
  ///
  /// The answer applies to later connections. The owner of the slice is looked up, not the peer's own user: that may be
  /// any of 65,536 subordinate users, and each would cause a query to the name service.
  private func askForRanges(of peer: AttestedPeer) {
    guard rules.subordinates.isByOwner, let user = peer.sliceUser, rules.isRegular(user),
      rangeOwners.count < Bound.rangeOwners, rangeOwners.insert(user).inserted
    else { return }
    writer.send(.rangeOwner(user))
  }

  /// Adds a connection of the last run to the table. The peer was attested then.
  func readmit(_ socket: consuming Descriptor, _ peer: Peer) -> Connection {
    connections.insert(socket, peer: processes.held(rules.held(peer)), limits, process: nil)
  }

  // MARK: Refusing

  /// Sends the refusal before the connection closes. A new socket has room for one line.
  private func refuse(_ connection: ConnectionRefusal, _ socket: consuming Descriptor) {
    measurements.countRefusal(connection.reason)
    // Attributed to the principal of an admin too: a refused admin that tries again is no news.
    log(
      .connectionRefused(
        reason: connection.refusal.text, by: connection.principal.map { .principal($0) } ?? .stranger))
    var line: [UInt8] = []
    connection.refusal.append(to: &line)
    _ = try? socket.send(line)
  }

  /// Pauses accepting when descriptors or memory run out. Existing connections go on.
  ///
  /// Accepting resumes after a moment. An immediate attempt would fail again and spin.
  private func pause(_ error: SystemError) {
    log(.acceptPaused("\(error)"))
    watchListener(false)
    let pause = UInt64(Bound.acceptPauseMilliseconds) * 1_000
    if let acceptAgain { return acceptAgain.arm(after: pause) }
    do {
      acceptAgain = try loop.timer(after: pause) { [unowned self] in if isOpen { watchListener(true) } }
    } catch {
      watchListener(true)
    }
  }

  /// Starts or stops watching for pending connections.
  private func watchListener(_ watches: Bool) {
    do {
      try readiness.modify(listener.number, watches ? .read : [], token: LoopToken.listener)
    } catch {
      log(.acceptPaused("\(error)"))
    }
  }
}
