import Attestation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Systemd

/// The answers to `prove` and `proof rotate`, which wait for a key or for a signature.
final class ProofAnswers {
  /// A connection that waits for the signer.
  private struct Wait {
    let connection: ConnectionToken
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
  private var rates = ProofRates()
  /// Ends waits that take too long; nil while no connection waits.
  private var timer: EventSource?
  /// Sends a request to the writer.
  var submit: (RegistryCommand, _ verb: Int, Connection) throws(Refusal) -> Void = { (_, _, _) throws(Refusal) in }

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
    if command.isForProof {
      try rates.charge(connection.held.principal, at: Clock.monotonicMicroseconds)
    }
    if let statement = reply?.proof { return try sign(statement, verb, connection, lifetimes) }
    guard state.registry.needsProofKey(command, at: surroundings.now()) else {
      return try submit(command, verb, connection)
    }
    try order(.make, verb, connection, for: command)
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
    guard waiting.count < Bound.proofsInWork else {
      throw .unavailable("\(Bound.proofsInWork) proofs are being signed, which is the limit; try again")
    }
    let signer = try startedSigner()
    orders += 1
    waiting[orders] = Wait(
      connection: connection.token, command: command, verb: verb, isCounted: isCounted, expires: expires,
      end: Clock.monotonicMicroseconds + Bound.proofMicroseconds)
    setTimer()
    connection.session.beginProof()
    signer.send(.init(number: orders, work: work, cipher: cipher))
  }

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

  // MARK: Answers

  /// Takes in what the signer has done.
  func takeAnswers() {
    for answer in signer?.takeAnswers() ?? [] {
      // An order whose connection waited too long is no longer there.
      guard let wait = waiting.removeValue(forKey: answer.number) else { continue }
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
  }

  /// Ends a wait with an answer, unless the connection has closed.
  private func finish(_ wait: Wait, _ body: (Connection) throws(Refusal) -> Void) {
    guard let connection = connections[wait.connection], connection.session.isProof else { return }
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
      let reason = "the proof key has not answered for \(Bound.proofMicroseconds / 1_000_000) s"
      state.proofFault = reason
      finish(wait) { (_) throws(Refusal) in throw .unavailable("\(reason); try again") }
    }
    if !waiting.isEmpty { setTimer() }
  }
}
