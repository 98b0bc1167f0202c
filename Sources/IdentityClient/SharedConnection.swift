import LinuxSystem

/// One connection that many tasks share. A thread of its own waits for the socket, so that no thread of Swift's pool ever
/// does.
final class SharedConnection: Sendable {
  /// What comes of a request.
  typealias Outcome = Result<ReceivedAnswer, IdentityError>

  /// What the tasks and the thread share.
  struct State: Sendable {
    var requests = RequestQueue<CheckedContinuation<Outcome, Never>>()
    /// Rung when there is something new; nil before the thread runs.
    var bell: Bell?
    /// Nobody asks any more.
    var isOver = false
  }

  private let daemon: DaemonSocket
  /// How long each request waits, in microseconds.
  private let timeout: UInt64?
  private let state = Locked(State())

  /// Nothing is connected, and no thread runs, before the first request.
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

  /// Sends a request and waits for its answer, or until the task is cancelled.
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

  /// The thread keeps nothing of this object but what both share, so that it ends when the object does.
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

/// A ``Wakeup`` that several have.
final class Bell: Sendable {
  private let wakeup: Wakeup

  /// Makes one that does not block.
  init() throws(SystemError) { wakeup = try Wakeup(blocking: false) }

  /// What can be waited for.
  var number: Int32 { wakeup.descriptor.number }
  /// Rings.
  func ring() { wakeup.ring() }
  /// Forgets that it was rung.
  func reset() { wakeup.wait() }
}
