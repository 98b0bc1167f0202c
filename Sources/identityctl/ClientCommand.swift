package import IdentityWire

/// A command that `identityctl` implements itself, beyond sending one request.
///
/// ``all`` is the complete table. `--help` is written from it, and the shell completions are tested against it.
package struct ClientCommand: Sendable {
  /// The words of the command, in lower case with one space between them. A verb may have the same words.
  package let words: String
  /// The positional words after the command's own, in order.
  package let operands: [Verb.Operand]
  /// The attributes that the command takes, in any order.
  package let attributes: [Verb.Attribute]
  /// The effect of the command, in one sentence.
  package let summary: String
  /// The loss that the command causes for good.
  package let loss: Verb.Loss
  /// Whether the fleet's service carries out the command, instead of identityd.
  package let isForFleet: Bool
  /// The content of the answer, if the command shows one as a verb does; nil for any other output.
  package let answer: Verb.Answer?

  private init(
    _ words: String, _ operands: [Verb.Operand] = [], _ attributes: [Verb.Attribute] = [], summary: String,
    loss: Verb.Loss, isForFleet: Bool = false, answer: Verb.Answer? = nil
  ) {
    self.words = words
    self.operands = operands
    self.attributes = attributes
    self.summary = summary
    self.loss = loss
    self.isForFleet = isForFleet
    self.answer = answer
  }

  /// Declares a request to the fleet's service as a command. Everything that is not given is that of the request.
  private static func request(
    _ verb: ControlVerb, _ operands: [Verb.Operand]? = nil, attributes: [Verb.Attribute]? = nil,
    summary: String? = nil, loss: Verb.Loss? = nil, answer: Verb.Answer? = nil
  ) -> ClientCommand {
    let verb = verb.declaration
    return ClientCommand(
      verb.words, operands ?? verb.operands, attributes ?? verb.attributes, summary: summary ?? verb.summary,
      loss: loss ?? verb.loss, isForFleet: true, answer: answer ?? verb.answer)
  }

  /// Every command, in the order of the manual.
  package static let all: [ClientCommand] = [
    ClientCommand(
      "monitor", [.any("TOPIC")], summary: "Write the events of these topics, or of all topics, as they happen.",
      loss: .nothing),
    ClientCommand(
      "wait", [.required("TOPIC"), .any("TOPIC")],
      summary: "Wait for the next event of these topics, write it and exit.", loss: .nothing),
    ClientCommand(
      "version changed", [.optional("VERSION")],
      [.init("build", "B"), .init("order", Verb.orders), .init("of", "app|os"), .init("app", "ID")],
      summary: "Exit with 0 if VERSION, or the last report, differs from the last session's version, else with 1.",
      loss: .nothing),
    ClientCommand(
      "version compare", [.required("A"), .required("lt|le|eq|ne|ge|gt"), .required("B")],
      [.init("build", "B"), .init("build2", "B"), .init("order", Verb.orders)],
      summary: "Exit with 0 if the comparison holds, else with 1.", loss: .nothing),
    ClientCommand(
      "backup", [.required("FILE")], summary: "Write a backup to FILE, encrypted with a passphrase.",
      loss: .askIfMore("The content of this file is lost:"),
      answer: .either(
        ifGiven: ["--dry-run"], .object(.init([.word("outcome")], [.word("reason").optional])),
        otherwise: .object(.init([.number("bytes")])))),
    ClientCommand(
      "restore", [.required("FILE")], summary: "Restore the backup in FILE.",
      loss: .ask("The backup changes the store in these ways.")),
    ClientCommand(
      "credential put", [.required("UNIT"), .required("NAME")], [.init("owner", "USER")],
      summary: "Store a secret that a service gets as its credential NAME, and write the setting for its unit.",
      loss: .named, answer: .object(.init([.word("setting")], [.word("outcome")]))),
    ClientCommand(
      "credential list", [.optional("UNIT")], [.init("owner", "USER")],
      summary: "List the credentials that are stored for services, or for one of them.", loss: .nothing,
      answer: .list(
        .init(
          [.word("unit"), .word("name")],
          [
            .number("owner").optional, .time("created"), .time("modified"), .word("state").optional,
            .word("reason").optional,
          ]))),
    ClientCommand(
      "credential delete", [.required("UNIT"), .required("NAME")], [.init("owner", "USER")],
      summary: "Delete the credential NAME of a service.", loss: .named, answer: .object(.init([.number("deleted")]))),
    ClientCommand(
      "proof verify", [.optional("FILE")],
      summary: "Verify the proof in FILE by the key set of --keys, for --audience, and show its claims.",
      loss: .nothing),
    ClientCommand(
      "proof discovery",
      summary: "Write the files by which relying parties find the keys of this device, for the web server of Issuer=.",
      loss: .nothing, answer: .object(.init([], [.number("keys"), .word("issuer").optional]))),
    ClientCommand(
      "env otel",
      summary: "Write an environment variable with the identifiers of this device and this launch, for OpenTelemetry.",
      loss: .nothing, answer: .object(.init([.word("setting")]))),
    ClientCommand(
      "check", summary: "Without a VALUE: examine the daemon and the system, and show commands that repair faults.",
      loss: .nothing),
    .request(.create),
    .request(
      .invite, attributes: [],
      summary: "Invite a device with a code, or write an invitation into a file. A person with either can join.",
      loss: .askIfMore("The content of this file is lost:"),
      answer: .object(.init([.word("code").optional], [.time("expires"), .word("password").optional]))),
    .request(
      .join, [.optional("CODE")], attributes: [],
      summary: "Join an account with a code, or by the invitation in a file.",
      answer: .object(.init([], [.word("account").optional, .number("devices").optional]))),
    .request(.leave),
    .request(.rotate),
    ClientCommand(
      "fleet setup", [.required("BROKER")],
      summary: "Name a broker to the fleet's service, have the service try the broker, and enable the service.",
      loss: .askIfMore("The content of this file is lost:"), isForFleet: true,
      answer: .either(
        ifGiven: ["--create", "--join", "--file"],
        .object(.init([], [.word("account").optional, .number("devices").optional])),
        otherwise: .object(.init([], [.word("outcome"), .word("configuration"), .word("reason").optional])))),
    .request(
      .status, summary: "Show the state of the fleet's service, or with --key the reports of a site's devices.",
      answer: .either(ifGiven: ["--key"], .list(report), otherwise: .properties(ControlVerb.state))),
    .request(
      .peers, summary: "Ask the other devices of the account whether they are connected, and show those that are."),
    .request(.sync),
    .request(
      .proofKeys, attributes: [],
      summary: "Write the public proof keys of each device of the account, or of a site, for relying parties.",
      answer: .object(.init([], [.number("devices"), .number("emptied"), .number("refused")]))),
    ClientCommand(
      "fleet keygen", [.required("site|sender"), .optional("NAME")],
      summary: "Make the keys of a site or of a sender, and show the setting for its devices.", loss: .nothing,
      isForFleet: true,
      answer: .object(.init([.word("setting")]))),
    .request(
      .credentials, summary: "Show the user and the password of the account at a broker.",
      answer: .either(
        ifGiven: ["--previous"], .list(.init([], [.word("password")])),
        otherwise: .object(.init([], [.word("user"), .word("password")])))),
  ]

  /// A report in an answer.
  private static let report = Verb.Line(
    [.uuid("uuid")],
    [
      .word("name"), .time("reported"), .word("status").optional, .word("identityd").optional,
      .word("system").optional, .prefixed("app.", named: "apps"),
    ])

  /// Returns the declared answer to the words of a command line; nil if there is none.
  static func answer(to words: [String]) -> Verb.Answer? {
    let name = VerbName(words)
    return all.first { name.matches($0.words) }?.answer
  }
}
