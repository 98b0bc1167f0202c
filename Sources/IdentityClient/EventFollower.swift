package import IdentityCore
import IdentityWire
import LinuxSystem

/// Follows the daemon's events across its restarts: each event comes once, and every gap is reported.
package struct EventFollower: ~Copyable {
  /// The reason why events are missing for good.
  package enum Missed: Equatable, Sendable, CustomStringConvertible {
    /// The daemon does not keep the events any more; the text is the daemon's.
    case notKept(Text)
    /// The daemon has a new store, whose sequence numbers started again.
    case numberedAnew(after: Int64)

    /// The reason, with hidden characters escaped.
    package var description: String {
      switch self {
      case .notKept(let text): WordEncoder.visible("\(text)")
      case .numberedAnew(let last): "the daemon has a new store, which has not reached event \(last)"
      }
    }
  }

  /// A step in following events.
  package enum Step: Equatable, Sendable {
    case event(ReceivedEvent)
    /// The daemon is gone. The follower tries to reconnect until the daemon is back.
    case lost(DaemonConnection.Failure)
    /// The daemon is back.
    case found
    /// Events may be missing. The follower continues with events from now on.
    case missed(Missed)
    /// The daemon refuses to send the events. The follower cannot continue.
    case refused(code: Text, text: Text)
  }

  private let daemon: DaemonSocket
  private var position: EventPosition
  private var connection: DaemonConnection?
  private var pause = ReconnectPause()
  private var generator = SystemRandomNumberGenerator()
  /// The earliest moment of the next attempt to connect.
  private var nextAttempt: UInt64 = 0
  /// The moment of the subscription on this connection; nil if there is none.
  private var subscribedAt: UInt64?
  /// Whether ``Step/found`` also marks that events follow at the beginning and after a gap.
  private let tellsBeginning: Bool
  /// Whether the next subscription is reported by ``Step/found``.
  private var isLost: Bool
  private var wasReached = false

  /// Creates a follower without connecting.
  ///
  /// - Parameters:
  ///   - topics: The topics to follow; an empty array for all topics.
  ///   - since: The sequence number after which the events begin; nil for events from now on.
  ///   - epoch: The epoch of `since`; nil if unknown.
  ///   - tellsBeginning: Whether ``Step/found`` also marks that events follow at the beginning and after a gap.
  package init(
    of daemon: DaemonSocket, topics: [String], since: Int64?, epoch: Text? = nil, tellsBeginning: Bool = false
  ) {
    self.daemon = daemon
    self.tellsBeginning = tellsBeginning
    isLost = tellsBeginning
    position = EventPosition(topics, since: since, epoch: epoch)
  }

  /// The number after which the next events come; nil while unknown.
  package var last: Int64? { position.last }
  /// The epoch of ``last``; nil while unknown.
  package var epoch: Text? { position.epoch }

  /// Waits for the next step.
  ///
  /// - Throws: `unreachable` if the daemon was never reached, `untrusted`, `malformed`, and the failures that end the
  ///   patience. Once the daemon was reached, its absence is a step and no failure.
  package mutating func next(_ patience: Patience) throws(DaemonConnection.Failure) -> Step {
    while true {
      do throws(DaemonConnection.Failure) {
        try connect(patience)
        if let step = try subscribe(patience) { return step }
        if let event = try nextEvent(patience) { return .event(event) }
      } catch {
        switch error {
        case .untrusted, .malformed, .timeUp, .outputClosed, .interrupted: throw error
        case .unreachable where !wasReached: throw error
        case .unreachable, .busy, .closed: disconnect()
        }
        if !isLost {
          isLost = true
          return .lost(error)
        }
      }
    }
  }

  private mutating func connect(_ patience: Patience) throws(DaemonConnection.Failure) {
    guard connection == nil else { return }
    if nextAttempt > Clock.monotonicMicroseconds { try patience.pause(until: nextAttempt) }
    connection = try DaemonConnection(atOnce: daemon)
    wasReached = true
  }

  /// Subscribes on a new connection.
  ///
  /// - Returns: The step to report; nil if there is none.
  private mutating func subscribe(_ patience: Patience) throws(DaemonConnection.Failure) -> Step? {
    guard subscribedAt == nil else { return nil }
    guard let answer = try connection?.ask(position.request, patience) else { throw .closed }
    switch position.interpret(answer) {
    case .following: subscribedAt = Clock.monotonicMicroseconds
    case .missed(let why):
      // The position and its epoch are known again after the next subscription.
      isLost = isLost || tellsBeginning
      return .missed(why)
    case .busy(let why): throw .busy("\(why)")
    case .refused(let code, let text): return .refused(code: code, text: text)
    case .malformed: throw .malformed("\(answer.final)")
    }
    guard isLost else { return nil }
    isLost = false
    return .found
  }

  /// Waits for the next event.
  ///
  /// - Returns: Nil for an event received before, and for a lag line.
  private mutating func nextEvent(_ patience: Patience) throws(DaemonConnection.Failure) -> ReceivedEvent? {
    guard let event = try connection?.nextEvent(patience) else { throw .closed }
    switch position.interpret(event) {
    case .known: return nil
    case .new:
      pause.reset()
      return event
    case .behind:
      // A new connection brings the missing events first, and in order.
      disconnect()
      return nil
    }
  }

  private mutating func disconnect() {
    let now = Clock.monotonicMicroseconds
    // A connection that lasted for a while does not count as a failed attempt.
    if let subscribedAt, now - subscribedAt >= ReconnectPause.longest { pause.reset() }
    connection = nil
    subscribedAt = nil
    nextAttempt = now + pause.next(using: &generator)
  }
}
