package import IdentityCore

/// A line from the daemon, as a client reads it.
package enum ReplyLine: Equatable, Sendable {
  /// The words of a row, of the final `OK`, or of an event.
  package struct Content: Equatable, Sendable {
    /// The positional words.
    package var words: [Text] = []
    /// The attributes, in the order of the line.
    package var attributes: [Attribute] = []

    package init() {}

    /// The value of the first attribute with a name, or nil if there is none.
    package subscript(name: Text) -> Text? { attributes.first { $0.name == name }?.value }
  }

  /// An attribute, `name=value`.
  package struct Attribute: Equatable, Sendable {
    /// The name, in lower case.
    package let name: Text
    /// The value, with its escapes resolved.
    package let value: Text

    package init(name: Text, value: Text) { (self.name, self.value) = (name, value) }
  }

  case row(Content)
  case ok(Content)
  case error(code: Text, text: Text)
  /// An event: its sequence number, and its topic, name and attributes.
  case event(Int64, Content)

  /// Reads a line without its line end. Nil if the line does not belong to the protocol.
  package init?(_ bytes: [UInt8]) {
    if bytes.starts(with: "ERR ".utf8) {
      let rest = bytes.dropFirst(4)
      let end = rest.firstIndex(of: UInt8(ascii: " ")) ?? rest.endIndex
      guard let code = Text(validating: Array(rest[..<end])),
        let text = Text(validating: Array(rest[end...].dropFirst()))
      else { return nil }
      self = .error(code: code, text: text)
      return
    }
    var parser = WordParser()
    let line = bytes.span
    guard (try? parser.parse(line)) != nil, let head = parser.words.first, !head.isAttribute else { return nil }
    var content = Content()
    for word in parser.words.dropFirst() {
      let value = parser.text(word, in: line)
      if word.isAttribute {
        content.attributes.append(Attribute(name: parser.name(word, in: line), value: value))
      } else {
        content.words.append(value)
      }
    }
    switch parser.text(head, in: line) {
    case "*": self = .row(content)
    case "OK": self = .ok(content)
    case "EVENT":
      guard let sequence = content.words.first.flatMap({ Int64($0.description) }) else { return nil }
      content.words.removeFirst()
      self = .event(sequence, content)
    default: return nil
    }
  }
}
