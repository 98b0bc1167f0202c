package import IdentityCore
import IdentityWire
import LinuxSystem

/// Follows the daemon's events over its restarts: each comes once, and none is left out without a word.
package struct EventFollower: ~Copyable {
  /// Why events cannot be had any more.
  package enum Missed: Equatable, Sendable, CustomStringConvertible {
    /// They are too long ago; the daemon's words for it.
    case notKept(Text)
    /// The daemon has another store, whose numbers began anew.
    case numberedAnew(after: Int64)

    /// The reason, without hidden characters.
    package var description: String {
      switch self {
      case .notKept(let text): WordEncoder.visible("\(text)")
      case .numberedAnew(let last): "the daemon has a new store and has never come to event \(last)"
      }
    }
  }

  /// What comes next.
  package enum Step: Equatable, Sendable {
    case event(ReceivedEvent)
    /// The daemon is gone, and looked for until it is back.
    case lost(DaemonConnection.Failure)
    /// It is back.
    case found
    /// Events may have been missed; what follows begins with what happens from now on.
    case missed(Missed)
    /// The daemon will not send these events; there is nothing to go on with.
    case refused(code: Text, text: Text)
  }

  private let daemon: DaemonSocket
  private var position: EventPosition
  private var connection: DaemonConnection?
  private var pause = ReconnectPause()
  private var generator = SystemRandomNumberGenerator()
  /// Before this moment no attempt is made.
  private var nextAttempt: UInt64 = 0
  /// Since when this connection brings events; nil as long as it does not.
  private var subscribedAt: UInt64?
  private var isLost = false
  /// What is to be said behind the daemon's being back.
  private var nextStep: Step?
  private var wasReached = false

  /// Connects to nobody yet.
  ///
  /// - Parameters:
  ///   - topics: none for all.
  ///   - since: the number of the event to begin behind; nil to begin with what happens from now on.
  ///   - epoch: the epoch of that number; nil where it is not known.
  ///   - tellsBeginning: whether ``Step/found`` comes as well when events can be had for the first time.
  package init(
    of daemon: DaemonSocket, topics: [String], since: Int64?, epoch: Text? = nil, tellsBeginning: Bool = false
  ) {
    self.daemon = daemon
    isLost = tellsBeginning
    position = EventPosition(topics, since: since, epoch: epoch)
  }

  /// The number behind which events come next; nil as long as that is not known.
  package var last: Int64? { position.last }
  /// The epoch of that number; nil as long as that is not known.
  package var epoch: Text? { position.epoch }

  /// Waits for the next step.
  ///
  /// - Throws: `unreachable` where nobody was there from the beginning, `untrusted` then and later, `malformed`, and the end
  ///   of the patience. A daemon that is gone is no failure once it was reached.
  package mutating func next(_ patience: Patience) throws(DaemonConnection.Failure) -> Step {
    if let step = nextStep.take() { return step }
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

  /// - Returns: nil when this connection brings events and there is nothing to say about that.
  private mutating func subscribe(_ patience: Patience) throws(DaemonConnection.Failure) -> Step? {
    guard subscribedAt == nil else { return nil }
    guard let answer = try connection?.ask(position.request, patience) else { throw .closed }
    switch position.take(answer) {
    case .following: subscribedAt = Clock.monotonicMicroseconds
    case .missed(let why): nextStep = .missed(why)
    case .busy(let why): throw .busy("\(why)")
    case .refused(let code, let text): return .refused(code: code, text: text)
    case .malformed: throw .malformed("\(answer.final)")
    }
    if isLost {
      isLost = false
      return .found
    }
    return nextStep.take()
  }

  /// - Returns: nil where what came is not for whoever follows.
  private mutating func nextEvent(_ patience: Patience) throws(DaemonConnection.Failure) -> ReceivedEvent? {
    guard let event = try connection?.nextEvent(patience) else { throw .closed }
    switch position.take(event) {
    case .known: return nil
    case .new:
      pause.reset()
      return event
    case .behind:
      // A fresh connection brings what was left out first, and in order.
      disconnect()
      return nil
    }
  }

  private mutating func disconnect() {
    let now = Clock.monotonicMicroseconds
    // One that served for a while was no failed attempt.
    if let subscribedAt, now - subscribedAt >= ReconnectPause.longest { pause.reset() }
    connection = nil
    subscribedAt = nil
    nextAttempt = now + pause.take(using: &generator)
  }
}
