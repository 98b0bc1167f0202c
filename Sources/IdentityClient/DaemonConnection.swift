import IdentityCore
package import IdentityWire
import LinuxSystem

/// A connection to the daemon: requests with their answers, and the events that come between those.
package struct DaemonConnection: ~Copyable {
  /// What goes wrong between a client and the daemon; a refusal is an answer and not among these.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    /// Nobody listens there, or may be asked: with the value of errno.
    case unreachable(path: String, code: Int32)
    /// The daemon may be another user's; nothing was sent.
    case untrusted(path: String, SocketFault)
    /// The daemon has no room for this connection now.
    case busy(String)
    /// The connection ended before the answer was whole.
    case closed
    /// What came is not the protocol.
    case malformed(String)
    /// The wait was to end before.
    case timeUp
    /// Nobody reads standard output any more, so there is nothing to wait for.
    case outputClosed
    /// A bell was rung that ends the wait.
    case interrupted

    /// The cause, and for an unreachable daemon what to start.
    package var description: String {
      switch self {
      case .unreachable(let path, let code):
        "no identityd at \(path) (\(SystemError.text(of: code))); start it with 'systemctl start identityd.socket', or name another with --socket"
      case .untrusted(let path, let fault): "nothing was sent to \(path): \(fault); \(fault.remedy)"
      case .busy(let why): why
      case .closed: "the daemon closed the connection before its answer was whole"
      case .malformed(let line): "the daemon sent a line that is not the protocol: \(Self.beginning(of: line))"
      case .timeUp: "the time is up"
      case .outputClosed: "nobody reads the output"
      case .interrupted: "the wait was ended"
      }
    }

    /// Enough to see what it is: whoever sent it may be anybody, and what it goes on with may be a secret.
    private static func beginning(of line: String) -> String {
      let beginning = String(decoding: line.utf8.prefix(Bound.quotedBytes), as: UTF8.self)
      return WordEncoder.quoted(beginning) + (line.utf8.count > Bound.quotedBytes ? "…" : "")
    }
  }

  /// An answer as it came: the rows, and the final line.
  package struct Answer: Equatable, Sendable {
    /// The rows in order.
    package var rows: [ReplyLine.Content] = []
    /// The final line: `ok` or `error`.
    package let final: ReplyLine

    /// Puts an answer together.
    package init(rows: [ReplyLine.Content] = [], final: ReplyLine) {
      self.rows = rows
      self.final = final
    }
  }

  private let socket: Descriptor
  private var reader = LineReader()
  /// Events that came before an answer, oldest first.
  private var events: [ReceivedEvent] = []
  /// How many may come before an answer. A daemon keeps 1 MiB for a subscriber, and has none behind the request to wait for
  /// (protocol, section 7).
  private static let mostEvents = 65_536

  /// Connects, waiting where others wait to be let in as well.
  package init(to daemon: DaemonSocket) throws(Failure) { socket = try daemon.connect() }

  /// Connects, waiting where others wait to be let in as well, but for no longer than the patience lasts. The connection
  /// is one for ``exchange(_:_:)``.
  init(to daemon: DaemonSocket, _ patience: Patience) throws(Failure) {
    var pause = ReconnectPause()
    var generator = SystemRandomNumberGenerator()
    while true {
      if let connected = try daemon.connectAtOnce() {
        socket = connected
        return
      }
      try patience.pause(until: Clock.monotonicMicroseconds + pause.take(using: &generator))
    }
  }

  /// Connects without any wait, for those who have no time for one.
  package init(atOnce daemon: DaemonSocket) throws(Failure) {
    guard let connected = try daemon.connectAtOnce() else { throw .busy("too many wait to be let in") }
    socket = connected
  }

  /// Sends one request line, its end not among the bytes, and waits for the whole answer.
  package mutating func ask(_ request: [UInt8], _ patience: Patience = .endless) throws(Failure) -> Answer {
    try ask(line: request + [UInt8(ascii: "\n")], patience)
  }

  /// Sends one request line, its end among the bytes, and waits for the whole answer.
  ///
  /// No copy of the line is kept or made, so that whoever has it can wipe it.
  package mutating func ask(line: [UInt8], _ patience: Patience = .endless) throws(Failure) -> Answer {
    send(line)
    var rows: [ReplyLine.Content] = []
    while true {
      switch try nextOfAnswer(patience) {
      case .row(let content): rows.append(content)
      case let final: return Answer(rows: rows, final: final)
      }
    }
  }

  /// Sends one request line, its end among the bytes, and hands on the rows of a long answer as they come.
  ///
  /// - Parameter take: gets each row. Where it throws, the rest of the answer is still to come, and the connection is of no
  ///   further use.
  /// - Returns: the final line.
  package mutating func ask(
    line: [UInt8], _ patience: Patience = .endless, _ take: (ReplyLine.Content) throws -> Void
  ) throws -> ReplyLine {
    send(line)
    while true {
      switch try nextOfAnswer(patience) {
      case .row(let content): try take(content)
      case let final: return final
      }
    }
  }

  /// Sends one request and waits for the whole answer, whose secret is in no other place.
  mutating func exchange(_ request: RequestLine, _ patience: Patience) throws(Failure) -> ReceivedAnswer {
    try send(request, patience)
    var answers = AnswerQueue()
    answers.expect(0, takesSecret: request.takesSecret)
    while true {
      var line = try nextBytes(patience)
      switch try answers.take(&line) {
      case .part, .farewell: continue
      case .event(let event): try putBy(event)
      case .answer(_, let answer): return answer
      }
    }
  }

  /// Whether it stands and nothing has come, as it should be between two requests.
  var isIdle: Bool { (try? TimedWait.wait(for: socket.number, until: 0)) == .timeUp }

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
      // Where the daemon has refused already and closed, its reason is there to be read all the same.
    }
  }

  private func send(_ line: [UInt8]) {
    // Where the daemon has refused already and closed, its reason is there to be read all the same.
    try? socket.sendAll(line)
  }

  /// The next line of an answer; events that come before it are put by.
  private mutating func nextOfAnswer(_ patience: Patience) throws(Failure) -> ReplyLine {
    while true {
      let line = try nextLine(patience)
      guard case .event(let sequence, let content) = line else { return line }
      try putBy(ReceivedEvent(sequence: sequence, content: content))
    }
  }

  private mutating func putBy(_ event: ReceivedEvent) throws(Failure) {
    guard events.count < Self.mostEvents else {
      throw .malformed("\(Self.mostEvents) events in the place of an answer")
    }
    events.append(event)
  }

  /// The events that came before the answers so far, oldest first. Each is handed out once.
  package mutating func takeEvents() -> [ReceivedEvent] {
    defer { events = [] }
    return events
  }

  /// Waits for the next event.
  package mutating func nextEvent(_ patience: Patience) throws(Failure) -> ReceivedEvent {
    if !events.isEmpty { return events.removeFirst() }
    switch try nextLine(patience) {
    case .event(let sequence, let content): return ReceivedEvent(sequence: sequence, content: content)
    // Nothing was asked, so this is why the connection ends.
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

extension DaemonConnection {
  /// Writes words as a request: an argument `name=value` whose name the verb knows is an attribute, anything else an
  /// operand, quoted where a bare word would not be read as one.
  ///
  /// For a verb that this client does not know, whatever looks like an attribute is one.
  package static func request(_ words: [String]) -> [UInt8] {
    let texts = words.map { Text($0) }
    let verb = (1...2).reversed().lazy.compactMap { count in
      VerbTable.verbs.first { verb in
        verb.words.utf8.elementsEqual(words.prefix(count).joined(separator: " ").lowercased().utf8)
      }
    }.first
    var line: [UInt8] = []
    for text in texts {
      if !line.isEmpty { line.append(UInt8(ascii: " ")) }
      if let (name, value) = attribute(text, of: verb) {
        line += name + [UInt8(ascii: "=")]
        WordEncoder.append(value: value, to: &line)
      } else {
        WordEncoder.append(word: text.bytes, to: &line)
      }
    }
    return line
  }

  private static func attribute(_ text: Text, of verb: Verb?) -> (name: [UInt8], value: [UInt8])? {
    guard let mark = text.bytes.firstIndex(of: UInt8(ascii: "=")), WordEncoder.looksLikeAttribute(text.bytes) else {
      return nil
    }
    let name = Array(text.bytes[..<mark])
    // A verb with a free operand and no such attribute means the operand: `check a=b`.
    if let verb, !verb.operands.isEmpty, !verb.attributes.contains(where: { $0.name.utf8.elementsEqual(name) }) {
      return nil
    }
    return (name, Array(text.bytes[(mark + 1)...]))
  }
}
