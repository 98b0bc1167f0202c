import IdentityCore

extension Verb {
  /// The verbs about identifiers (identityd-protocol(7), section IDENTIFIERS).
  static let identifiers: [Verb] = [
    Verb(
      words: "get uuid", attributes: [.init("count", "N"), .init("version", "4|7")],
      summary: "Make UUIDs: random (version 4), or strictly ascending across all callers (version 7).",
      answer: .either(ifGiven: ["count"], .list(Line([.uuid("uuid")])), otherwise: .object(Line([.uuid("uuid")]))),
      loss: .nothing,
      examples: [
        .init("get uuid", "OK <uuid>"),
        .init("get uuid count=2 version=7", "* <uuid>", "* <uuid>", "OK 2"),
      ]
    ) { (arguments) throws(Refusal) in
      let count = try arguments.number("count", in: 1...Bound.uuidsPerRequest)
      guard let text = arguments["version"] else { return .local(.uuids(count: count, version: .random)) }
      switch text {
      case "4": return .local(.uuids(count: count, version: .random))
      case "7": return .local(.uuids(count: count, version: .timeOrdered))
      default: throw arguments.notAllowed("version", text, "4, 7")
      }
    },

    Verb(
      words: "get key", operands: [.required("NAME")],
      summary: "Show the identifier of NAME in the peer's session.",
      answer: .object(derived),
      loss: .nothing, examples: [.init("get key player-1", "OK <uuid> level=key app=<word>")]
    ) { (arguments) throws(Refusal) in
      .local(.derived(.key(try arguments.name(arguments.operands[0], named: "NAME"))))
    },

    Verb(
      words: "get session",
      summary: "Show the session's identifier, which lasts until the app is launched again.",
      answer: .object(derived),
      loss: .nothing, examples: [.init("get session", "OK <uuid> level=session app=<word>")]
    ) { (_) throws(Refusal) in .local(.derived(.session)) },

    Verb(
      words: "get boot", attributes: [.init("app", "ID")],
      summary: "Show the app's identifier of this boot, which lasts until the next boot.",
      answer: .object(derived),
      loss: .nothing, examples: [.init("get boot", "OK <uuid> level=boot app=<word>")]
    ) { (arguments) throws(Refusal) in .local(.derived(.boot(app: arguments["app"]))) },

    Verb(
      words: "get installation", attributes: [.init("app", "ID")],
      summary: "Show the app's installation identifier, which lasts until the app is uninstalled.",
      answer: .object(stored([.word("app"), .word("vendor")])),
      loss: .nothing,
      examples: [.init("get installation", "OK <uuid> level=installation app=<word> vendor=<word> created=<time>")]
    ) { (arguments) throws(Refusal) in .registry(.get(.installation, app: arguments["app"])) },

    Verb(
      words: "get vendor", attributes: [.init("app", "ID")],
      summary: "Show the vendor's identifier, which lasts until the vendor's last app is uninstalled.",
      answer: .object(stored([.word("vendor")])),
      loss: .nothing, examples: [.init("get vendor", "OK <uuid> level=vendor vendor=<word> created=<time>")]
    ) { (arguments) throws(Refusal) in .registry(.get(.vendor, app: arguments["app"])) },

    Verb(
      words: "get device", attributes: [.init("app", "ID")],
      summary: "Show the device identifier, which lasts until the system is reset.",
      answer: .object(stored([.word("app").optional, .word("vendor").optional])),
      loss: .nothing, examples: [.init("get device", "OK <uuid> level=device created=<time> origin=<word>")]
    ) { (arguments) throws(Refusal) in .registry(.get(.device, app: arguments["app"])) },

    Verb(
      words: "check", operands: [.required("VALUE")],
      summary: "Check whether VALUE is a UUID, and show its canonical form.",
      answer: .object(Line([.word("result"), .uuid("uuid").optional])),
      loss: .nothing,
      examples: [
        .init("check 557E5958D3904CBFB9282A2B19A1399A", "OK valid 557e5958-d390-4cbf-b928-2a2b19a1399a"),
        .init("check {557e5958-d390-4cbf-b928-2a2b19a1399a}", "OK invalid"),
      ]
    ) { (arguments) throws(Refusal) in .local(.check(arguments.operands[0])) },

    Verb(
      words: "resolve", operands: [.required("UUID")],
      summary: "Show the level and the owner of a present or past identifier.",
      answer: .object(
        Line(
          [.word("level")],
          [.boolean("current"), .uuid("now").optional, .word("app").optional, .word("vendor").optional])),
      loss: .nothing, examples: [.init("resolve 557e5958-d390-4cbf-b928-2a2b19a1399a", "ERR not-found …")]
    ) { (arguments) throws(Refusal) in .registry(.resolve(try arguments.uuid(0))) },

    Verb(
      words: "history", operands: [.required("LEVEL")], attributes: [.init("app", "ID")],
      summary: "List the identifiers of a level, oldest first, with their times, causes and authors.",
      answer: .list(
        Line(
          [.uuid("uuid")],
          [
            .time("from"), .time("until").optional, .word("cause"), .word("ended").optional, .word("origin"),
            .word("by").optional,
          ])),
      loss: .nothing,
      examples: [
        .init("history device", "* <uuid> from=<time> cause=first-use origin=<word> by=uid:<number>", "OK 1")
      ]
    ) { (arguments) throws(Refusal) in
      .registry(.history(try arguments.choice(arguments.operands[0], named: "LEVEL"), app: arguments["app"]))
    },

    Verb(
      words: "renew", operands: [.required("LEVEL")],
      attributes: [.init("app", "ID"), .init("replaces", "yes"), .init("dry-run", "yes")], access: .fleet,
      summary: "Replace the identifier of a level with a random one, or list the identifiers to replace.",
      answer: .either(
        ifGiven: ["dry-run"],
        .list(Line([.word("level"), .uuid("uuid")], [.word("app").optional, .word("vendor").optional])),
        otherwise: .object(Line([.uuid("uuid")], [.uuid("previous").nullable]))),
      loss: .ask("These identifiers end, and random ones replace them."),
      examples: [
        .init("renew device dry-run=yes", "* device <uuid>", "OK 1"),
        .init("renew device", "OK <uuid> previous=<uuid>"),
      ]
    ) { (arguments) throws(Refusal) in
      let level: Level = try arguments.choice(arguments.operands[0], named: "LEVEL")
      let replaces = try arguments.flag("replaces")
      guard level == .device || !replaces else { throw arguments.combination("replaces=yes requires the level device") }
      return .registry(
        .renew(level, app: arguments["app"], dryRun: try arguments.flag("dry-run"), replaces: replaces))
    },

    migration(
      of: .device, "Adopt a device identifier that an earlier system issued.",
      .init("migrate device 557E5958D3904CBFB9282A2B19A1399A", "ERR conflict …"),
      .init(
        "migrate device 557E5958D3904CBFB9282A2B19A1399A force=yes",
        "OK 557e5958-d390-4cbf-b928-2a2b19a1399a changed=yes committed=no previous=<uuid>")),
    migration(
      of: .installation, "Adopt an installation identifier that an earlier system issued.",
      .init(
        "migrate installation 557e5958-d390-4cbf-b928-2a2b19a1399a force=yes commit=yes",
        "OK 557e5958-d390-4cbf-b928-2a2b19a1399a changed=yes committed=yes previous=<uuid>")),
  ]

  /// An identifier that the daemon computes.
  private static let derived = Line([.uuid("uuid")], [.word("level"), .word("app")])

  /// Returns the content of an identifier in the store, with the attributes of its owner.
  private static func stored(_ owner: [Field]) -> Line {
    Line([.uuid("uuid")], [.word("level")] + owner + [.time("created"), .word("origin").optional])
  }

  private static func migration(of level: Level, _ summary: String, _ examples: Example...) -> Verb {
    Verb(
      words: "migrate \(level.rawValue)", operands: [.optional("VALUE")],
      attributes: [
        .init("item", "ACCOUNT"), .init("service", "S"), .init("group", "G"), .init("app", "ID"),
        .init("commit", "yes"), .init("force", "yes"),
      ], summary: summary,
      answer: .object(
        Line([.uuid("uuid")], [.boolean("changed"), .boolean("committed"), .uuid("previous").nullable])),
      loss: .named,
      examples: examples + [.init("migrate \(level.rawValue) item=alice service=legacy", "ERR not-found …")]
    ) { (arguments) throws(Refusal) in
      let app = arguments["app"]
      let commits = try arguments.flag("commit")
      let forces = try arguments.flag("force")
      guard arguments["item"] == nil else {
        guard arguments.operands.isEmpty else { throw arguments.combination("VALUE cannot be combined with item=") }
        return .registry(
          .migrateFromItem(
            level, try arguments.itemName(account: "item"), app: app, commits: commits, forces: forces))
      }
      guard arguments["service"] == nil, arguments["group"] == nil else {
        throw arguments.combination("service= and group= require item=ACCOUNT")
      }
      guard !arguments.operands.isEmpty else {
        throw arguments.combination("give VALUE, or item=ACCOUNT and service=S")
      }
      return .registry(.migrate(level, try arguments.uuid(0), app: app, commits: commits, forces: forces))
    }
  }
}
