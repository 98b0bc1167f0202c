/// A client of identityd for programs with Swift concurrency.
///
/// Any number of tasks may use one client at a time: they share a connection, and a request does not wait for the answer to
/// the one before it. A thread of the client's own waits for the socket. The connection is made at the first request, and
/// again after it broke. A program needs one client, and may have several.
public final class IdentityClient: Sendable {
  /// How long a request waits for its answer where nothing else is said: as long as a call over D-Bus does.
  public static let defaultTimeout: Duration = .seconds(25)

  private let daemon: DaemonSocket
  private let connection: SharedConnection

  /// Makes a client; nothing is connected yet.
  ///
  /// - Parameters:
  ///   - socket: the path of the daemon's socket; nil for `IDENTITYD_SOCKET` of the environment, else the system's
  ///     daemon, else the user's own, which root has none of.
  ///   - timeout: how long each request waits for its answer; nil for as long as it takes.
  ///   - trust: whose daemon the client asks. The client sends nothing to another daemon, also if `socket` names its path.
  public init(
    socket: String? = nil, timeout: Duration? = defaultTimeout, trust: DaemonTrust = .systemOrOwn
  ) {
    daemon = DaemonSocket(socket, trust)
    connection = SharedConnection(to: daemon, timeout: timeout?.microseconds)
  }

  /// Asks the daemon, and waits for the answer.
  ///
  /// When the task is cancelled this throws ``IdentityError/cancelled`` at once. A request that had not been sent is then
  /// not carried out; of one that had, nobody can say. Other tasks' requests go on.
  public func ask<Answer>(_ request: IdentityRequest<Answer>) async throws(IdentityError) -> Answer {
    try request.line.check()
    return try request.answer(try await connection.ask(request.line).get())
  }

  /// Follows events.
  ///
  /// - Parameters:
  ///   - topics: none for all.
  ///   - since: the number of the event to begin behind; nil to begin with what happens from now on.
  ///   - epoch: the epoch of that number, as ``IdentityEventStep/following(after:epoch:)`` told it; nil if it was not kept.
  public func events(topics: EventTopic..., since: Int64? = nil, epoch: String? = nil) -> IdentityEvents {
    events(topics: topics, since: since, epoch: epoch)
  }

  /// The same, of an array.
  public func events(topics: [EventTopic], since: Int64? = nil, epoch: String? = nil) -> IdentityEvents {
    IdentityEvents(of: daemon, topics: topics, since: since, epoch: epoch)
  }
}

extension Duration {
  /// In microseconds, 0 at least.
  var microseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let whole = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
    let sum = whole.partialValue.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000_000)
    return whole.overflow || sum.overflow ? .max : sum.partialValue
  }
}
