import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// A request of an admin to the service, in the line protocol of identityd.
enum ControlRequest {
  /// Makes an account, and this device its first member.
  case create(Text)
  /// Takes this device out of its account.
  case leave
  /// Makes an invitation for a file.
  case invite
  /// Invites a newcomer with a code, of which these are the bytes of the topics and the key.
  case inviteWithCode(Secret)
  /// Joins an account with a code.
  case joinWithCode(Secret)
  /// Replaces the key of the account, and removes devices.
  case rotate(without: [UUID])
  /// Joins an account by an invitation.
  case join(Secret)
  /// Shows the state of the service.
  case status
  /// Shows the user and the password of the account at a broker, or those of before the last rotation.
  case credentials(isPrevious: Bool)
  /// Reads the messages at the broker.
  case sync
  /// Asks the other devices whether they are connected.
  case who
  /// Shows the devices that are connected.
  case peers
  /// Starts to read the reports for a site.
  case readReports(ReaderID)
  /// Shows the next reports of a reading.
  case reports(UInt64)
  /// Tries to connect with the configured brokers.
  case tryBrokers
  /// Shows the outcomes of the trial so far.
  case triedBrokers
  /// Shows the public proof keys of the next devices, in the order of their identifiers.
  case proofKeys(after: UUID?)

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
    var attributes: [Text: WordParser.Word] = [:]
    for word in parser.words {
      if word.isAttribute {
        attributes[parser.name(word, in: span)] = word
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
    // From the line itself, so that no other text has the secret.
    func secret(_ name: Text) throws(Refusal) -> Secret? {
      guard let word = attributes[name] else { return nil }
      guard var bytes = Base64Text.decode(line.span.extracting(word.value)) else {
        throw refuse(.notBase64(name: "\(name)"))
      }
      defer { bytes.wipe() }
      return Secret(bytes.span)
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
      try check(operands: 0, "data", "meeting")
      if let meeting = try secret("meeting") {
        self = .joinWithCode(meeting)
      } else {
        guard let data = try secret("data") else { throw refuse(.missingAttribute("data")) }
        self = .join(data)
      }
    case "account invite":
      try check(operands: 0, "meeting")
      self = try secret("meeting").map { .inviteWithCode($0) } ?? .invite
    case "account rotate":
      try check(operands: 0, "without")
      let removed = attributes["without"].map { "\(parser.text($0, in: line.span))" } ?? ""
      self = .rotate(
        without: try removed.split(separator: ",").map { (word) throws(Refusal) in
          guard let device = UUID(Text(String(word))) else {
            throw refuse(
              .notAllowed(name: "without", value: Text(String(word)), allowed: "UUIDs with commas between them"))
          }
          return device
        })
    case "fleet reports":
      try check(operands: 0, "site", "reading")
      if let word = attributes["reading"] {
        let number = parser.text(word, in: span)
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard number.bytes.allSatisfy({ digits.contains($0) }), let value = UInt64("\(number)") else {
          throw refuse(.notAllowed(name: "reading", value: number, allowed: "a number"))
        }
        self = .reports(value)
      } else {
        guard let word = attributes["site"] else { throw refuse(.missingAttribute("site")) }
        let site = parser.text(word, in: span)
        guard let value = ReaderID(hexadecimal: "\(site)") else {
          throw refuse(.notAllowed(name: "site", value: site, allowed: "32 hexadecimal digits"))
        }
        self = .readReports(value)
      }
    case "fleet keys":
      try check(operands: 0, "after")
      self = .proofKeys(
        after: try attributes["after"].map { (word) throws(Refusal) in
          let value = parser.text(word, in: span)
          if let device = UUID(value) { return device }
          throw refuse(.notAllowed(name: "after", value: value, allowed: "a UUID"))
        })
    case "fleet credentials":
      try check(operands: 0, "previous")
      let value = attributes["previous"].map { parser.text($0, in: span) } ?? "no"
      guard value == "yes" || value == "no" else {
        throw refuse(.notAllowed(name: "previous", value: value, allowed: "yes or no"))
      }
      self = .credentials(isPrevious: value == "yes")
    case "account leave", "fleet status", "fleet sync", "fleet who", "fleet peers", "fleet try", "fleet tried":
      try check(operands: 0)
      self =
        switch verb {
        case "account leave": .leave
        case "fleet status": .status
        case "fleet sync": .sync
        case "fleet who": .who
        case "fleet try": .tryBrokers
        case "fleet tried": .triedBrokers
        default: .peers
        }
    default: throw .unknownVerb(Text(verb))
    }
  }
}
