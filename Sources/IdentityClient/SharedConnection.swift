import LinuxSystem

/// One connection that many tasks share.
///
/// A thread of its own waits for the socket, so that no thread of Swift's concurrency pool blocks.
final class SharedConnection: Sendable {
  /// The outcome of a request.
  typealias Outcome = Result<ReceivedAnswer, IdentityError>

  /// The state that the tasks and the thread share.
  struct State: Sendable {
    var requests = RequestQueue<CheckedContinuation<Outcome, Never>>()
    /// Wakes the thread after a change of the state; nil until the thread runs.
    var bell: Bell?
    /// Whether the ``SharedConnection`` is released, so that the thread must end.
    var isOver = false
  }

  private let daemon: DaemonSocket
  /// The time limit of each request in microseconds; nil for none.
  private let timeout: UInt64?
  private let state = Locked(State())

  /// Creates the object. The thread and the connection are made at the first request.
  init(to daemon: DaemonSocket, timeout: UInt64?) {
    self.daemon = daemon
    self.timeout = timeout
  }

  deinit {
    state.withLock {
      $0.isOver = true
      $0.bell?.ring()
    }
  }

  /// Sends a request, and waits for its answer or for the cancellation of the task.
  func ask(_ line: RequestLine) async -> Outcome {
    let ticket = state.withLock { $0.requests.announce() }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { enter(ticket, line, $0) }
    } onCancel: {
      let caller = state.withLock { $0.requests.cancel(ticket) }
      caller?.resume(returning: .failure(.cancelled))
    }
  }

  private func enter(_ ticket: UInt64, _ line: RequestLine, _ caller: CheckedContinuation<Outcome, Never>) {
    let deadline = timeout.map { Clock.monotonicMicroseconds.addingReportingOverflow($0) }
    let moment = deadline.map { $0.overflow ? UInt64.max : $0.partialValue }
    let failure: IdentityError? = state.withLock { state in
      guard state.requests.enter(ticket, line, until: moment, caller) else { return .cancelled }
      do throws(SystemError) {
        if state.bell == nil { state.bell = try start() }
        state.bell?.ring()
        return nil
      } catch {
        _ = state.requests.finish(ticket)
        return .unreachable(path: daemon.path, reason: error.description)
      }
    }
    if let failure { caller.resume(returning: .failure(failure)) }
  }

  /// Starts the thread. The thread retains only the shared state and not this object, so that the thread ends after the
  /// object is released.
  private func start() throws(SystemError) -> Bell {
    let bell = try Bell()
    let thread = try Thread(named: "identity-client") { [daemon, state] in
      var loop = ConnectionLoop(to: daemon, bell, state)
      loop.run()
    }
    thread.detach()
    return bell
  }
}

/// A ``Wakeup`` with several owners.
final class Bell: Sendable {
  private let wakeup: Wakeup

  /// Creates a bell that does not block.
  init() throws(SystemError) { wakeup = try Wakeup(blocking: false) }

  /// The descriptor to poll.
  var number: Int32 { wakeup.descriptor.number }
  /// Wakes the waiting thread.
  func ring() { wakeup.ring() }
  /// Clears all earlier rings.
  func reset() { wakeup.wait() }
}
