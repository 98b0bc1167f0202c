import IdentityCore
package import IdentityWire
import LinuxSystem

/// A connection to the daemon, for requests with their answers and for the events between the answers.
package struct DaemonConnection: ~Copyable {
  /// A failure of the exchange with the daemon. A refusal by the daemon is an answer and not a failure.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// No daemon listens at the path, or the system refused the connection. `code` is the value of errno.
    case unreachable(path: String, code: Int32)
    /// The daemon may belong to an untrusted user. Nothing was sent.
    case untrusted(path: String, SocketFault)
    /// The daemon, or its accept queue, has no room for this connection now.
    case busy(String)
    /// The connection ended before the answer was complete.
    case closed
    /// The daemon sent data that violate the protocol.
    case malformed(String)
    /// The deadline passed.
    case timeUp
    /// Standard output has lost its reader, so the wait has no purpose any more.
    case outputClosed
    /// The bell that ends the wait was rung.
    case interrupted

    /// The cause, and the command that starts the daemon if it is unreachable.
    package var description: String {
      switch self {
      case .unreachable(let path, SystemError.accessDenied):
        "this user may not use \(path); run 'identityctl check', which names the file mode that forbids it"
      case .unreachable(let path, let code):
        "no identityd at \(path) (\(SystemError.text(of: code))); run 'systemctl \(path == DaemonSocket.ownPath ? "--user " : "")restart identityd.socket', or name another socket with --socket"
      case .untrusted(let path, let fault): "nothing was sent to \(path): \(fault); \(fault.remedy)"
      case .busy(let why): why
      case .closed: "the daemon closed the connection before its answer was complete"
      case .malformed(let line): "the daemon sent a line that violates the protocol: \(Self.beginning(of: line))"
      case .timeUp: "the time limit expired"
      case .outputClosed: "the output has no reader"
      case .interrupted: "the wait was interrupted"
      }
    }

    /// Returns only the beginning of a line: its sender is not trusted, and the rest may hold a secret.
    private static func beginning(of line: String) -> String {
      let beginning = String(decoding: line.utf8.prefix(Bound.quotedBytes), as: UTF8.self)
      return WordEncoder.quoted(beginning) + (line.utf8.count > Bound.quotedBytes ? "…" : "")
    }
  }

  /// An answer as received: its rows and its final line.
  package struct Answer: Equatable, Sendable {
    /// The rows, in order.
    package var rows: [ReplyLine.Content] = []
    /// The final line: `ok` or `error`.
    package let final: ReplyLine

    package init(rows: [ReplyLine.Content] = [], final: ReplyLine) {
      self.rows = rows
      self.final = final
    }
  }

  private let socket: Descriptor
  private var reader = LineReader()
  /// Events received before an answer, oldest first.
  private var events: [ReceivedEvent] = []
  /// The maximum number of events before an answer. Without a limit, a daemon that sends only events would
  /// fill the memory.
  ///
  /// identityd buffers at most 1 MiB of events for a subscriber (identityd-protocol(7), Lag), and that holds fewer
  /// event lines than this limit.
  private static let mostEvents = 65_536

  /// The descriptor of the socket, for an event loop. Lines that were received earlier do not make it readable.
  package var descriptor: Int32 { socket.number }

  /// Connects, and blocks while the daemon's accept queue is full.
  ///
  /// - Throws: `unreachable` or `untrusted`.
  package init(to daemon: DaemonSocket) throws(Failure) { socket = try daemon.connect() }

  /// Connects, and tries again while the daemon's accept queue is full, until the patience ends.
  ///
  /// - Throws: `unreachable`, `untrusted`, or `timeUp` at the deadline of `patience`.
  package init(to daemon: DaemonSocket, _ patience: Patience) throws(Failure) {
    var pause = ReconnectPause()
    var generator = SystemRandomNumberGenerator()
    while true {
      if let connected = try daemon.connectAtOnce() {
        socket = connected
        return
      }
      try patience.pause(until: Clock.monotonicMicroseconds + pause.next(using: &generator))
    }
  }

  /// Connects without waiting.
  ///
  /// - Throws: `busy` if the daemon's accept queue is full, else `unreachable` or `untrusted`.
  package init(atOnce daemon: DaemonSocket) throws(Failure) {
    guard let connected = try daemon.connectAtOnce() else { throw .busy("too many connections wait to be accepted") }
    socket = connected
  }

  /// Sends a request and waits for the complete answer.
  package mutating func ask(_ request: RequestLine, _ patience: Patience = .endless) throws(Failure) -> Answer {
    try send(request, patience)
    var rows: [ReplyLine.Content] = []
    while true {
      switch try nextOfAnswer(patience) {
      case .row(let content): rows.append(content)
      case let final: return Answer(rows: rows, final: final)
      }
    }
  }

  /// Sends requests together, and waits for all of their answers, so that their changes share a commit.
  ///
  /// - Parameter requests: So few and short ones that the daemon takes them all before it sends an answer.
  package mutating func ask(
    together requests: [RequestLine], _ patience: Patience
  ) throws(Failure) -> [ReplyLine] {
    for request in requests { try send(request, patience) }
    var answers: [ReplyLine] = []
    while answers.count < requests.count {
      let line = try nextOfAnswer(patience)
      if case .row = line { continue }
      answers.append(line)
    }
    return answers
  }

  /// Sends a request and passes on the rows of a long answer as they arrive.
  ///
  /// - Parameter take: Receives each row. If it throws, the rest of the answer is unread and the connection must not
  ///   be used again.
  /// - Returns: The final line.
  package mutating func ask(
    _ request: RequestLine, _ patience: Patience = .endless, _ take: (ReplyLine.Content) throws -> Void
  ) throws -> ReplyLine {
    try send(request, patience)
    while true {
      switch try nextOfAnswer(patience) {
      case .row(let content): try take(content)
      case let final: return final
      }
    }
  }

  /// Sends a request and waits for the complete answer. The returned value holds the only copy of the answer's secret.
  package mutating func exchange(
    _ request: RequestLine, _ patience: Patience = .endless
  ) throws(Failure) -> ReceivedAnswer {
    try send(request, patience)
    var answers = AnswerQueue()
    answers.expect(0, takesSecret: request.takesSecret)
    while true {
      var line = try nextBytes(patience)
      switch try answers.consume(&line) {
      case .part, .farewell: continue
      case .event(let event): try putBy(event)
      case .answer(_, let answer): return answer
      }
    }
  }

  /// Whether the connection is open and has no unread data, as expected between two requests.
  var isIdle: Bool { (try? TimedWait.wait(for: socket.number, until: 0)) == .timeUp }

  /// Sends a request line and wipes the copy that was sent.
  private func send(_ request: RequestLine, _ patience: Patience) throws(Failure) {
    var line = request.bytes()
    defer { line.wipe() }
    var sent = 0
    do {
      while sent < line.count {
        if let count = try socket.send(line, from: sent) {
          sent += count
        } else {
          try patience.wait(for: socket, wantsRoom: true)
        }
      }
    } catch let failure as Failure {
      throw failure
    } catch {
      // The daemon may already have refused and closed the connection. The refusal can still be read.
    }
  }

  /// Returns the next line of an answer, and sets aside the events before that line.
  private mutating func nextOfAnswer(_ patience: Patience) throws(Failure) -> ReplyLine {
    while true {
      let line = try nextLine(patience)
      guard case .event(let sequence, let content) = line else { return line }
      try putBy(ReceivedEvent(sequence: sequence, content: content))
    }
  }

  private mutating func putBy(_ event: ReceivedEvent) throws(Failure) {
    guard events.count < Self.mostEvents else {
      throw .malformed("\(Self.mostEvents) events instead of an answer")
    }
    events.append(event)
  }

  /// Returns the next event, waiting for it if necessary.
  package mutating func nextEvent(_ patience: Patience) throws(Failure) -> ReceivedEvent {
    if !events.isEmpty { return events.removeFirst() }
    switch try nextLine(patience) {
    case .event(let sequence, let content): return ReceivedEvent(sequence: sequence, content: content)
    // No request is pending, so this line gives the reason why the daemon closes the connection.
    case .error(code: "busy", let text): throw .busy("\(text)")
    case .error, .ok, .row: throw .closed
    }
  }

  private mutating func nextLine(_ patience: Patience) throws(Failure) -> ReplyLine {
    let line = try nextBytes(patience)
    guard let parsed = ReplyLine(line) else { throw .malformed(String(decoding: line, as: UTF8.self)) }
    return parsed
  }

  private mutating func nextBytes(_ patience: Patience) throws(Failure) -> [UInt8] {
    while true {
      if let line = reader.next() { return line }
      if let beginning = reader.overlong { throw .malformed(String(decoding: beginning, as: UTF8.self)) }
      try patience.wait(for: socket)
      do {
        guard let count = try reader.receive(from: socket) else { continue }
        guard count > 0 else { throw Failure.closed }
      } catch {
        throw .closed
      }
    }
  }
}
