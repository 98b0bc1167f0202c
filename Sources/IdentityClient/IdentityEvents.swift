import IdentityCore
import LinuxSystem

/// Events as they happen, over restarts of the daemon: each once, in order, and none left out without a word.
///
/// Each loop over it has a connection and a thread of its own, from its first step to its end. As many events as
/// ``bufferedSteps`` are read ahead; whoever is slower than that holds up nobody but itself, and misses nothing as long as
/// the daemon keeps the events. It ends when the task is cancelled, and throws where there is nothing to go on with: the
/// daemon was not there from the beginning, is not one that may be asked, or will not send these events.
public struct IdentityEvents: AsyncSequence, Sendable {
  /// What is told.
  public typealias Element = IdentityEventStep
  /// Why there is nothing to go on with.
  public typealias Failure = IdentityError

  /// How many steps are read ahead at most.
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

  /// Follows events; connected is at the first step.
  public func makeAsyncIterator() -> Iterator {
    Iterator(EventStream(of: daemon, topics: topics, since: since, epoch: epoch))
  }

  /// One loop over the events.
  public struct Iterator: AsyncIteratorProtocol {
    private let stream: EventStream

    init(_ stream: EventStream) { self.stream = stream }

    /// Waits for the next step; nil once the task is cancelled, and behind an error.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws(IdentityError) -> IdentityEventStep?
    {
      try await stream.next().get()
    }
  }
}

/// One run of ``IdentityEvents``: a thread that follows, and what it has read ahead.
final class EventStream: Sendable {
  typealias Outcome = Result<IdentityEventStep?, IdentityError>

  private struct State: Sendable {
    var buffer: [IdentityEventStep] = []
    var waiting: CheckedContinuation<Outcome, Never>?
    /// Why nothing more comes; told once.
    var failure: IdentityError?
    var isOver = false
    /// The thread waits until there is room.
    var isFull = false
    var bell: Bell?

    /// Nobody wants anything more.
    mutating func end() -> CheckedContinuation<Outcome, Never>? {
      isOver = true
      buffer = []
      failure = nil
      bell?.ring()
      return waiting.take()
    }

    /// What there is to tell already.
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

  /// Waits for the next step. One task asks at a time.
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
        // Rung while it is not full, the bell says that it is over.
        return
      } catch {
        return fail(IdentityError(error), state)
      }
    }
  }

  /// - Returns: false where it is over.
  private static func waitForRoom(_ bell: Bell, _ state: Locked<State>) -> Bool {
    while true {
      let isOver: Bool? = state.withLock { state in
        if state.isOver { return true }
        guard state.buffer.count >= IdentityEvents.bufferedSteps else { return false }
        state.isFull = true
        return nil
      }
      if let isOver { return !isOver }
      // Without memory for poll(2) there is nothing to wait with.
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
