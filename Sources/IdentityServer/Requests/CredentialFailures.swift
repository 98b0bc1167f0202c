import Attestation
import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions
import Systemd

/// The answers that make the start of a unit fail, because its credential cannot be given.
///
/// To systemd, a connection that closes without a byte is an empty credential, and the unit would start with an empty
/// password. An answer of ``Bound/failingAnswer`` bytes makes the start fail (systemd.exec(5)).
final class CredentialFailures {
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let loop: EventLoop
  private let log: LogSink
  private var missing: MissingCredential
  /// Closes a connection.
  var close: (Connection) -> Void = { _ in }
  /// Fires once the oldest of the answers that are being sent has taken too long.
  private var timer: EventSource?
  /// The answers of each principal that has some.
  private var answers: [Principal: Answers] = [:]

  /// The answers to the clients of one principal.
  private struct Answers {
    /// Those that are being sent, at most ``Bound/failingAnswersAtOnce``, each with its beginning in microseconds of the
    /// monotonic clock.
    var sending: [ConnectionToken: UInt64] = [:]
    /// Those that wait for the end of another one, oldest first.
    var waiting: [ConnectionToken] = []
  }

  /// The bytes of all pieces, so that a failing answer takes no memory of its own.
  private static let zeros = [UInt8](repeating: 0, count: 65_536)
  /// The time for an answer in microseconds.
  private static let patience = UInt64(Bound.failingAnswerMilliseconds) * 1_000

  init(
    _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ loop: EventLoop, _ log: LogSink,
    _ settings: ServerSettings
  ) {
    self.connections = connections
    self.scheduler = scheduler
    self.loop = loop
    self.log = log
    missing = settings.missingCredential
  }

  /// Applies new settings to later requests.
  func use(_ settings: ServerSettings) { missing = settings.missingCredential }

  /// Logs the reason, and begins the failing answer, or has it wait for its turn.
  func begin(for connection: Connection, _ request: CredentialRequest, _ refusal: Refusal) {
    if case .notFound = refusal, missing == .empty { return }
    log(event(connection, request, refusal))
    let principal = connection.held.principal
    if answers[principal, default: Answers()].sending.count < Bound.failingAnswersAtOnce {
      send(connection)
    } else {
      answers[principal]?.waiting.append(connection.token)
      connection.session.wait(for: .failureTurn)
    }
  }

  /// Returns the entry for the log. The refusal of a peer that is in another unit is no entry about the unit that it
  /// names.
  private func event(_ connection: Connection, _ request: CredentialRequest, _ refusal: Refusal) -> LogEvent {
    let originator = connection.held.originator
    if case .denied = refusal {
      return .connectionRefused(reason: "for a credential of \(request.unit): \(refusal.text)", by: originator)
    }
    let owner = connection.peer.place.owner
    return .credentialRefused(
      request, owner: owner, isOwnDaemon: owner != nil && owner == Accounts.ownUserID, refusal, by: originator)
  }

  private func send(_ connection: Connection) {
    let isAlone = answers.values.allSatisfy(\.sending.isEmpty)
    answers[connection.held.principal, default: Answers()].sending[connection.token] = Clock.monotonicMicroseconds
    connection.begin(.zeros(left: Bound.failingAnswer))
    if isAlone { setTimer(after: Self.patience) }
  }

  // MARK: Clients that do not read

  /// Sets the timer. Without one there is no limit of time, which a client that reads does not need.
  private func setTimer(after microseconds: UInt64) {
    if let timer { return timer.arm(after: microseconds) }
    timer = try? loop.timer(after: microseconds) { [unowned self] in closeOverdue() }
  }

  /// Closes the connections whose answers have taken too long, so that others get their turn.
  private func closeOverdue() {
    let now = Clock.monotonicMicroseconds
    let overdue = answers.values.flatMap { $0.sending.filter { now - $0.value >= Self.patience }.keys }
    for token in overdue { if let connection = connections[token] { close(connection) } }
    guard let oldest = answers.values.flatMap(\.sending.values).min() else { return }
    // An answer that waited may have begun after `now`.
    setTimer(after: Self.patience - (now > oldest ? now - oldest : 0))
  }

  // MARK: The end

  /// Gives the place of a connection that has closed to the next one that waits.
  func end(for connection: Connection) {
    let principal = connection.held.principal
    guard !answers.isEmpty, answers[principal] != nil else { return }
    guard answers[principal]?.sending.removeValue(forKey: connection.token) != nil else {
      answers[principal]?.waiting.removeAll { $0 == connection.token }
      return
    }
    if let token = answers[principal]?.waiting.first, let next = connections[token] {
      answers[principal]?.waiting.removeFirst()
      send(next)
      scheduler.enqueue(next)
    } else if answers[principal]?.sending.isEmpty == true {
      answers[principal] = nil
    }
  }

  /// Adds the next piece of a failing answer to output that is empty.
  ///
  /// - Returns: the rest of the answer; nil at its end.
  static func appendPiece(left: Int, to output: inout [UInt8]) -> LongAnswer? {
    if left >= zeros.count, output.isEmpty { output = zeros } else { output += zeros.prefix(left) }
    return left > zeros.count ? .zeros(left: left - zeros.count) : nil
  }
}
