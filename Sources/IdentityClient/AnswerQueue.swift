import IdentityCore
package import IdentityWire
import LinuxSystem

/// A complete answer.
package struct ReceivedAnswer: Sendable {
  /// The rows, in order.
  package fileprivate(set) var rows: [ReplyLine.Content] = []
  /// The secrets that were extracted from `data=` of the rows, nil for a row without; empty if the request expects none.
  package fileprivate(set) var rowSecrets: [Secret?] = []
  /// The final line: `ok` or `error`.
  package let final: ReplyLine
  /// The secret that was extracted from `data=` of the final line; nil if the request expects none.
  package let secret: Secret?

  /// Whether the daemon is about to close the connection, because it has no room for it (identityd-protocol(7), Errors,
  /// `busy`). Later requests need another connection.
  var isLast: Bool { final.busyText != nil }
}

extension ReplyLine {
  /// The reason why the daemon has no room; nil for any line but the error `busy`.
  fileprivate var busyText: String? { if case .error(code: "busy", let text) = self { "\(text)" } else { nil } }
}

/// The unanswered requests of one connection, and the received part of the first answer.
///
/// Answers arrive in the order of the requests and do not name their request. So a request keeps its place even if its
/// caller does not wait any more.
struct AnswerQueue {
  /// The meaning of a received line.
  enum LineMeaning {
    /// A row. More of the answer follows.
    case part
    /// The final line, which completes the answer to the request with this ticket.
    case answer(UInt64, ReceivedAnswer)
    /// An event.
    case event(ReceivedEvent)
    /// A final line without a request: the reason why the daemon closes the connection.
    case farewell
  }

  /// The tickets of the unanswered requests in order, and whether their answers carry a secret.
  private var expected = FirstInFirstOut<(ticket: UInt64, takesSecret: Bool)>()
  private var rows: [ReplyLine.Content] = []
  private var rowSecrets: [Secret?] = []
  /// The number of complete answers.
  private(set) var answered = 0
  /// The reason why the daemon had no room, if `busy` was its last final line.
  private(set) var busyText: String?

  /// The number of unanswered requests.
  var count: Int { expected.count }

  /// Records that a request was sent.
  mutating func expect(_ ticket: UInt64, takesSecret: Bool) { expected.append((ticket, takesSecret)) }

  /// Reads a line, given without its line feed, and wipes it.
  ///
  /// - Throws: `malformed`; the connection must then be closed.
  mutating func consume(_ line: inout [UInt8]) throws(DaemonConnection.Failure) -> LineMeaning {
    defer { line.wipe() }
    let takesSecret = expected.first?.takesSecret == true
    let secret = takesSecret ? SecretField.take(from: &line) : nil
    guard let parsed = ReplyLine(line) else {
      // The line becomes part of an error, which may be logged.
      throw .malformed(takesSecret ? "(a line that may hold a secret)" : String(decoding: line, as: UTF8.self))
    }
    switch parsed {
    case .event(let sequence, let content): return .event(ReceivedEvent(sequence: sequence, content: content))
    case .row(let content):
      guard expected.count > 0 else { throw .malformed(String(decoding: line, as: UTF8.self)) }
      rows.append(content)
      if takesSecret { rowSecrets.append(secret) }
      return .part
    case .ok, .error:
      busyText = parsed.busyText
      guard let first = expected.popFirst() else { return .farewell }
      answered += 1
      defer { (rows, rowSecrets) = ([], []) }
      let answer = ReceivedAnswer(rows: rows, rowSecrets: rowSecrets, final: parsed, secret: secret)
      return .answer(first.ticket, answer)
    }
  }

  /// Ends the connection.
  ///
  /// - Returns: The tickets of the unanswered requests, in order.
  mutating func end() -> [UInt64] {
    var left: [UInt64] = []
    while let next = expected.popFirst() { left.append(next.ticket) }
    (rows, rowSecrets) = ([], [])
    return left
  }
}

/// Removes the secret from an answer before any other code reads the line, so that only one copy of the secret exists.
enum SecretField {
  /// Decodes the value of `data=`, and overwrites it in the line with meaningless letters.
  ///
  /// - Returns: The secret; nil if the line has no `data=` or the value is not Base64.
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
