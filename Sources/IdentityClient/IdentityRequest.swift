import IdentityCore
import IdentityWire

/// A request to the daemon, and how its answer is read.
///
/// A request is a value. ``IdentityClient`` and ``BlockingIdentityClient`` both take it, any number of times:
///
/// ```swift
/// let device = try await client.ask(.identifier(.device))
/// ```
public struct IdentityRequest<Answer: Sendable>: Sendable {
  /// What is sent.
  let line: RequestLine
  private let whenNotFound: Answer?
  private let read: @Sendable (AnswerFields) throws(IdentityError) -> Answer

  /// - Parameters:
  ///   - whenNotFound: the answer where nothing matches; nil where that is an error.
  ///   - read: makes the answer of what came.
  init(
    _ line: RequestLine, whenNotFound: Answer? = nil,
    _ read: @escaping @Sendable (AnswerFields) throws(IdentityError) -> Answer
  ) {
    self.line = line
    self.whenNotFound = whenNotFound
    self.read = read
  }

  /// Reads what came.
  func answer(_ received: ReceivedAnswer) throws(IdentityError) -> Answer {
    switch received.final {
    case .ok(let content): return try read(AnswerFields(rows: received.rows, content, secret: received.secret))
    case .error(code: "not-found", let text):
      guard let whenNotFound else { throw IdentityError(code: "not-found", text: text) }
      return whenNotFound
    case .error(let code, let text): throw IdentityError(code: code, text: text)
    case .row, .event: throw .brokenAnswer("there is no final line")
    }
  }
}

extension IdentityRequest where Answer == IdentityAnswer {
  /// Words of the protocol as they are (identityd-protocol(7)), for what this library has no request of its own for:
  /// `.words("item", "find", "group=*")`.
  ///
  /// A word `name=value` whose name the verb knows is an attribute, any other word an operand; quotes are put where they
  /// are needed. The words are not wiped from memory, so a secret has no place among them. `subscribe`, `unsubscribe` and
  /// `quit` are refused with ``IdentityError/Code/badArgument``: the connection is not this caller's alone.
  public static func words(_ words: String...) -> IdentityRequest { .words(words) }

  /// The same, of an array.
  public static func words(_ words: [String]) -> IdentityRequest {
    IdentityRequest(RequestLine(words: words)) { (fields) throws(IdentityError) in
      IdentityAnswer(rows: fields.rows.map { IdentityAnswer.Line($0) }, final: IdentityAnswer.Line(fields.content))
    }
  }
}

/// The answer to ``IdentityRequest/words(_:)-(String...)``, as it came.
public struct IdentityAnswer: Equatable, Sendable {
  /// A row, or the final line.
  public struct Line: Equatable, Sendable {
    /// The positional words.
    public let words: [String]
    /// The attributes by their names, which are in lower case.
    public let attributes: [String: String]

    /// The value of an attribute; nil where it is not there.
    public subscript(_ name: String) -> String? { attributes[name] }

    init(_ content: ReplyLine.Content) {
      words = content.words.map(\.description)
      attributes = content.attributes.byName
    }
  }

  /// The rows, in order.
  public let rows: [Line]
  /// What stood behind `OK`.
  public let final: Line
}

extension [ReplyLine.Attribute] {
  /// The values by their names.
  var byName: [String: String] {
    Dictionary(map { ($0.name.description, $0.value.description) }, uniquingKeysWith: { $1 })
  }
}
