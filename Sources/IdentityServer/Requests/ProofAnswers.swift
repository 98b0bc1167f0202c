import Attestation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions
import Systemd

/// The answers to `prove` and `proof rotate`, which wait for their turn, for a key or for a signature.
final class ProofAnswers {
  /// A service manager's request that waits for its turn.
  private struct Delay {
    let connection: ConnectionToken
    let command: RegistryCommand
    /// The index of the verb in ``VerbTable/verbs``.
    let verb: Int
    /// The time at which the request waits no longer, in microseconds of the monotonic clock.
    let end: UInt64
  }

  private let state: CommittedState
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let encoder: AnswerEncoder
  private let measurements: Measurements
  private let jobs: JobSubmission
  private let lifetimes: CurrentLifetimes
  private let loop: EventLoop
  private let orders: ProofOrders
  private var rates = ProofRates()
  /// The requests that wait for their turn, oldest first; at most one for each connection.
  private var delays: [Delay] = []
  /// Begins delayed requests again; nil while there are none.
  private var pause: EventSource?
  /// Begins a delayed request again.
  var beginAgain: (RegistryCommand, _ verb: Int, Connection) throws(Refusal) -> Void = { (_, _, _) throws(Refusal) in }

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ encoder: AnswerEncoder,
    _ measurements: Measurements, _ jobs: JobSubmission, lifetimes: CurrentLifetimes, loop: EventLoop,
    orders: ProofOrders
  ) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
    self.encoder = encoder
    self.measurements = measurements
    self.jobs = jobs
    self.lifetimes = lifetimes
    self.loop = loop
    self.orders = orders
  }

  /// Begins to answer a request. The answer is sent when it is complete.
  func begin(_ command: RegistryCommand, _ verb: Int, _ connection: Connection) throws(Refusal) {
    guard state.isStarted else { return try jobs.submit(.registry(command), verb, of: connection) }
    let surroundings = lifetimes.surroundings
    // Before a key is made: the rule refuses a peer that may have no proof.
    let reply = try state.registry.answer(command, for: connection.subject, in: surroundings)
    if command.isForProof, try !takeTurn(command, verb, connection) { return }
    if let statement = reply?.proof { return try sign(statement, verb, connection) }
    guard state.registry.needsProofKey(command, at: surroundings.now()) else {
      return try jobs.submit(.registry(command), verb, of: connection)
    }
    try orders.add(.make(in: lifetimes.value.proofs.place), verb, connection, for: command)
  }

  /// Has a proof signed. Its answer is sent when it is complete.
  ///
  /// - Parameter isCounted: whether the answer is counted already, because it comes from the writer.
  func sign(
    _ statement: ProofStatement, _ verb: Int, _ connection: Connection, isCounted: Bool = false
  ) throws(Refusal) {
    let peer = statement.asker == nil ? connection.subject : nil
    let claims = ProofClaims(
      statement: statement, peer: peer, settings: lifetimes.value.proofs,
      boot: peer == nil ? nil : try lifetimes.value.boot(of: statement.app), keySource: state.usableKeySource,
      identifier: try encoder.nextUUID(.random), issued: lifetimes.surroundings.now())
    try orders.add(
      .sign(claims.json, with: statement.key.pair), verb, connection, isCounted: isCounted, expires: claims.expires)
  }

  /// Takes in what the signer has done.
  func takeAnswers() {
    orders.takeAnswers()
    if !delays.isEmpty { goOn() }
  }

  // MARK: Turns

  /// Charges a request for a proof, or delays it.
  ///
  /// - Returns: whether the request may go on. A service manager cannot repeat its request, so the request waits.
  /// - Throws: `unavailable`, with the time to wait.
  private func takeTurn(_ command: RegistryCommand, _ verb: Int, _ connection: Connection) throws(Refusal) -> Bool {
    let now = Clock.monotonicMicroseconds
    let payer = connection.proofPayer
    // Before the charge, since a request that is refused costs nothing.
    if connection.credential == nil { try orders.requirePlace(for: payer, connection) }
    let wait = rates.wait(of: payer, at: now)
    if wait == 0, connection.credential == nil || orders.hasRoom {
      rates.charge(payer, at: now)
      return true
    }
    guard connection.credential != nil else {
      throw .unavailable(
        "\(connection.held.principal) has had \(Bound.proofsPerSecond) proofs a second; try again in "
          + "\((wait + 999) / 1_000) ms, or keep a proof until it expires")
    }
    delays.append(
      Delay(connection: connection.token, command: command, verb: verb, end: now + Bound.proofTurnMicroseconds))
    connection.session.wait(for: .signature)
    setPause()
    return false
  }

  private func setPause() {
    guard pause == nil else { return }
    // Without a timer, the requests wait for the next answer of the signer.
    pause = try? loop.timer(after: Bound.proofPauseMicroseconds) { [unowned self] in
      pause = nil
      goOn()
    }
  }

  /// Begins delayed requests again, as far as it is their turn.
  private func goOn() {
    let now = Clock.monotonicMicroseconds
    let due = delays
    delays = []
    for delay in due {
      guard let connection = connections[delay.connection], connection.session.awaitsSignature else {
        continue
      }
      let hasTurn = orders.hasRoom && rates.wait(of: connection.proofPayer, at: now) == 0
      guard hasTurn || delay.end <= now else {
        delays.append(delay)
        continue
      }
      connection.session.finishAnswer()
      do throws(Refusal) {
        guard hasTurn else {
          throw .unavailable("no proof could be made within \(Bound.proofTurnMicroseconds / 1_000_000) s")
        }
        try beginAgain(delay.command, delay.verb, connection)
      } catch {
        encoder.refuse(error, to: connection)
        measurements.countAnswer(to: delay.verb, error.code)
        scheduler.enqueue(connection)
      }
    }
    if !delays.isEmpty { setPause() }
  }
}

extension Connection {
  /// The party that proofs of the connection are charged to.
  var proofPayer: ProofRates.Payer {
    // A user can start any number of services, so the user is charged for them.
    if let credential, peer.place.owner == nil { .unit(credential.unit) } else { .principal(held.principal) }
  }
}
