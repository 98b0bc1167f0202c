import IdentityCore

extension Verb {
  /// The verbs about the daemon and the connection (identityd-protocol(7), sections WHO IS ASKING and VERBS).
  static let daemon: [Verb] = [
    Verb(
      words: "ping", summary: "Answer, and do nothing else.",
      answer: .nothing,
      loss: .nothing, examples: [.init("ping", "OK")]
    ) { (_) throws(Refusal) in .local(.ping) },

    Verb(
      words: "hello", summary: "Show the version of the daemon and of its protocol.",
      answer: .object(Line([.word("program"), .word("version")], [.number("protocol")])),
      loss: .nothing, examples: [.init("hello", "OK identityd \(Version.program) protocol=1")]
    ) { (_) throws(Refusal) in .local(.hello) },

    Verb(
      words: "help", operands: [.any("VERB")],
      summary: "List all verbs, or the verbs that begin with VERB.",
      answer: help, loss: .nothing,
      examples: [
        .init("help ping", "* ping usage=ping access=app summary=\"Answer, and do nothing else.\"", "OK 1")
      ]
    ) { (arguments) throws(Refusal) in .local(.help(arguments.operands)) },

    Verb(
      words: "whoami", summary: "Show the app, the user and the rights that the daemon attributes to the peer.",
      answer: .object(
        Line(
          [.word("app")],
          [
            .number("uid"), .number("gid"), .number("pid"), .word("unit").optional, .word("container").optional,
            .word("vendor"), .list("groups").optional, .list("rights").optional, .boolean("admin"),
          ])),
      loss: .nothing, examples: [.init("whoami", "OK <word> uid=<number> gid=<number> pid=<number> …")]
    ) { (_) throws(Refusal) in .local(.whoami) },

    Verb(
      words: "status",
      summary:
        "Show the daemon's state; most rows are only for admins and members of MonitorGroup=.",
      answer: .status,
      loss: .nothing, examples: [.init("status", "* version=\(Version.program)", "…", "OK")]
    ) { (_) throws(Refusal) in .local(.status) },

    Verb(
      words: "stats", attributes: [.init("apps", "yes")],
      summary: "Show metrics, or counts by app; most are only for admins and members of MonitorGroup=.",
      answer: .either(
        ifGiven: ["apps"],
        .list(Line([.word("app")], [.number("connections"), .number("subscribers"), .number("requests")])),
        otherwise: .metrics),
      loss: .nothing,
      examples: [
        .init("stats", "* build-info=1 version=\(Version.program)", "…", "* log-dropped=0", "OK"),
        .init("stats apps=yes", "* <word> connections=1 subscribers=0 requests=<number>", "OK 1"),
      ]
    ) { (arguments) throws(Refusal) in .local(.stats(ofApps: try arguments.flag("apps"))) },

    Verb(
      words: "seal", attributes: [.init("dry-run", "yes")], access: .admin,
      summary: "Prepare a golden image: end every identifier, and begin a new store at the next start.",
      answer: .either(
        ifGiven: ["dry-run"],
        .list(Line([.word("level"), .uuid("uuid")], [.word("app").optional, .word("vendor").optional])),
        otherwise: .nothing),
      loss: .ask("These identifiers end, and all items, push tokens and versions are deleted."),
      examples: [.init("seal dry-run=yes", "OK 0"), .init("seal", "OK")]
    ) { (arguments) throws(Refusal) in .registry(.seal(dryRun: try arguments.flag("dry-run"))) },

    Verb(
      words: "machine compare", operands: [.required("MACHINE-ID")], access: .admin,
      summary: "Tell whether a machine-id is the one of this store, one that it had before, or unknown.",
      answer: .object(Line([.word("machine")], [.time("left").optional, .uuid("device").optional])),
      loss: .nothing, examples: [.init("machine compare b08dfa6083e7567a1921a715000001fb", "OK unknown")]
    ) { (arguments) throws(Refusal) in .store(.compareMachine(try arguments.uuid(0))) },

    Verb(
      words: "machine acknowledge", attributes: [.init("dry-run", "yes")], access: .admin,
      summary: "End the warnings about a change of the machine, and delete what a renewal left to the original.",
      answer: .either(
        ifGiven: ["dry-run"],
        .list(
          Line(
            [.word("kind")],
            [
              .word("app"), .word("provider").optional, .word("group").optional, .word("service").optional,
              .word("account").optional, .boolean("own").optional,
            ])), otherwise: .nothing),
      loss: .askIfAny("These push tokens and items, which the original may have, too, are deleted:"),
      examples: [.init("machine acknowledge dry-run=yes", "OK 0"), .init("machine acknowledge", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.acknowledgeMachine(dryRun: try arguments.flag("dry-run")))
    },

    Verb(
      words: "machine resumed", access: .admin,
      summary: "Give sessions other identifiers, because the machine goes on from a snapshot, as another may do.",
      answer: .nothing,
      loss: .nothing, examples: [.init("machine resumed", "OK")]
    ) { (_) throws(Refusal) in .store(.resume) },

    Verb(
      words: "quit", summary: "Answer, then close the connection.",
      answer: .nothing,
      loss: .nothing, examples: [.init("quit", "OK")]
    ) { (_) throws(Refusal) in .local(.quit) },
  ]
}
