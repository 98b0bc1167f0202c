/// A client of identityd for programs that use Swift concurrency.
///
/// Any number of tasks can use one client at the same time. All requests share one connection and are pipelined: a
/// request does not wait for the answer to an earlier request. A thread of the client waits for the socket. The
/// client connects at the first request, and again after the connection broke. One client is enough for a program;
/// several are allowed.
public final class IdentityClient: Sendable {
  /// The default time limit of a request: 25 seconds, as for a call over D-Bus.
  public static let defaultTimeout: Duration = .seconds(25)

  private let daemon: DaemonSocket
  private let connection: SharedConnection

  /// Creates a client without connecting.
  ///
  /// - Parameters:
  ///   - socket: The path of the daemon's socket. If nil, the client uses `IDENTITYD_SOCKET` of the environment, else
  ///     the socket of the system's daemon. If the system's socket does not exist, the client uses the socket of the
  ///     user's own daemon, except for root, who has none.
  ///   - timeout: The time limit of each request, including the time to connect; nil for no limit.
  ///   - trust: The users whose daemon the client accepts. The client sends nothing to any other daemon, even if
  ///     `socket` names its path.
  public init(
    socket: String? = nil, timeout: Duration? = defaultTimeout, trust: DaemonTrust = .systemOrOwn
  ) {
    daemon = DaemonSocket(socket, trust)
    connection = SharedConnection(to: daemon, timeout: timeout?.microseconds)
  }

  /// Sends a request and returns its answer.
  ///
  /// If the task is cancelled, the call throws ``IdentityError/cancelled`` at once. A request that was not sent yet
  /// is then never carried out. A request that was sent may or may not be carried out. Requests of other tasks are
  /// not affected.
  ///
  /// - Throws: ``IdentityError/refused(_:_:)`` if the daemon refuses the request; any other case means that there
  ///   is no answer.
  public func ask<Answer>(_ request: IdentityRequest<Answer>) async throws(IdentityError) -> Answer {
    try request.line.check()
    return try request.answer(try await connection.ask(request.line).get())
  }

  /// Returns the events of some topics. Each loop over the sequence connects at its first step.
  ///
  /// - Parameters:
  ///   - topics: The topics to follow; none for all topics.
  ///   - since: The sequence number after which the events begin; nil for events from now on.
  ///   - epoch: The epoch of `since`, as reported by ``IdentityEventStep/following(after:epoch:)``; nil if the
  ///     epoch is unknown.
  public func events(topics: EventTopic..., since: Int64? = nil, epoch: String? = nil) -> IdentityEvents {
    events(topics: topics, since: since, epoch: epoch)
  }

  /// Returns the events of an array of topics. Each loop over the sequence connects at its first step.
  ///
  /// - Parameters:
  ///   - topics: The topics to follow; an empty array for all topics.
  ///   - since: The sequence number after which the events begin; nil for events from now on.
  ///   - epoch: The epoch of `since`, as reported by ``IdentityEventStep/following(after:epoch:)``; nil if the
  ///     epoch is unknown.
  public func events(topics: [EventTopic], since: Int64? = nil, epoch: String? = nil) -> IdentityEvents {
    IdentityEvents(of: daemon, topics: topics, since: since, epoch: epoch)
  }
}

extension Duration {
  /// The duration in microseconds: 0 for a negative duration, `UInt64.max` on overflow.
  var microseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let whole = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
    let sum = whole.partialValue.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000_000)
    return whole.overflow || sum.overflow ? .max : sum.partialValue
  }
}
