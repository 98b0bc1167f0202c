import IdentityCore
import LinuxSystem

/// A client of identityd for programs without Swift concurrency. Each call blocks its thread until the answer arrives.
///
/// Only one thread at a time may use a client. In a task of Swift concurrency, use ``IdentityClient``.
public struct BlockingIdentityClient: ~Copyable {
  private let daemon: DaemonSocket
  private let timeout: UInt64?
  private var connection: DaemonConnection?

  /// Creates a client without connecting. The parameters are those of ``IdentityClient/init(socket:timeout:trust:)``.
  public init(
    socket: String? = nil, timeout: Duration? = IdentityClient.defaultTimeout, trust: DaemonTrust = .systemOrOwn
  ) {
    daemon = DaemonSocket(socket, trust)
    self.timeout = timeout?.microseconds
  }

  /// Sends a request and blocks until its answer arrives.
  ///
  /// - Throws: ``IdentityError/refused(_:_:)`` if the daemon refuses the request; any other case means that there
  ///   is no answer.
  public mutating func ask<Answer>(_ request: IdentityRequest<Answer>) throws(IdentityError) -> Answer {
    try request.line.check()
    let patience = Patience(microseconds: timeout)
    let received: ReceivedAnswer
    do throws(DaemonConnection.Failure) {
      received = try exchange(request.line, patience)
    } catch {
      // The rest of this answer must not be read as the answer to the next request.
      connection = nil
      throw IdentityError(error)
    }
    return try request.answer(received)
  }

  /// Returns the events of some topics, to be read on one thread. The connection is made at the first step.
  ///
  /// - Parameters:
  ///   - topics: The topics to follow; none for all topics.
  ///   - since: The sequence number after which the events begin; nil for events from now on.
  ///   - epoch: The epoch of `since`, as reported by ``IdentityEventStep/following(after:epoch:)``; nil if the
  ///     epoch is unknown.
  public func events(topics: EventTopic..., since: Int64? = nil, epoch: String? = nil) -> BlockingIdentityEvents {
    BlockingIdentityEvents(of: daemon, topics: topics, since: since, epoch: epoch)
  }

  private mutating func exchange(_ line: RequestLine, _ patience: Patience) throws(DaemonConnection.Failure)
    -> ReceivedAnswer
  {
    // A connection that ended or received unsolicited data cannot carry a request.
    if connection?.isIdle == false { connection = nil }
    do {
      return try exchangeOnce(line, patience)
    } catch .closed where line.isQuestion {
      connection = nil
      return try exchangeOnce(line, patience)
    }
  }

  private mutating func exchangeOnce(_ line: RequestLine, _ patience: Patience) throws(DaemonConnection.Failure)
    -> ReceivedAnswer
  {
    if connection == nil { connection = try DaemonConnection(to: daemon, patience) }
    guard let answer = try connection?.exchange(line, patience) else { throw .closed }
    if answer.isLast { connection = nil }
    return answer
  }
}

/// The blocking counterpart of ``IdentityEvents``, for one thread.
public struct BlockingIdentityEvents: ~Copyable {
  private var follower: EventFollower

  init(of daemon: DaemonSocket, topics: [EventTopic], since: Int64?, epoch: String?) {
    follower = EventFollower(
      of: daemon, topics: topics.map(\.rawValue), since: since, epoch: epoch.map { Text($0) }, tellsBeginning: true)
  }

  /// Blocks until the next step.
  ///
  /// - Parameter timeout: The longest wait; nil for no limit.
  /// - Throws: ``IdentityError/timedOut``, after which the next call continues; otherwise an error that
  ///   ends ``IdentityEvents``.
  public mutating func next(timeout: Duration? = nil) throws(IdentityError) -> IdentityEventStep {
    let step: EventFollower.Step
    do throws(DaemonConnection.Failure) {
      step = try follower.next(Patience(microseconds: timeout?.microseconds))
    } catch {
      throw IdentityError(error)
    }
    if let told = IdentityEventStep(step, last: follower.last, epoch: follower.epoch) { return told }
    guard case .refused(let code, let text) = step else { throw .brokenAnswer("the event is missing") }
    throw IdentityError(code: code, text: text)
  }
}

extension Patience {
  /// Sets a deadline relative to now; nil for no deadline.
  fileprivate init(microseconds: UInt64?) {
    let moment = microseconds.map { Clock.monotonicMicroseconds.addingReportingOverflow($0) }
    self.init(until: moment.map { $0.overflow ? .max : $0.partialValue })
  }
}
