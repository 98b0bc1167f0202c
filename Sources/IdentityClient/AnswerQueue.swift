import IdentityCore
import IdentityWire
import LinuxSystem

/// An answer that came whole.
struct ReceivedAnswer: Sendable {
  /// The rows in order.
  var rows: [ReplyLine.Content] = []
  /// The final line: `ok` or `error`.
  let final: ReplyLine
  /// What stood in `data=` of the final line, where it was to be taken out of it.
  let secret: Secret?

  /// Whether the daemon is about to close the connection, for which it has no room (identityd-protocol(7), `busy`):
  /// what is asked from now on has to be asked over another.
  var isLast: Bool { final.busyText != nil }
}

extension ReplyLine {
  /// Why the daemon has no room; nil where it says something else.
  fileprivate var busyText: String? { if case .error(code: "busy", let text) = self { "\(text)" } else { nil } }
}

/// Which requests are still to be answered on one connection, and as much of the first one's answer as has come.
///
/// Answers come in the order of the requests, and nothing in them says whose they are: so a request keeps its place even
/// when nobody waits for its answer any more.
struct AnswerQueue {
  /// What a line is.
  enum Taken {
    /// More of an answer is to come.
    case part
    /// The end of the answer to this request.
    case answer(UInt64, ReceivedAnswer)
    /// Something happened.
    case event(ReceivedEvent)
    /// It answers nothing: it says why the connection ends.
    case farewell
  }

  /// Whose answers are to come, in order, with whether they hold a secret.
  private var expected = FirstInFirstOut<(ticket: UInt64, takesSecret: Bool)>()
  private var rows: [ReplyLine.Content] = []
  /// How many answers have come.
  private(set) var answered = 0
  /// Why the daemon had no room, where that is the last thing it said.
  private(set) var busyText: String?

  /// How many answers are to come.
  var count: Int { expected.count }

  /// A request was sent.
  mutating func expect(_ ticket: UInt64, takesSecret: Bool) { expected.append((ticket, takesSecret)) }

  /// Takes a line without its end, and wipes it.
  ///
  /// - Throws: `malformed`; the connection is then of no further use.
  mutating func take(_ line: inout [UInt8]) throws(DaemonConnection.Failure) -> Taken {
    defer { line.wipe() }
    let takesSecret = expected.first?.takesSecret == true
    let secret = takesSecret ? SecretField.take(from: &line) : nil
    guard let parsed = ReplyLine(line) else {
      // What is told of it goes into an error, and from there into logs.
      throw .malformed(takesSecret ? "(a line that may hold a secret)" : String(decoding: line, as: UTF8.self))
    }
    switch parsed {
    case .event(let sequence, let content): return .event(ReceivedEvent(sequence: sequence, content: content))
    case .row(let content):
      guard expected.count > 0 else { throw .malformed(String(decoding: line, as: UTF8.self)) }
      rows.append(content)
      return .part
    case .ok, .error:
      busyText = parsed.busyText
      guard let first = expected.popFirst() else { return .farewell }
      answered += 1
      defer { rows = [] }
      return .answer(first.ticket, ReceivedAnswer(rows: rows, final: parsed, secret: secret))
    }
  }

  /// The connection has ended: these will not be answered, in the order of their requests.
  mutating func end() -> [UInt64] {
    var left: [UInt64] = []
    while let next = expected.popFirst() { left.append(next.ticket) }
    rows = []
    return left
  }
}

/// Takes the secret out of an answer before anything else reads it, so that there is one copy of it.
enum SecretField {
  /// Takes the value of `data=` out of a line; what stands there then are letters that mean nothing.
  ///
  /// - Returns: nil where there is none, or it is not Base64.
  static func take(from line: inout [UInt8]) -> Secret? {
    var parser = WordParser()
    guard (try? parser.parse(line.span)) != nil else { return nil }
    let name = Array("data".utf8)
    guard
      let field = parser.words.first(where: { word in
        word.isAttribute && line[word.name].elementsEqual(name) && !word.isEscaped
      })
    else { return nil }
    defer { for index in field.value { line[index] = UInt8(ascii: "A") } }
    guard var bytes = Base64Text.decode(line.span.extracting(field.value)) else { return nil }
    defer { bytes.wipe() }
    return Secret(bytes.span)
  }
}
