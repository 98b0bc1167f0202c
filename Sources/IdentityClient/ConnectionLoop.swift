import LinuxSystem

/// The loop that the thread of a ``SharedConnection`` runs.
///
/// The loop connects when there is a request to send, pipelines the requests, and delivers each answer to its caller.
struct ConnectionLoop: ~Copyable {
  /// The maximum number of unanswered requests on the connection. Further requests stay in the queue, where they can
  /// still be withdrawn.
  private static let mostUnderWay = 256

  private let daemon: DaemonSocket
  private let bell: Bell
  private let state: Locked<SharedConnection.State>
  private var link: Link?
  private var answers = AnswerQueue()
  /// The line being sent, and the number of its bytes that are sent.
  private var line: [UInt8] = []
  private var sent = 0
  private var takesMore = true
  private var pause = ReconnectPause()
  private var generator = SystemRandomNumberGenerator()
  /// The earliest moment of the next attempt to connect, later than now if the last attempt found the
  /// accept queue full.
  private var nextAttempt: UInt64 = 0

  init(to daemon: DaemonSocket, _ bell: Bell, _ state: Locked<SharedConnection.State>) {
    self.daemon = daemon
    self.bell = bell
    self.state = state
  }

  /// Runs until the ``SharedConnection`` is released.
  mutating func run() {
    while true {
      // Reset before the queue is read: a request that arrives later rings again.
      bell.reset()
      guard !(state.withLock { $0.isOver }) else { return }
      let expired = state.withLock { $0.requests.expire(at: Clock.monotonicMicroseconds) }
      for caller in expired { caller.resume(returning: .failure(.timedOut)) }
      connect()
      receive()
      send()
      wait()
    }
  }

  private mutating func connect() {
    guard link == nil, Clock.monotonicMicroseconds >= nextAttempt, state.withLock({ $0.requests.hasUnsent() })
    else { return }
    do throws(DaemonConnection.Failure) {
      guard let connected = try daemon.connectAtOnce() else {
        nextAttempt = Clock.monotonicMicroseconds + pause.next(using: &generator)
        return
      }
      link = Link(socket: connected)
      answers = AnswerQueue()
      takesMore = true
      pause.reset()
    } catch {
      let failure = IdentityError(error)
      let callers = state.withLock { $0.requests.failUnsent() }
      for caller in callers { caller.resume(returning: .failure(failure)) }
    }
  }

  private mutating func send() {
    while link != nil, takesMore {
      if line.isEmpty {
        guard answers.count < Self.mostUnderWay, let next = state.withLock({ $0.requests.takeUnsent() }) else { return }
        line = next.line.bytes()
        sent = 0
        answers.expect(next.ticket, takesSecret: next.line.takesSecret)
      }
      do {
        guard let count = try link?.send(line, from: sent) else { return }
        sent += count
        if sent == line.count { forgetLine() }
      } catch {
        // The daemon may already have refused and closed the connection. The refusal can still be read.
        takesMore = false
        forgetLine()
      }
    }
  }

  private mutating func forgetLine() {
    line.wipe()
    line = []
  }

  private mutating func receive() {
    while link != nil {
      guard let count = link?.receive() else { return }
      guard count > 0 else { return end() }
      while var line = link?.reader.next() {
        do throws(DaemonConnection.Failure) {
          if case .answer(let ticket, let answer) = try answers.consume(&line) {
            let caller = state.withLock { $0.requests.finish(ticket) }
            caller?.resume(returning: .success(answer))
          }
          // The daemon is about to close this connection (identityd-protocol(7), Errors, `busy`). Later requests need
          // another connection.
          if answers.busyText != nil { return end() }
        } catch {
          return end(with: IdentityError(error))
        }
      }
      if let beginning = link?.reader.overlong {
        return end(with: IdentityError(.malformed(String(decoding: beginning, as: UTF8.self))))
      }
    }
  }

  /// Closes the connection, and ends its unanswered requests: repeatable ones are sent again, all others fail.
  ///
  /// - Parameter fault: The fault in the answer that was due next; nil if the connection just ended.
  private mutating func end(with fault: IdentityError? = nil) {
    link = nil
    forgetLine()
    let wasOfUse = answers.answered > 0
    let left = answers.end()
    // A daemon that has no room for the connection has carried out none of its requests.
    let busy = answers.busyText.map { IdentityError.refused(.busy, $0) }
    let faulty = fault == nil ? 0 : 1
    let (broken, lost, unsent) = state.withLock { state in
      (
        state.requests.requeue(Array(left.prefix(faulty)), asksAgain: false),
        state.requests.requeue(Array(left.dropFirst(faulty)), asksAgain: busy == nil),
        // If the connection carried no request and no answer, another connection would end in the same way.
        left.isEmpty && !wasOfUse ? state.requests.failUnsent() : []
      )
    }
    for caller in broken { caller.resume(returning: .failure(fault ?? .connectionLost)) }
    for caller in lost + unsent { caller.resume(returning: .failure(busy ?? .connectionLost)) }
  }

  private mutating func wait() {
    let (deadline, hasUnsent) = state.withLock { ($0.requests.nextDeadline(), $0.requests.hasUnsent()) }
    // Without a connection, unsent requests wait for the next attempt.
    let attempt = link == nil && hasUnsent ? nextAttempt : nil
    let until = [deadline, attempt].compactMap(\.self).min()
    do {
      _ = try TimedWait.wait(for: link?.number, wantsRoom: !line.isEmpty, bell: bell.number, until: until)
    } catch {
      // poll(2) fails only for lack of memory. The callers get an error, because another attempt would make
      // the loop spin.
      end()
    }
  }
}

/// The socket of a connection, and the data received on it.
private struct Link: ~Copyable {
  private let socket: Descriptor
  var reader = LineReader()

  init(socket: consuming Descriptor) { self.socket = socket }

  var number: Int32 { socket.number }

  /// - Returns: The number of bytes sent; nil if the socket has no room now.
  func send(_ line: [UInt8], from start: Int) throws(SystemError) -> Int? { try socket.send(line, from: start) }

  /// - Returns: The number of bytes received; nil if none has arrived, 0 at the end of the stream and after an error.
  mutating func receive() -> Int? {
    do {
      return try reader.receive(from: socket)
    } catch {
      return 0
    }
  }
}
