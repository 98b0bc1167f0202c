import IdentityCore
import IdentityWire

/// A request to the daemon, together with the decoding of its answer.
///
/// A request is a value. ``IdentityClient`` and ``BlockingIdentityClient`` both accept it, any number of times:
///
/// ```swift
/// let device = try await client.ask(.identifier(.device))
/// ```
public struct IdentityRequest<Answer: Sendable>: Sendable {
  /// The line to send.
  let line: RequestLine
  private let whenNotFound: Answer?
  private let read: @Sendable (AnswerFields) throws(IdentityError) -> Answer

  /// Combines a line with the decoding of its answer.
  ///
  /// - Parameters:
  ///   - whenNotFound: The answer that replaces the error `not-found`; nil to throw that error.
  ///   - read: Decodes the rows and the final line.
  init(
    _ line: RequestLine, whenNotFound: Answer? = nil,
    _ read: @escaping @Sendable (AnswerFields) throws(IdentityError) -> Answer
  ) {
    self.line = line
    self.whenNotFound = whenNotFound
    self.read = read
  }

  /// Decodes a received answer.
  ///
  /// - Throws: `refused` if the daemon refused the request, `brokenAnswer` if the answer cannot be decoded.
  func answer(_ received: ReceivedAnswer) throws(IdentityError) -> Answer {
    switch received.final {
    case .ok(let content):
      return try read(
        AnswerFields(
          rows: received.rows, rowSecrets: received.rowSecrets, content, secret: received.secret))
    case .error(code: "not-found", let text):
      guard let whenNotFound else { throw IdentityError(code: "not-found", text: text) }
      return whenNotFound
    case .error(let code, let text): throw IdentityError(code: code, text: text)
    case .row, .event: throw .brokenAnswer("the final line is missing")
    }
  }
}

extension IdentityRequest where Answer == IdentityAnswer {
  /// Sends the words of any request of identityd-protocol(7), such as `.words("item", "find", "group=*")`.
  ///
  /// The purpose is to send requests that have no member of their own in this library. A word `name=value` is sent as
  /// an attribute, unless the verb takes operands and has no attribute of that name. Any other word is sent as an
  /// operand. The client quotes words if needed. The words are not wiped from memory, so none of them may be a secret.
  /// The client does not repeat the request if the connection ends before the answer.
  ///
  /// `subscribe`, `unsubscribe` and `quit` fail with ``IdentityError/Code/badArgument``, because callers of a client
  /// share its connection. A request without a verb fails with ``IdentityError/Code/syntax``.
  public static func words(_ words: String...) -> IdentityRequest { .words(words) }

  /// Sends the words of any request of identityd-protocol(7), given as an array.
  ///
  /// The rules are those of ``IdentityRequest/words(_:)-(String...)``.
  public static func words(_ words: [String]) -> IdentityRequest {
    IdentityRequest(.shared(words: words)) { (fields) throws(IdentityError) in
      IdentityAnswer(rows: fields.rows.map { IdentityAnswer.Line($0) }, final: IdentityAnswer.Line(fields.content))
    }
  }
}

/// The answer to ``IdentityRequest/words(_:)-(String...)``, split into words and attributes.
public struct IdentityAnswer: Equatable, Sendable {
  /// A row or the final line of an answer.
  public struct Line: Equatable, Sendable {
    /// The positional words, in order.
    public let words: [String]
    /// The values of the attributes by name. Names are in lower case.
    public let attributes: [String: String]

    /// The value of an attribute; nil if the attribute is missing.
    public subscript(_ name: String) -> String? { attributes[name] }

    init(_ content: ReplyLine.Content) {
      words = content.words.map(\.description)
      attributes = content.attributes.byName
    }
  }

  /// The rows, in order.
  public let rows: [Line]
  /// The final line, without its `OK`.
  public let final: Line
}

extension [ReplyLine.Attribute] {
  /// The values by name; the last value wins if a name occurs twice.
  var byName: [String: String] {
    Dictionary(map { ($0.name.description, $0.value.description) }, uniquingKeysWith: { $1 })
  }
}
