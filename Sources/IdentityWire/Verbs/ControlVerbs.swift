package import IdentityCore

/// The verbs of the socket of identity-fleet, which are all for admins (identity-fleet(8), section REQUESTS).
///
/// The order is that of the manual, whose examples are run one after the other.
package enum ControlVerb: String, CaseIterable, Sendable {
  case help
  case create = "account create"
  case invite = "account invite"
  case join = "account join"
  case rotate = "account rotate"
  case status = "fleet status"
  case credentials = "fleet credentials"
  case sync = "fleet sync"
  case who = "fleet who"
  case peers = "fleet peers"
  case proofKeys = "fleet keys"
  case reports = "fleet reports"
  case tryBrokers = "fleet try"
  case triedBrokers = "fleet tried"
  case leave = "account leave"

  /// Everything that peers, people and the manual are told about the verb. Each call makes it anew.
  package var declaration: Verb.Declaration {
    switch self {
    case .help:
      declare(
        [.any("VERB")], summary: "List all verbs, or the verbs that begin with VERB.", Verb.help,
        .init(
          "help fleet sync",
          "* \"fleet sync\" usage=\"fleet sync\" access=admin "
            + "summary=\"Read the messages of the account at the broker now.\"", "OK 1"))
    case .create:
      declare(
        [.required("NAME")], summary: "Make an account of the fleet, with this device as its first member.", .nothing,
        .init("account create alice", "OK"))
    case .invite:
      declare(
        attributes: [.secret("meeting", isRequired: false)],
        summary: "Invite a device with the bytes of a code, or make an invitation for a file.",
        .object(.init([], [.base64("data").optional, .time("expires"), .word("password").optional])),
        .init("account invite", "OK data=<word> expires=<time>"))
    case .join:
      declare(
        attributes: [.secret("data", isRequired: false), .secret("meeting", isRequired: false)],
        summary: "Join an account by an invitation from a file, or with the bytes of a code.",
        .object(.init([], [.word("account").optional])),
        .init("account join data=AAAA", "ERR conflict …"))
    case .rotate:
      declare(
        attributes: [.init("without", "UUID[,UUID...]")],
        summary: "Replace the key of the account; the removed devices do not get it.",
        loss: .ask("Earlier invitations end, and the devices of without= are removed from the account."),
        .object(.init([], [.word("password").optional])),
        .init("account rotate without=557e5958-d390-4cbf-b928-2a2b19a1399a", "ERR not-found …"))
    case .status:
      declare(
        summary: "Show the state of the service.", .properties(Self.state),
        .init("fleet status", "* state=<word>", "…", "OK"))
    case .credentials:
      declare(
        attributes: [.init("previous", "yes|no")],
        summary: "Show the user and the password of the account at a broker, or its earlier passwords.",
        .either(
          ifGiven: ["previous=yes"],
          .report(.init([], [.word("user")]), rows: "previous", .init([], [.word("password")])),
          otherwise: .object(.init([], [.word("user"), .word("password")]))),
        .init("fleet credentials", "OK user=<word> password=<word>"))
    case .sync:
      declare(
        summary: "Read the messages of the account at the broker now.", .nothing,
        .init("fleet sync", "ERR unavailable …"))
    case .who:
      declare(
        summary: "Ask the other devices whether they are connected; 'fleet peers' shows their answers.", .nothing,
        .init("fleet who", "ERR conflict …"))
    case .peers:
      declare(
        summary: "List the other devices that are connected.", .list(.init([.uuid("uuid")], [.word("name")])),
        .init("fleet peers", "OK 0"))
    case .proofKeys:
      declare(
        attributes: [.init("after", "UUID")],
        summary: "List the public proof keys of devices in the order of their UUIDs, those after a UUID.",
        .list(
          .init(
            [.uuid("uuid")], [.word("name").optional, .base64("signer"), .word("issuer").optional, .base64("points")])),
        .init("fleet keys", "OK 0"))
    case .reports:
      declare(
        attributes: [.init("site", "HEX"), .init("reading", "N")],
        summary: "Begin to read the reports for a site, or list the next ones of such a reading.",
        .either(
          ifGiven: ["reading"],
          .report(.init([], [.boolean("last")]), rows: "reports", .init([.word("tag")], [.base64("report")])),
          otherwise: .object(.init([], [.number("reading")]))),
        .init("fleet reports reading=7", "ERR not-found …"))
    case .tryBrokers:
      declare(
        summary: "Begin to connect with each configured broker, and list the outcomes so far.", Self.outcomes,
        .init("fleet try", "* broker=mqtt://127.0.0.1:1 outcome=<word> …", "OK 1"))
    case .triedBrokers:
      declare(
        summary: "Go on with the trial of the brokers, and list the outcomes so far.", Self.outcomes,
        .init("fleet tried", "* broker=mqtt://127.0.0.1:1 outcome=<word> …", "OK 1"))
    case .leave:
      declare(
        summary: "Leave the account; the other devices remove this one from their lists.",
        loss: .ask("This device leaves its account, and forgets its keys and all other devices."),
        .object(.init([], [.boolean("pending").optional])),
        .init("account leave", "OK pending=yes"))
    }
  }

  private func declare(
    _ operands: [Verb.Operand] = [], attributes: [Verb.Attribute] = [], summary: String, loss: Verb.Loss = .nothing,
    _ answer: Verb.Answer, _ examples: Verb.Example...
  ) -> Verb.Declaration {
    Verb.Declaration(
      words: rawValue, operands: operands, attributes: attributes, summary: summary, answer: answer, loss: loss,
      examples: examples)
  }

  /// The state of the service.
  package static let state = Verb.Line(
    [],
    [.word("state")]
      + [
        "broker", "reason", "next", "password", "signer", "keys", "removed", "superseded", "join", "join-reason",
        "invitation", "newcomer", "second-newcomer", "other-key",
      ].map { .word($0).optional }
      + ["twin", "alone"].map { .boolean($0).optional }
      + ["connected", "rotations", "earlier-releases", "other-keys", "held", "dropped", "foreign", "beyond-bound"].map {
        .number($0).optional
      })

  private static let outcomes = Verb.Answer.list(
    .init([], [.word("broker"), .word("outcome"), .word("reason").optional]))
}

extension ControlVerb {
  /// Finds the verb at the beginning of a line.
  ///
  /// - Parameters:
  ///   - parser: holds the words of `line`.
  ///   - line: the line without its line end.
  /// - Returns: the verb, and the number of positional words that belong to it.
  /// - Throws: `unknownVerb`, or `syntax` for a line without a positional word.
  package static func match(
    _ parser: borrowing WordParser, in line: borrowing Span<UInt8>
  ) throws(Refusal) -> (verb: ControlVerb, count: Int) {
    var words: [Text] = []
    for word in parser.words.filter({ !$0.isAttribute }).prefix(2) {
      // A word that is longer than any verb may be a misplaced secret, so not even a copy of the word is made.
      words.append(word.value.count > Bound.shownWordLength ? "…" : parser.text(word, in: line))
    }
    guard let first = words.first else { throw .syntax(.noVerb) }
    for count in [2, 1] where words.count >= count {
      // Byte by byte, because Swift's own `lowercased()` turns U+212A into a 'k'.
      let bytes = words.prefix(count).map(\.bytes).joined(separator: " ".utf8).map(lowercased)
      if let verb = ControlVerb(rawValue: String(decoding: bytes, as: UTF8.self)) { return (verb, count) }
    }
    throw .unknownVerb(first)
  }

  /// Answers `help [VERB]` with a row for each verb.
  ///
  /// - Throws: `unknownVerb` if no verb begins with the words.
  package static func help(_ words: [Text]) throws(Refusal) -> Reply {
    try Reply.help(words, of: allCases.map { ($0.declaration, .admin) })
  }
}
