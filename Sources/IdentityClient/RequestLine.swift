import IdentityCore
import IdentityWire
import LinuxSystem

/// A request as it is to be sent; the bytes of its secret are put in at the last moment.
struct RequestLine: Sendable {
  /// The line without its end, and without the secret.
  private(set) var head: [UInt8]
  /// What goes into `data=`.
  private var secret: Secret?
  /// Whether the answer has a secret in `data=`.
  private(set) var takesSecret = false
  /// Whether it changes nothing, so that it can be asked once more when the connection breaks before its answer.
  private(set) var isQuestion: Bool
  /// Why it cannot be sent.
  private(set) var fault: IdentityError?

  /// A request that changes nothing.
  static func question(_ verb: String) -> RequestLine { RequestLine(Array(verb.utf8), isQuestion: true) }

  /// A request that may change something.
  static func change(_ verb: String) -> RequestLine { RequestLine(Array(verb.utf8), isQuestion: false) }

  private init(_ head: [UInt8], isQuestion: Bool) {
    self.head = head
    self.isQuestion = isQuestion
  }

  /// A request as somebody else put its words together.
  init(words: [String]) {
    self.init(DaemonConnection.request(words), isQuestion: false)
    let verb = words.first?.lowercased() ?? ""
    if verb.isEmpty { fault = .refused(.syntax, "there is no verb") }
    if ["subscribe", "unsubscribe"].contains(verb) {
      fault = .refused(.badArgument, "'\(verb)' is not for a connection that others share; events(topics:since:) is")
    }
    if verb == "quit" { fault = .refused(.badArgument, "'quit' would end the connection of others as well") }
  }

  /// With one more operand.
  func operand(_ value: String) -> RequestLine {
    changed { WordEncoder.append(word: Array(value.utf8), to: &$0.head) }
  }

  /// With one more attribute, where there is a value.
  func attribute(_ name: String, _ value: String?) -> RequestLine {
    guard let value else { return self }
    return changed { line in
      let word = Array("\(name)=".utf8)
      guard WordEncoder.looksLikeAttribute(word), word.firstIndex(of: UInt8(ascii: "=")) == word.count - 1 else {
        line.fault = .refused(.badArgument, "'\(name)' cannot be the name of an attribute")
        return
      }
      line.head += word
      WordEncoder.append(value: Array(value.utf8), to: &line.head)
    }
  }

  /// With an attribute whose only value is `yes`, where that is so.
  func flag(_ name: String, _ isSet: Bool) -> RequestLine { attribute(name, isSet ? "yes" : nil) }

  /// With attributes of the caller's own, in the order of their names.
  func attributes(_ values: [String: String]) -> RequestLine {
    values.sorted { $0.key < $1.key }.reduce(self) { $0.attribute("attr.\($1.key)", $1.value) }
  }

  /// With a secret in `data=`, where there is one.
  func secret(_ secret: Secret?) -> RequestLine {
    var line = self
    line.secret = secret
    return line
  }

  /// With an answer that has a secret in `data=`.
  func takingSecret() -> RequestLine {
    var line = self
    line.takesSecret = true
    return line
  }

  private func changed(_ change: (inout RequestLine) -> Void) -> RequestLine {
    var line = self
    line.head.append(UInt8(ascii: " "))
    change(&line)
    return line
  }

  /// How long the line is, its end included.
  private var length: Int {
    head.count + 1 + (secret.map { Self.data.count + max(2, Base64Text.length(of: $0.count)) } ?? 0)
  }

  /// Looks whether it can be sent: a line that is too long would end the connection for everybody.
  func check() throws(IdentityError) {
    if let fault { throw fault }
    guard length <= Bound.lineLength else {
      throw .refused(.tooLong, "a request is at most \(Bound.lineLength) bytes long, its end included")
    }
  }

  /// The line with its end. Whoever gets it wipes it.
  func bytes() -> [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(length)
    line += head
    if let secret {
      line += Self.data
      if secret.count == 0 {
        line += Array("\"\"".utf8)
      } else {
        secret.withBytes { Base64Text.append($0, to: &line) }
      }
    }
    line.append(UInt8(ascii: "\n"))
    return line
  }

  private static let data = Array(" data=".utf8)
}
