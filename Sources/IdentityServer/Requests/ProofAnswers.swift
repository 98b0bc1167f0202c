import Attestation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions
import Systemd

/// The answers to `prove` and `proof rotate`, which wait for a key or for a signature.
final class ProofAnswers {
  /// A connection that waits for the signer.
  private struct Wait {
    let connection: ConnectionToken
    let payer: ProofRates.Payer
    /// The request that a new key is for; nil if a proof is signed.
    let command: RegistryCommand?
    /// The index of the verb in ``VerbTable/verbs``.
    let verb: Int
    /// Whether the writer has answered before, so that the answer is counted.
    let isCounted: Bool
    /// The time at which a proof expires.
    let expires: Timestamp?
    /// The time at which the connection waits no longer, in microseconds of the monotonic clock.
    let end: UInt64
  }

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
  private let readiness: ReadinessSet
  private let loop: EventLoop
  private var signer: ProofSigner?
  /// The waiting connections by the number of the order.
  private var waiting: [UInt64: Wait] = [:]
  private var orders: UInt64 = 0
  /// The orders that the signer has not carried out, although nobody waits for them any more.
  private var abandoned = 0
  private var rates = ProofRates()
  /// The requests that wait for their turn, oldest first; at most one for each connection.
  private var delays: [Delay] = []
  /// Begins delayed requests again; nil while there are none.
  private var pause: EventSource?
  /// Ends waits that take too long; nil while no connection waits.
  private var timer: EventSource?
  /// Sends a request to the writer.
  var submit: (RegistryCommand, _ verb: Int, Connection) throws(Refusal) -> Void = { (_, _, _) throws(Refusal) in }
  /// Begins a delayed request again.
  var beginAgain: (RegistryCommand, _ verb: Int, Connection) throws(Refusal) -> Void = { (_, _, _) throws(Refusal) in }

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ encoder: AnswerEncoder,
    _ measurements: Measurements, _ readiness: ReadinessSet, _ loop: EventLoop
  ) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
    self.encoder = encoder
    self.measurements = measurements
    self.readiness = readiness
    self.loop = loop
  }

  /// Begins to answer a request. The answer is sent when it is complete.
  func begin(_ command: RegistryCommand, _ verb: Int, _ connection: Connection, _ lifetimes: Lifetimes) throws(Refusal)
  {
    guard state.isStarted else { return try submit(command, verb, connection) }
    let surroundings = lifetimes.surroundings
    // Before a key is made: the rule refuses a peer that may have no proof.
    let reply = try state.registry.answer(command, for: connection.subject, in: surroundings)
    if command.isForProof, try !takeTurn(command, verb, connection) { return }
    if let statement = reply?.proof { return try sign(statement, verb, connection, lifetimes) }
    guard state.registry.needsProofKey(command, at: surroundings.now()) else {
      return try submit(command, verb, connection)
    }
    try order(.make(in: lifetimes.proofs.place), verb, connection, for: command)
  }

  /// Has a proof signed. Its answer is sent when it is complete.
  ///
  /// - Parameter isCounted: whether the answer is counted already, because it comes from the writer.
  func sign(
    _ statement: ProofStatement, _ verb: Int, _ connection: Connection, _ lifetimes: Lifetimes, isCounted: Bool = false
  ) throws(Refusal) {
    let peer = statement.asker == nil ? connection.subject : nil
    let claims = ProofClaims(
      statement: statement, peer: peer, settings: lifetimes.proofs,
      boot: peer == nil ? nil : try lifetimes.boot(of: statement.app), keySource: state.usableKeySource,
      identifier: try encoder.nextUUID(.random), issued: lifetimes.surroundings.now())
    try order(
      .sign(claims.json, with: statement.key.pair), verb, connection, isCounted: isCounted, expires: claims.expires)
  }

  private func order(
    _ work: ProofSigner.Work, _ verb: Int, _ connection: Connection, for command: RegistryCommand? = nil,
    isCounted: Bool = false, expires: Timestamp? = nil
  ) throws(Refusal) {
    guard let cipher = state.proofKeyCipher else {
      throw .unavailable(state.registry.itemFault ?? "the data key that encrypts the proof key is not available")
    }
    // A service manager's request has had its turn already.
    guard waiting.count < Bound.proofsInWork || connection.credential != nil else {
      throw .unavailable("\(Bound.proofsInWork) proofs are being signed, which is the limit; try again")
    }
    // A key that hangs would otherwise gather orders.
    guard abandoned < Bound.proofsInWork else {
      throw .unavailable("\(Self.silence), and \(abandoned) requests before this one were given up; try again later")
    }
    let signer = try startedSigner()
    orders += 1
    waiting[orders] = Wait(
      connection: connection.token, payer: connection.proofPayer, command: command, verb: verb, isCounted: isCounted,
      expires: expires, end: Clock.monotonicMicroseconds + Bound.proofMicroseconds)
    setTimer()
    connection.session.wait(for: .signature)
    signer.send(.init(number: orders, work: work, cipher: cipher))
  }

  private static let silence = "the proof key has not answered for \(Bound.proofMicroseconds / 1_000_000) s"

  private func startedSigner() throws(Refusal) -> ProofSigner {
    if let signer { return signer }
    do {
      let new = try ProofSigner()
      // Edge-triggered, like the reports of the writer.
      try readiness.add(new.descriptor, [.read, .once], token: LoopToken.proofs)
      signer = new
      return new
    } catch {
      throw .unavailable("the thread that signs proofs does not start: \(error)")
    }
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
    if connection.credential == nil { try requirePlace(for: payer, connection) }
    let wait = rates.wait(of: payer, at: now)
    if wait == 0, connection.credential == nil || waiting.count < Bound.proofsInWork {
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

  /// Refuses a request of a payer who has as many proofs in work as places are left. So nobody takes all places, however
  /// slow the key is (dynamic thresholds, Choudhury and Hahne 1998).
  private func requirePlace(for payer: ProofRates.Payer, _ connection: Connection) throws(Refusal) {
    let own = waiting.values.count { $0.payer == payer }
    guard own >= Bound.proofsInWork - waiting.count else { return }
    throw .unavailable(
      "\(waiting.count) proofs are being signed, \(own) of them for \(connection.held.principal), which is its share; "
        + "try again")
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
      let hasTurn = waiting.count < Bound.proofsInWork && rates.wait(of: connection.proofPayer, at: now) == 0
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

  // MARK: Answers

  /// Takes in what the signer has done.
  func takeAnswers() {
    for answer in signer?.takeAnswers() ?? [] {
      // An order whose connection waited too long is no longer there.
      guard let wait = waiting.removeValue(forKey: answer.number) else {
        abandoned -= 1
        continue
      }
      if case .failure(let refusal) = answer.product { state.proofFault = refusal.text } else { state.proofFault = nil }
      finish(wait) { connection throws(Refusal) in
        switch try answer.product.get() {
        case .key(let pair):
          if let command = wait.command?.with(pair) { try submit(command, wait.verb, connection) }
        case .proof(let proof):
          var reply = Reply.done(.text(proof))
          reply.attribute("expires", wait.expires.map(Reply.Value.time))
          _ = try encoder.append(reply, wait.verb, to: connection)
        }
      }
    }
    if waiting.isEmpty { timer = nil }
    if !delays.isEmpty { goOn() }
  }

  /// Ends a wait with an answer, unless the connection has closed.
  private func finish(_ wait: Wait, _ body: (Connection) throws(Refusal) -> Void) {
    guard let connection = connections[wait.connection], connection.session.awaitsSignature else {
      return
    }
    connection.session.finishAnswer()
    do throws(Refusal) {
      try body(connection)
      // A request at the writer is counted when its answer arrives.
      guard !connection.session.isAtWriter else { return }
      if !wait.isCounted { measurements.countAnswer(to: wait.verb, nil) }
    } catch {
      encoder.refuse(error, to: connection)
      if !wait.isCounted { measurements.countAnswer(to: wait.verb, error.code) }
    }
    scheduler.enqueue(connection)
  }

  private func setTimer() {
    guard timer == nil else { return }
    // Without a timer, the connections wait for the signer.
    timer = try? loop.timer(after: Bound.proofMicroseconds) { [unowned self] in endLongWaits() }
  }

  private func endLongWaits() {
    timer = nil
    let now = Clock.monotonicMicroseconds
    for (number, wait) in waiting where wait.end <= now {
      waiting[number] = nil
      abandoned += 1
      state.proofFault = Self.silence
      finish(wait) { (_) throws(Refusal) in throw .unavailable("\(Self.silence); try again") }
    }
    if !waiting.isEmpty { setTimer() }
  }
}

extension Connection {
  /// The party that proofs of the connection are charged to.
  fileprivate var proofPayer: ProofRates.Payer {
    // A user can start any number of services, so the user is charged for them.
    if let credential, peer.place.owner == nil { .unit(credential.unit) } else { .principal(held.principal) }
  }
}
