import IdentityCore
import IdentityWire

/// The decoder for one line of an answer and its rows. Each accessor throws `brokenAnswer` for a missing or
/// invalid part.
struct AnswerFields {
  let rows: [ReplyLine.Content]
  /// The secrets of the rows, nil for a row without; empty if the request expects none.
  private let rowSecrets: [Secret?]
  let content: ReplyLine.Content
  let secret: Secret?

  init(
    rows: [ReplyLine.Content] = [], rowSecrets: [Secret?] = [], _ content: ReplyLine.Content, secret: Secret? = nil
  ) {
    self.rows = rows
    self.rowSecrets = rowSecrets
    self.content = content
    self.secret = secret
  }

  /// Whether the line has no positional word.
  var isEmpty: Bool { content.words.isEmpty }

  /// Decodes each row.
  func map<Row>(_ read: (AnswerFields) throws(IdentityError) -> Row) throws(IdentityError) -> [Row] {
    var all: [Row] = []
    for (index, row) in rows.enumerated() {
      all.append(try read(AnswerFields(row, secret: index < rowSecrets.count ? rowSecrets[index] : nil)))
    }
    return all
  }

  /// Returns a positional word.
  func word(_ index: Int) throws(IdentityError) -> String {
    guard index < content.words.count else { throw .brokenAnswer("word \(index + 1) is missing") }
    return content.words[index].description
  }

  /// Returns an optional attribute.
  func text(_ name: String) -> String? { content[Text(name)]?.description }

  /// Returns a required attribute.
  func required(_ name: String) throws(IdentityError) -> String {
    guard let text = text(name) else { throw .brokenAnswer("\(name)= is missing") }
    return text
  }

  /// Returns the secret of the line.
  func requiredSecret() throws(IdentityError) -> Secret {
    guard let secret else { throw .brokenAnswer("data= is missing, or not Base64") }
    return secret
  }

  /// Returns a positional word as a UUID.
  func uuid(_ index: Int) throws(IdentityError) -> IdentityUUID {
    guard let uuid = IdentityUUID(try word(index)) else { throw .brokenAnswer("word \(index + 1) is not a UUID") }
    return uuid
  }

  /// Returns an attribute as a UUID; nil if the attribute is missing or empty.
  func uuid(_ name: String) throws(IdentityError) -> IdentityUUID? {
    guard let text = text(name), !text.isEmpty else { return nil }
    guard let uuid = IdentityUUID(text) else { throw .brokenAnswer("\(name)= is not a UUID") }
    return uuid
  }

  /// Returns a required attribute as a UUID.
  func requiredUUID(_ name: String) throws(IdentityError) -> IdentityUUID {
    guard let uuid = try uuid(name) else { throw .brokenAnswer("\(name)= is missing") }
    return uuid
  }

  /// Returns an optional attribute as a time.
  func time(_ name: String) throws(IdentityError) -> IdentityTime? {
    guard let text = text(name) else { return nil }
    guard let time = IdentityTime(text) else { throw .brokenAnswer("\(name)= is not a time") }
    return time
  }

  /// Returns a required attribute as a time.
  func requiredTime(_ name: String) throws(IdentityError) -> IdentityTime {
    guard let time = try time(name) else { throw .brokenAnswer("\(name)= is missing") }
    return time
  }

  /// Returns a required attribute, `yes` or `no`, as a Boolean.
  func flag(_ name: String) throws(IdentityError) -> Bool {
    switch try required(name) {
    case "yes": return true
    case "no": return false
    default: throw .brokenAnswer("\(name)= is neither yes nor no")
    }
  }

  /// Returns a required attribute as a number.
  func number<Number: FixedWidthInteger>(_ name: String) throws(IdentityError) -> Number {
    guard let number = Number(try required(name)) else { throw .brokenAnswer("\(name)= is not a number") }
    return number
  }

  /// Returns the value that `choices` has for the first word.
  func choice<Choice>(_ choices: [String: Choice]) throws(IdentityError) -> Choice {
    guard let choice = choices[try word(0)] else {
      throw .brokenAnswer("word 1 is none of \(choices.keys.sorted().joined(separator: ", "))")
    }
    return choice
  }

  /// The values of all attributes by name.
  var values: [String: String] { content.attributes.byName }

  /// Returns the attributes whose names begin with a prefix, by their names without the prefix.
  func attributes(behind prefix: String) -> [String: String] {
    var own: [String: String] = [:]
    for (name, value) in values where name.hasPrefix(prefix) {
      own[String(name.dropFirst(prefix.count))] = value
    }
    return own
  }
}
