import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// A request of an admin to the service, in the line protocol of identityd.
enum ControlRequest {
  /// Shows the verbs that begin with these words.
  case help([Text])
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
    do throws(SyntaxFault) {
      try parser.parse(line.span)
    } catch {
      throw .syntax(error)
    }
    let (verb, count) = try ControlVerb.match(parser, in: line.span)
    var secrets: [Arguments.SecretWord] = []
    let arguments = try Arguments(parser, behind: count, of: verb.declaration, in: line.span, leaving: &secrets)
    func secret(_ name: Text) throws(Refusal) -> Secret? {
      guard let word = secrets.first(where: { $0.name == name })?.word else { return nil }
      return try Self.secret(word, named: name, of: verb, parser, in: line.span)
    }
    switch verb {
    case .help: self = .help(arguments.operands)
    case .create: self = .create(try arguments.name(arguments.operands[0], named: "NAME"))
    case .join:
      if let meeting = try secret("meeting") {
        self = .joinWithCode(meeting)
      } else if let data = try secret("data") {
        self = .join(data)
      } else {
        throw arguments.combination("data= or meeting= is required")
      }
    case .invite: self = try secret("meeting").map { .inviteWithCode($0) } ?? .invite
    case .rotate:
      let removed = arguments["without"].map { "\($0)" } ?? ""
      self = .rotate(
        without: try removed.split(separator: ",").map { (word) throws(Refusal) in
          guard let device = UUID(Text(String(word))) else { throw .invalidUUID(Text(String(word))) }
          return device
        })
    case .leave: self = .leave
    case .status: self = .status
    case .credentials: self = .credentials(isPrevious: try arguments.flag("previous"))
    case .sync: self = .sync
    case .who: self = .who
    case .peers: self = .peers
    case .proofKeys: self = .proofKeys(after: try arguments.uuid(named: "after"))
    case .reports:
      if let number = try arguments.number("reading", in: 0...Int.max) {
        self = .reports(UInt64(number))
      } else {
        let site = try arguments.required("site")
        guard let reader = ReaderID(hexadecimal: "\(site)") else {
          throw arguments.notAllowed("site", site, "32 hexadecimal digits")
        }
        self = .readReports(reader)
      }
    case .tryBrokers: self = .tryBrokers
    case .triedBrokers: self = .triedBrokers
    }
  }

  /// Decodes a secret. No copy of the secret remains but the one that is returned.
  private static func secret(
    _ word: WordParser.Word, named name: Text, of verb: ControlVerb, _ parser: WordParser,
    in line: borrowing Span<UInt8>
  ) throws(Refusal) -> Secret {
    var text = [UInt8](repeating: 0, count: word.value.count)
    defer { text.wipe() }
    var memory = text.mutableSpan
    guard let length = parser.copyValue(of: word, in: line, to: &memory),
      var bytes = Base64Text.decode(text.span.extracting(..<length))
    else { throw .badArgument(verb: verb.rawValue, .notBase64(name: "\(name)")) }
    defer { bytes.wipe() }
    return Secret(bytes.span)
  }
}
