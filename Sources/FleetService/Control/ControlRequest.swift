import IdentityClient
import IdentityCore
import IdentityWire

/// A request of an admin to the service, in the line protocol of identityd.
enum ControlRequest {
  /// Makes an account, and this device its first member.
  case create(Text)
  /// Takes this device out of its account.
  case leave
  /// Makes an invitation.
  case invite
  /// Replaces the key of the account, and removes devices.
  case rotate(without: [UUID])
  /// Joins an account by an invitation.
  case join([UInt8])
  /// Shows the state of the service.
  case status
  /// Shows the user and the password of the account at a broker.
  case credentials

  /// Reads a line without its line feed.
  init(parsing line: [UInt8]) throws(Refusal) {
    var parser = WordParser()
    let span = line.span
    do throws(SyntaxFault) {
      try parser.parse(span)
    } catch {
      throw .syntax(error)
    }
    var words: [Text] = []
    var attributes: [Text: Text] = [:]
    for word in parser.words {
      if word.isAttribute {
        attributes[parser.name(word, in: span)] = parser.text(word, in: span)
      } else {
        words.append(parser.text(word, in: span))
      }
    }
    let verb = words.prefix(2).map { "\($0)".lowercased() }.joined(separator: " ")
    let operands = words.dropFirst(2)
    func refuse(_ fault: ArgumentFault) -> Refusal { .badArgument(verb: verb, fault) }
    func check(operands count: Int, _ names: Text...) throws(Refusal) {
      if let surplus = operands.dropFirst(count).first { throw refuse(.unexpectedOperand(surplus)) }
      if let unknown = attributes.keys.first(where: { !names.contains($0) }) {
        throw refuse(.unknownAttribute(unknown))
      }
    }
    switch verb {
    case "account create":
      try check(operands: 1)
      guard let name = operands.first else { throw refuse(.missingOperand("NAME")) }
      guard (1...Bound.nameLength).contains(name.bytes.count) else {
        throw refuse(.notAllowed(name: "NAME", value: name, allowed: "1 to \(Bound.nameLength) bytes"))
      }
      self = .create(name)
    case "account join":
      try check(operands: 0, "data")
      guard let data = attributes["data"] else { throw refuse(.missingAttribute("data")) }
      guard let bytes = Base64Text.decode(data.bytes.span) else { throw refuse(.notBase64(name: "data")) }
      self = .join(bytes)
    case "account rotate":
      try check(operands: 0, "without")
      self = .rotate(
        without: try (attributes["without"].map { "\($0)" } ?? "").split(separator: ",").map { (word) throws(Refusal) in
          guard let device = UUID(Text(String(word))) else {
            throw refuse(
              .notAllowed(name: "without", value: Text(String(word)), allowed: "UUIDs with commas between them"))
          }
          return device
        })
    case "account leave", "account invite", "fleet status", "fleet credentials":
      try check(operands: 0)
      self =
        switch verb {
        case "account leave": .leave
        case "account invite": .invite
        case "fleet status": .status
        default: .credentials
        }
    default: throw .unknownVerb(Text(verb))
    }
  }
}
