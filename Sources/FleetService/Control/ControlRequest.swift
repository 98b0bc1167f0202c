import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// A request of an admin to the service.
enum ControlRequest: Sendable {
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

  /// The answer: a reply, and the secret in it.
  typealias Answer = (reply: Reply, secret: Secret?)
}

/// A line of an admin, in the line protocol of identityd.
enum ControlLine {
  /// Shows the verbs that begin with these words.
  case help([Text])
  /// Shows the state of the service.
  case status
  /// Has the service carry out a request.
  case request(ControlRequest)

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
    case .status: self = .status
    case .create: self = .request(.create(try arguments.name(arguments.operands[0], named: "NAME")))
    case .join:
      if let meeting = try secret("meeting") {
        self = .request(.joinWithCode(meeting))
      } else if let data = try secret("data") {
        self = .request(.join(data))
      } else {
        throw arguments.combination("data= or meeting= is required")
      }
    case .invite: self = .request(try secret("meeting").map { .inviteWithCode($0) } ?? .invite)
    case .rotate:
      let removed = arguments["without"].map { "\($0)" } ?? ""
      let devices = try removed.split(separator: ",").map { (word) throws(Refusal) in
        guard let device = UUID(Text(String(word))) else { throw .invalidUUID(Text(String(word))) }
        return device
      }
      self = .request(.rotate(without: devices))
    case .leave: self = .request(.leave)
    case .credentials: self = .request(.credentials(isPrevious: try arguments.flag("previous")))
    case .sync: self = .request(.sync)
    case .who: self = .request(.who)
    case .peers: self = .request(.peers)
    case .proofKeys: self = .request(.proofKeys(after: try arguments.uuid(named: "after")))
    case .reports:
      if let number = try arguments.number("reading", in: 0...Int.max) {
        self = .request(.reports(UInt64(number)))
      } else {
        let site = try arguments.required("site")
        guard let reader = ReaderID(hexadecimal: "\(site)") else {
          throw arguments.notAllowed("site", site, "32 hexadecimal digits")
        }
        self = .request(.readReports(reader))
      }
    case .tryBrokers: self = .request(.tryBrokers)
    case .triedBrokers: self = .request(.triedBrokers)
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
