import IdentityCore
import IdentityWire
import LinuxSystem

/// A request line to send. Only ``bytes()`` inserts the bytes of the secret, just before sending.
struct RequestLine: Sendable {
  /// The line without its line feed and without the secret.
  private(set) var head: [UInt8]
  /// The secret to send in `data=`.
  private var secret: Secret?
  /// Whether the answer carries a secret in `data=`.
  private(set) var takesSecret = false
  /// Whether repeating the request is harmless, so that it is sent once more if the connection ends before its answer.
  private(set) var isQuestion: Bool
  /// The reason why the line cannot be sent; nil if it can.
  private(set) var fault: IdentityError?

  /// Starts a request that is harmless to repeat.
  static func question(_ verb: String) -> RequestLine { RequestLine(Array(verb.utf8), isQuestion: true) }

  /// Starts a request that may make a change.
  static func change(_ verb: String) -> RequestLine { RequestLine(Array(verb.utf8), isQuestion: false) }

  private init(_ head: [UInt8], isQuestion: Bool) {
    self.head = head
    self.isQuestion = isQuestion
  }

  /// Creates a request from words of the caller's choice.
  init(words: [String]) {
    self.init(DaemonConnection.request(words), isQuestion: false)
    let verb = words.first?.lowercased() ?? ""
    if verb.isEmpty { fault = .refused(.syntax, "there is no verb") }
    if ["subscribe", "unsubscribe"].contains(verb) {
      fault = .refused(.badArgument, "'\(verb)' is not for a connection that others share; events(topics:since:) is")
    }
    if verb == "quit" { fault = .refused(.badArgument, "'quit' would end the connection of others as well") }
  }

  /// Returns the line with one more operand.
  func operand(_ value: String) -> RequestLine {
    changed { WordEncoder.append(word: Array(value.utf8), to: &$0.head) }
  }

  /// Returns the line with one more attribute, or unchanged if `value` is nil.
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

  /// Returns the line with the attribute `name=yes` if `isSet` is true.
  func flag(_ name: String, _ isSet: Bool) -> RequestLine { attribute(name, isSet ? "yes" : nil) }

  /// Returns the line with the app's own attributes as `attr.NAME=`, in the order of their names.
  func attributes(_ values: [String: String]) -> RequestLine {
    values.sorted { $0.key < $1.key }.reduce(self) { $0.attribute("attr.\($1.key)", $1.value) }
  }

  /// Returns the line with a secret to send in `data=`; nil for none.
  func secret(_ secret: Secret?) -> RequestLine {
    var line = self
    line.secret = secret
    return line
  }

  /// Returns the line, marked as one whose answer carries a secret in `data=`.
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

  /// The length of the line in bytes, including its line feed.
  private var length: Int {
    head.count + 1 + (secret.map { Self.data.count + max(2, Base64Text.length(of: $0.count)) } ?? 0)
  }

  /// Checks that the line can be sent. The daemon closes the connection after an overlong line, and callers share it.
  ///
  /// - Throws: `refused` with the code `too-long`, `bad-argument` or `syntax`.
  func check() throws(IdentityError) {
    if let fault { throw fault }
    guard length <= Bound.lineLength else {
      throw .refused(.tooLong, "a request is at most \(Bound.lineLength) bytes long, its end included")
    }
  }

  /// Returns the line with its line feed. The caller must wipe the bytes.
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
