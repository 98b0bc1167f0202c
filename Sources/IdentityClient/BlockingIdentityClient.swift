import IdentityCore
import LinuxSystem

/// A client of identityd for programs without Swift concurrency: each call blocks the thread until the answer is there.
///
/// It belongs to one thread at a time. In a task of Swift concurrency, use ``IdentityClient``.
public struct BlockingIdentityClient: ~Copyable {
  private let daemon: DaemonSocket
  private let timeout: UInt64?
  private var connection: DaemonConnection?

  /// Makes a client; nothing is connected yet. The parameters are those of ``IdentityClient/init(socket:timeout:trust:)``.
  public init(
    socket: String? = nil, timeout: Duration? = IdentityClient.defaultTimeout, trust: DaemonTrust = .systemOrOwn
  ) {
    daemon = DaemonSocket(socket, trust)
    self.timeout = timeout?.microseconds
  }

  /// Asks the daemon, and blocks until the answer is there.
  public mutating func ask<Answer>(_ request: IdentityRequest<Answer>) throws(IdentityError) -> Answer {
    try request.line.check()
    let patience = Patience(microseconds: timeout)
    let received: ReceivedAnswer
    do throws(DaemonConnection.Failure) {
      received = try exchange(request.line, patience)
    } catch {
      // Whatever is still to come over it is not for the next request.
      connection = nil
      throw IdentityError(error)
    }
    return try request.answer(received)
  }

  /// Follows events.
  ///
  /// - Parameters:
  ///   - topics: none for all.
  ///   - since: the number of the event to begin behind; nil to begin with what happens from now on.
  ///   - epoch: the epoch of that number, as ``IdentityEventStep/following(after:epoch:)`` told it; nil if it was not kept.
  public func events(topics: EventTopic..., since: Int64? = nil, epoch: String? = nil) -> BlockingIdentityEvents {
    BlockingIdentityEvents(of: daemon, topics: topics, since: since, epoch: epoch)
  }

  private mutating func exchange(_ line: RequestLine, _ patience: Patience) throws(DaemonConnection.Failure)
    -> ReceivedAnswer
  {
    // One that ended meanwhile, or has something to say that nobody asked, is no good for a request.
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

/// Events as they happen, as ``IdentityEvents`` has them, for one thread.
public struct BlockingIdentityEvents: ~Copyable {
  private var follower: EventFollower

  init(of daemon: DaemonSocket, topics: [EventTopic], since: Int64?, epoch: String?) {
    follower = EventFollower(
      of: daemon, topics: topics.map(\.rawValue), since: since, epoch: epoch.map { Text($0) }, tellsBeginning: true)
  }

  /// Blocks until the next step.
  ///
  /// - Parameter timeout: how long at most; nil for as long as it takes.
  /// - Throws: ``IdentityError/timedOut``, behind which it goes on, and what ends ``IdentityEvents``.
  public mutating func next(timeout: Duration? = nil) throws(IdentityError) -> IdentityEventStep {
    let step: EventFollower.Step
    do throws(DaemonConnection.Failure) {
      step = try follower.next(Patience(microseconds: timeout?.microseconds))
    } catch {
      throw IdentityError(error)
    }
    if let told = IdentityEventStep(step, last: follower.last, epoch: follower.epoch) { return told }
    guard case .refused(let code, let text) = step else { throw .brokenAnswer("there is no event") }
    throw IdentityError(code: code, text: text)
  }
}

extension Patience {
  /// From now on; nil for as long as it takes.
  fileprivate init(microseconds: UInt64?) {
    let moment = microseconds.map { Clock.monotonicMicroseconds.addingReportingOverflow($0) }
    self.init(until: moment.map { $0.overflow ? .max : $0.partialValue })
  }
}
