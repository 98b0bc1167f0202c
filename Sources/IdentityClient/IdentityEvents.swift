import IdentityCore
import LinuxSystem

/// Events as they happen, across restarts of the daemon: each event once, in order, and every gap reported.
///
/// Each loop over the sequence has a connection and a thread of its own, from its first step to its end. The thread
/// reads up to ``bufferedSteps`` steps ahead. A slow loop delays no other loop or program, and misses no event as long
/// as the daemon keeps the events.
///
/// The loop ends when its task is cancelled. The loop throws ``IdentityError/unreachable(path:reason:)`` if the daemon
/// was not reached at the beginning, ``IdentityError/untrusted(path:reason:)`` if the daemon may belong to another
/// user, ``IdentityError/brokenAnswer(_:)`` if the daemon violates the protocol, and ``IdentityError/refused(_:_:)`` if
/// the daemon refuses to send the events.
public struct IdentityEvents: AsyncSequence, Sendable {
  /// A step in following events.
  public typealias Element = IdentityEventStep
  /// The error that ends a loop.
  public typealias Failure = IdentityError

  /// The maximum number of steps read ahead of a loop.
  public static let bufferedSteps = 64

  private let daemon: DaemonSocket
  private let topics: [EventTopic]
  private let since: Int64?
  private let epoch: String?

  init(of daemon: DaemonSocket, topics: [EventTopic], since: Int64?, epoch: String?) {
    self.daemon = daemon
    self.topics = topics
    self.since = since
    self.epoch = epoch
  }

  /// Returns an iterator that connects at its first step.
  public func makeAsyncIterator() -> Iterator {
    Iterator(EventStream(of: daemon, topics: topics, since: since, epoch: epoch))
  }

  /// An iterator over the events, with a connection and a thread of its own.
  public struct Iterator: AsyncIteratorProtocol {
    private let stream: EventStream

    init(_ stream: EventStream) { self.stream = stream }

    /// Waits for the next step.
    ///
    /// - Returns: The step; nil after the task was cancelled, and after an error.
    /// - Throws: The error that ends the loop, once.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(IdentityError) -> IdentityEventStep?
    {
      try await stream.next().get()
    }
  }
}

/// The thread of one iterator over ``IdentityEvents``, and the steps that it has read ahead.
final class EventStream: Sendable {
  typealias Outcome = Result<IdentityEventStep?, IdentityError>

  private struct State: Sendable {
    var buffer: [IdentityEventStep] = []
    var waiting: CheckedContinuation<Outcome, Never>?
    /// The error that ended the thread, until it is delivered.
    var failure: IdentityError?
    var isOver = false
    /// Whether the thread waits for room in the buffer.
    var isFull = false
    var bell: Bell?

    /// Ends the stream and stops the thread.
    ///
    /// - Returns: The caller that waits for a step.
    mutating func end() -> CheckedContinuation<Outcome, Never>? {
      isOver = true
      buffer = []
      failure = nil
      bell?.ring()
      return waiting.take()
    }

    /// Removes and returns the outcome that is available now; nil if the caller must wait.
    mutating func take() -> Outcome? {
      if !buffer.isEmpty {
        let step = buffer.removeFirst()
        if isFull, buffer.count <= IdentityEvents.bufferedSteps / 2 {
          isFull = false
          bell?.ring()
        }
        return .success(step)
      }
      if let failure = failure.take() { return .failure(failure) }
      return isOver ? .success(nil) : nil
    }
  }

  private let daemon: DaemonSocket
  private let topics: [String]
  private let since: Int64?
  private let epoch: Text?
  private let state = Locked(State())

  init(of daemon: DaemonSocket, topics: [EventTopic], since: Int64?, epoch: String?) {
    self.daemon = daemon
    self.topics = topics.map(\.rawValue)
    self.since = since
    self.epoch = epoch.map { Text($0) }
  }

  deinit { _ = state.withLock { $0.end() } }

  /// Waits for the next step. Only one task may wait at a time.
  func next() async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { caller in
        let outcome: Outcome? = state.withLock { state in
          if let outcome = state.take() { return outcome }
          if state.bell == nil {
            do throws(SystemError) {
              state.bell = try start()
            } catch {
              state.isOver = true
              return .failure(.unreachable(path: daemon.path, reason: error.description))
            }
          }
          state.waiting = caller
          return nil
        }
        if let outcome { caller.resume(returning: outcome) }
      }
    } onCancel: {
      state.withLock { $0.end() }?.resume(returning: .success(nil))
    }
  }

  private func start() throws(SystemError) -> Bell {
    let bell = try Bell()
    let thread = try Thread(named: "identity-events") { [daemon, topics, since, epoch, state] in
      var follower = EventFollower(of: daemon, topics: topics, since: since, epoch: epoch, tellsBeginning: true)
      Self.follow(&follower, bell, state)
    }
    thread.detach()
    return bell
  }

  private static func follow(_ follower: inout EventFollower, _ bell: Bell, _ state: Locked<State>) {
    let patience = Patience(until: nil, bell: bell.number)
    while waitForRoom(bell, state) {
      do throws(DaemonConnection.Failure) {
        let step = try follower.next(patience)
        if let told = IdentityEventStep(step, last: follower.last, epoch: follower.epoch) {
          deliver(told, state)
        } else if case .refused(let code, let text) = step {
          return fail(IdentityError(code: code, text: text), state)
        }
      } catch .interrupted {
        // While the buffer has room, the bell rings only at the end of the stream.
        return
      } catch {
        return fail(IdentityError(error), state)
      }
    }
  }

  /// Waits until the buffer has room.
  ///
  /// - Returns: False if the stream has ended.
  private static func waitForRoom(_ bell: Bell, _ state: Locked<State>) -> Bool {
    while true {
      let isOver: Bool? = state.withLock { state in
        if state.isOver { return true }
        guard state.buffer.count >= IdentityEvents.bufferedSteps else { return false }
        state.isFull = true
        return nil
      }
      if let isOver { return !isOver }
      // poll(2) fails only for lack of memory. The thread cannot wait without it.
      guard (try? TimedWait.wait(for: nil, bell: bell.number, until: nil)) != nil else { return false }
      bell.reset()
    }
  }

  private static func deliver(_ step: IdentityEventStep, _ state: Locked<State>) {
    let caller = state.withLock { state in
      if state.waiting == nil, !state.isOver { state.buffer.append(step) }
      return state.waiting.take()
    }
    caller?.resume(returning: .success(step))
  }

  private static func fail(_ error: IdentityError, _ state: Locked<State>) {
    let caller = state.withLock { state in
      let caller = state.waiting.take()
      if caller == nil, !state.isOver { state.failure = error }
      state.isOver = true
      return caller
    }
    caller?.resume(returning: .failure(error))
  }
}
