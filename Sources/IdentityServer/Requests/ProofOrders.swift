import Attestation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import Sessions
import Systemd

/// The orders at the signer of proofs, and the connections that wait for them.
final class ProofOrders {
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

  private let state: CommittedState
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let encoder: AnswerEncoder
  private let measurements: Measurements
  private let jobs: JobSubmission
  private let readiness: ReadinessSet
  private let loop: EventLoop
  private var signer: ProofSigner?
  /// The waiting connections by the number of the order.
  private var waiting: [UInt64: Wait] = [:]
  /// The number of the last order.
  private var last: UInt64 = 0
  /// The orders that the signer has not carried out, although nobody waits for them any more.
  private var abandoned = 0
  /// Ends waits that take too long; nil while no connection waits.
  private var timer: EventSource?

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ encoder: AnswerEncoder,
    _ measurements: Measurements, _ jobs: JobSubmission, readiness: ReadinessSet, loop: EventLoop
  ) {
    self.state = state
    self.connections = connections
    self.scheduler = scheduler
    self.encoder = encoder
    self.measurements = measurements
    self.jobs = jobs
    self.readiness = readiness
    self.loop = loop
  }

  /// Whether fewer proofs are in work than may be.
  var hasRoom: Bool { waiting.count < Bound.proofsInWork }

  /// Refuses a request of a payer who has as many proofs in work as places are left. So nobody takes all places, however
  /// slow the key is (dynamic thresholds, Choudhury and Hahne 1998).
  func requirePlace(for payer: ProofRates.Payer, _ connection: Connection) throws(Refusal) {
    let own = waiting.values.count { $0.payer == payer }
    guard own >= Bound.proofsInWork - waiting.count else { return }
    throw .unavailable(
      "\(waiting.count) proofs are being signed, \(own) of them for \(connection.held.principal), which is its share; "
        + "try again")
  }

  /// Passes work to the signer, and has the connection wait for it.
  ///
  /// - Parameters:
  ///   - command: the request that a new key is for; nil if a proof is signed.
  ///   - isCounted: whether the answer is counted already.
  ///   - expires: the time at which the proof expires.
  /// - Throws: `unavailable` without the data key, or without room.
  func add(
    _ work: ProofSigner.Work, _ verb: Int, _ connection: Connection, for command: RegistryCommand? = nil,
    isCounted: Bool = false, expires: Timestamp? = nil
  ) throws(Refusal) {
    guard let cipher = state.proofKeyCipher else {
      throw .unavailable(state.registry.itemFault ?? "the data key that encrypts the proof key is not available")
    }
    // A service manager's request has had its turn already.
    guard hasRoom || connection.credential != nil else {
      throw .unavailable("\(Bound.proofsInWork) proofs are being signed, which is the limit; try again")
    }
    // A key that hangs would otherwise gather orders.
    guard abandoned < Bound.proofsInWork else {
      throw .unavailable("\(Self.silence), and \(abandoned) requests before this one were given up; try again later")
    }
    let signer = try startedSigner()
    last += 1
    waiting[last] = Wait(
      connection: connection.token, payer: connection.proofPayer, command: command, verb: verb, isCounted: isCounted,
      expires: expires, end: Clock.monotonicMicroseconds + Bound.proofMicroseconds)
    setTimer()
    connection.session.wait(for: .signature)
    signer.send(.init(number: last, work: work, cipher: cipher))
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
          if let command = wait.command?.with(pair) { try jobs.submit(.registry(command), wait.verb, of: connection) }
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
