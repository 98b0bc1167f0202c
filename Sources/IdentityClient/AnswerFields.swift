import IdentityCore
import IdentityWire

/// The parts of an answer, each read as what it has to be.
struct AnswerFields {
  let rows: [ReplyLine.Content]
  let content: ReplyLine.Content
  let secret: Secret?

  init(rows: [ReplyLine.Content] = [], _ content: ReplyLine.Content, secret: Secret? = nil) {
    self.rows = rows
    self.content = content
    self.secret = secret
  }

  /// Whether there is no positional word.
  var isEmpty: Bool { content.words.isEmpty }

  /// Reads each row.
  func map<Row>(_ read: (AnswerFields) throws(IdentityError) -> Row) throws(IdentityError) -> [Row] {
    var all: [Row] = []
    for row in rows { all.append(try read(AnswerFields(row))) }
    return all
  }

  /// A positional word.
  func word(_ place: Int) throws(IdentityError) -> String {
    guard place < content.words.count else { throw .brokenAnswer("word \(place + 1) is missing") }
    return content.words[place].description
  }

  /// An attribute that may be missing.
  func text(_ name: String) -> String? { content[Text(name)]?.description }

  /// An attribute that may not.
  func required(_ name: String) throws(IdentityError) -> String {
    guard let text = text(name) else { throw .brokenAnswer("\(name)= is missing") }
    return text
  }

  /// A word that is a UUID.
  func uuid(_ place: Int) throws(IdentityError) -> IdentityUUID {
    guard let uuid = IdentityUUID(try word(place)) else { throw .brokenAnswer("word \(place + 1) is not a UUID") }
    return uuid
  }

  /// A UUID; nil for an attribute that is missing or empty.
  func uuid(_ name: String) throws(IdentityError) -> IdentityUUID? {
    guard let text = text(name), !text.isEmpty else { return nil }
    guard let uuid = IdentityUUID(text) else { throw .brokenAnswer("\(name)= is not a UUID") }
    return uuid
  }

  /// An attribute that is a UUID.
  func requiredUUID(_ name: String) throws(IdentityError) -> IdentityUUID {
    guard let uuid = try uuid(name) else { throw .brokenAnswer("\(name)= is missing") }
    return uuid
  }

  /// A moment that may be missing.
  func time(_ name: String) throws(IdentityError) -> IdentityTime? {
    guard let text = text(name) else { return nil }
    guard let time = IdentityTime(text) else { throw .brokenAnswer("\(name)= is not a time") }
    return time
  }

  /// A moment that may not.
  func requiredTime(_ name: String) throws(IdentityError) -> IdentityTime {
    guard let time = try time(name) else { throw .brokenAnswer("\(name)= is missing") }
    return time
  }

  /// `yes` or `no`.
  func flag(_ name: String) throws(IdentityError) -> Bool {
    switch try required(name) {
    case "yes": return true
    case "no": return false
    default: throw .brokenAnswer("\(name)= is neither yes nor no")
    }
  }

  /// A number.
  func number<Number: FixedWidthInteger>(_ name: String) throws(IdentityError) -> Number {
    guard let number = Number(try required(name)) else { throw .brokenAnswer("\(name)= is not a number") }
    return number
  }

  /// The first word, one of a few.
  func choice<Choice>(_ choices: [String: Choice]) throws(IdentityError) -> Choice {
    guard let choice = choices[try word(0)] else {
      throw .brokenAnswer("word 1 is none of \(choices.keys.sorted().joined(separator: ", "))")
    }
    return choice
  }

  /// All attributes, by their names.
  var values: [String: String] { content.attributes.byName }

  /// Attributes of the caller's own, without what their names begin with.
  func attributes(behind prefix: String) -> [String: String] {
    var own: [String: String] = [:]
    for (name, value) in values where name.hasPrefix(prefix) {
      own[String(name.dropFirst(prefix.count))] = value
    }
    return own
  }
}
