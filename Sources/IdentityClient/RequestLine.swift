import IdentityCore
import IdentityWire
import LinuxSystem

/// A request line to send. Only ``bytes()`` inserts the bytes of the secret, just before sending.
package struct RequestLine: Sendable {
  /// The line without its line feed and without the secret.
  package private(set) var head: [UInt8]
  /// The secret to send, with the name of its attribute.
  private var secret: (name: String, value: Secret)?
  /// Whether the answer carries secrets in `data=`.
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

  /// Creates a request from words of the caller's choice, for a connection that callers share.
  static func shared(words: [String]) -> RequestLine {
    var line = RequestLine(words: words)
    let verb = words.first?.lowercased() ?? ""
    if verb.isEmpty { line.fault = .refused(.syntax, "the request has no verb") }
    if ["subscribe", "unsubscribe"].contains(verb) {
      line.fault = .refused(
        .badArgument, "'\(verb)' cannot be sent on a shared connection; use events(topics:since:)")
    }
    if verb == "quit" { line.fault = .refused(.badArgument, "'quit' cannot be sent on a shared connection") }
    return line
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

  /// Returns the line with the app's own attributes, such as `attr.NAME=`, in the order of their names.
  ///
  /// - Parameter prefix: the beginning of the names.
  func attributes(_ values: [String: String], behind prefix: String = "attr.") -> RequestLine {
    values.sorted { $0.key < $1.key }.reduce(self) { $0.attribute("\(prefix)\($1.key)", $1.value) }
  }

  /// Returns the line with a secret, which is sent in Base64 as the last attribute; nil for none.
  package func secret(_ secret: Secret?, as name: String = "data") -> RequestLine {
    var line = self
    line.secret = secret.map { (name, $0) }
    return line
  }

  /// Returns the line, marked as one whose answer carries secrets in `data=`.
  package func takingSecret() -> RequestLine {
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
    head.count + 1 + (secret.map { $0.name.utf8.count + 2 + max(2, Base64Text.length(of: $0.value.count)) } ?? 0)
  }

  /// Checks that the line can be sent. The daemon closes the connection after an overlong line, and callers share it.
  ///
  /// - Throws: `refused` with the code `too-long`, `bad-argument` or `syntax`.
  func check() throws(IdentityError) {
    if let fault { throw fault }
    guard length <= Bound.lineLength else {
      throw .refused(.tooLong, "a request has at most \(Bound.lineLength) bytes, including its line feed")
    }
  }

  /// Returns the line with its line feed. The caller must wipe the bytes.
  func bytes() -> [UInt8] {
    var line: [UInt8] = []
    line.reserveCapacity(length)
    line += head
    if let (name, secret) = secret {
      line += Array(" \(name)=".utf8)
      if secret.count == 0 {
        line += Array("\"\"".utf8)
      } else {
        secret.withBytes { Base64Text.append($0, to: &line) }
      }
    }
    line.append(UInt8(ascii: "\n"))
    return line
  }
}

// MARK: - Words

extension RequestLine {
  /// Creates a request from words.
  ///
  /// A word `name=value` becomes an attribute, unless the verb takes operands and has no attribute of that name. With
  /// an unknown verb, every word that looks like an attribute becomes one. Any other word becomes an operand. Words are
  /// quoted if the daemon would otherwise misread them.
  package init(words: [String]) {
    let texts = words.map { Text($0) }
    let verb = VerbTable.verb(named: VerbName(words))
    var line: [UInt8] = []
    for text in texts {
      if !line.isEmpty { line.append(UInt8(ascii: " ")) }
      if let (name, value) = Self.attribute(text, of: verb) {
        line += name + [UInt8(ascii: "=")]
        WordEncoder.append(value: value, to: &line)
      } else {
        WordEncoder.append(word: text.bytes, to: &line)
      }
    }
    self.init(line, isQuestion: false)
  }

  private static func attribute(_ text: Text, of verb: Verb?) -> (name: [UInt8], value: [UInt8])? {
    guard let mark = text.bytes.firstIndex(of: UInt8(ascii: "=")), WordEncoder.looksLikeAttribute(text.bytes) else {
      return nil
    }
    let name = Array(text.bytes[..<mark])
    // In `check a=b`, the verb takes an operand and has no attribute `a`, so the word is the operand.
    if let verb, !verb.operands.isEmpty, !verb.attributes.contains(where: { $0.name.utf8.elementsEqual(name) }) {
      return nil
    }
    return (name, Array(text.bytes[(mark + 1)...]))
  }
}
