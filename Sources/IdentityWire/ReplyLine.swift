package import IdentityCore

/// One line of an answer, as a client reads it.
package enum ReplyLine: Equatable, Sendable {
  /// The words of a row or of the final `OK`.
  package struct Content: Equatable, Sendable {
    /// The positional words.
    package var words: [Text] = []
    /// The attributes in the order they came.
    package var attributes: [Attribute] = []

    /// Nothing yet.
    package init() {}

    /// The value of the first attribute of a name.
    package subscript(name: Text) -> Text? { attributes.first { $0.name == name }?.value }
  }

  /// `name=value`.
  package struct Attribute: Equatable, Sendable {
    /// In lower case.
    package let name: Text
    /// Unescaped.
    package let value: Text
  }

  case row(Content)
  case ok(Content)
  case error(code: Text, text: Text)
  /// Something that happened: its number, and topic, name and attributes.
  case event(Int64, Content)

  /// Reads a line without its end; nil when it is not one of the protocol's.
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
