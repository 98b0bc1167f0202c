import LinuxSystem

/// What the thread of a ``SharedConnection`` does: it connects when there is something to ask, sends requests one behind
/// the other without waiting for answers, and gives each answer to whoever asked.
struct ConnectionLoop: ~Copyable {
  /// Requests that may be under way at once; more wait here, where they can still be taken back.
  private static let mostUnderWay = 256

  private let daemon: DaemonSocket
  private let bell: Bell
  private let state: Locked<SharedConnection.State>
  private var link: Link?
  private var answers = AnswerQueue()
  /// The line that is being sent, and how much of it is.
  private var line: [UInt8] = []
  private var sent = 0
  private var takesMore = true
  private var pause = ReconnectPause()
  private var generator = SystemRandomNumberGenerator()
  /// Before this moment no attempt is made, as the daemon had no room.
  private var nextAttempt: UInt64 = 0

  init(to daemon: DaemonSocket, _ bell: Bell, _ state: Locked<SharedConnection.State>) {
    self.daemon = daemon
    self.bell = bell
    self.state = state
  }

  /// Runs until nobody asks any more.
  mutating func run() {
    while true {
      // Before looking at what there is: what comes behind that rings again.
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
        nextAttempt = Clock.monotonicMicroseconds + pause.take(using: &generator)
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
        // Where the daemon has refused already and closed, its reason is there to be read all the same.
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
          if case .answer(let ticket, let answer) = try answers.take(&line) {
            let caller = state.withLock { $0.requests.finish(ticket) }
            caller?.resume(returning: .success(answer))
          }
          // Before it is closed (identityd-protocol(7), `busy`): what is asked from now on has to be asked over another.
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

  /// The connection is of no further use.
  ///
  /// - Parameter fault: what is wrong with the answer that was to come next.
  private mutating func end(with fault: IdentityError? = nil) {
    link = nil
    forgetLine()
    let wasOfUse = answers.answered > 0
    let left = answers.end()
    // Whoever has no room for this connection has not done anything of what came over it.
    let busy = answers.busyText.map { IdentityError.refused(.busy, $0) }
    let faulty = fault == nil ? 0 : 1
    let (broken, lost, unsent) = state.withLock { state in
      (
        state.requests.takeBack(Array(left.prefix(faulty)), asksAgain: false),
        state.requests.takeBack(Array(left.dropFirst(faulty)), asksAgain: busy == nil),
        // A connection over which nothing came and nothing went says what the next one would.
        left.isEmpty && !wasOfUse ? state.requests.failUnsent() : []
      )
    }
    for caller in broken { caller.resume(returning: .failure(fault ?? .connectionLost)) }
    for caller in lost + unsent { caller.resume(returning: .failure(busy ?? .connectionLost)) }
  }

  private mutating func wait() {
    let (deadline, hasUnsent) = state.withLock { ($0.requests.nextDeadline(), $0.requests.hasUnsent()) }
    // Without a connection and with something to send, an attempt is to be made later.
    let attempt = link == nil && hasUnsent ? nextAttempt : nil
    let until = [deadline, attempt].compactMap(\.self).min()
    do {
      _ = try TimedWait.wait(for: link?.number, wantsRoom: !line.isEmpty, bell: bell.number, until: until)
    } catch {
      // poll(2) fails for want of memory only: whoever waits is told, so that nothing is tried in a circle.
      end()
    }
  }
}

/// The socket of a connection, and what came over it.
private struct Link: ~Copyable {
  private let socket: Descriptor
  var reader = LineReader()

  init(socket: consuming Descriptor) { self.socket = socket }

  var number: Int32 { socket.number }

  /// - Returns: how much was taken; nil when nothing is taken now.
  func send(_ line: [UInt8], from start: Int) throws(SystemError) -> Int? { try socket.send(line, from: start) }

  /// - Returns: how much came; nil when nothing is there now, 0 at the end: a connection that broke has ended.
  mutating func receive() -> Int? {
    do {
      return try reader.receive(from: socket)
    } catch {
      return 0
    }
  }
}
