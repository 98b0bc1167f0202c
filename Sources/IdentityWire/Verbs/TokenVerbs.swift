import IdentityCore

extension Verb {
  /// The verbs about push tokens (identityd-protocol(7), section PUSH TOKENS).
  static let tokens: [Verb] = [
    Verb(
      words: "token put", operands: [provider, token],
      attributes: [
        .init("environment", "E"), .init("topic", "T"), .init("renewed", "yes"), .init("app", "ID"),
      ],
      summary: "Set the app's push token of a provider, in place of the previous token.",
      answer: .object(
        Line(
          [.word("result")],
          [.uuid("device"), .word("state").optional, .word("reason").optional, .word("previous").optional])),
      loss: .named, examples: [.init("token put fcm bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD", "OK created device=<uuid>")]
    ) { (arguments) throws(Refusal) in
      let registration = TokenRegistration(
        provider: try arguments.provider(), value: try arguments.token(),
        environment: try arguments.optional("environment"), topic: try arguments.optional("topic"),
        isRenewed: try arguments.flag("renewed"))
      return .registry(.putToken(registration, app: arguments["app"]))
    },

    Verb(
      words: "token get", operands: [provider], attributes: [.init("app", "ID")],
      summary: "Show the app's push token of a provider, with its state and its times.",
      answer: .object(shownToken),
      loss: .nothing,
      examples: [
        .init("token get fcm", "OK bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD provider=fcm app=<word> device=<uuid> …"),
        .init("token get apns", "ERR not-found …"),
      ]
    ) { (arguments) throws(Refusal) in
      .registry(.getToken(provider: try arguments.provider(), app: arguments["app"]))
    },

    Verb(
      words: "token list",
      attributes: [.init("stale", "SECONDS"), .init("app", "ID|*"), .init("after", "ID"), .init("limit", "N")],
      summary:
        "List the app's push tokens, or those not confirmed for SECONDS; app=* is for admins and the fleet.",
      answer: .list(shownToken),
      loss: .nothing,
      examples: [
        .init("token list", "* bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD provider=fcm app=<word> device=<uuid> …", "OK 1"),
        .init("token list stale=2592000 app=*", "OK 0"),
        .init("token list app=* after=user:0 limit=100", "OK 0"),
      ]
    ) { (arguments) throws(Refusal) in
      let stale = try arguments.number("stale", in: 0...longestTime).map(Int64.init)
      var owners: TokenOwners = arguments["app"] == "*" ? .all : .app(named: arguments["app"])
      let (app, limit) = (arguments["after"], try arguments.number("limit", in: 1...Bound.tokens))
      if app != nil || limit != nil {
        // A page of which the confirmed tokens were left out would not tell whether it is the last one.
        guard owners == .all, stale == nil else {
          throw arguments.combination("after= and limit= need app=*, and cannot be combined with stale=")
        }
        owners = .page(after: app, limit: limit ?? Bound.tokens)
      }
      return .registry(.listTokens(owners, stale: stale))
    },

    Verb(
      words: "token invalidate", operands: [provider, token], attributes: [.init("app", "ID")],
      summary: "Mark a push token as invalid if it is still the app's token of the provider.",
      answer: .object(Line([.word("result")])),
      loss: .named, examples: [.init("token invalidate fcm bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD", "OK invalidated")]
    ) { (arguments) throws(Refusal) in
      .registry(
        .invalidateToken(provider: try arguments.provider(), value: try arguments.token(), app: arguments["app"]))
    },

    Verb(
      words: "token delete", operands: [provider], attributes: [.init("app", "ID"), .init("dry-run", "yes")],
      summary: "Delete the app's push token of a provider, or show it.",
      answer: .either(
        ifGiven: ["dry-run"],
        .list(Line(shownToken.words, shownToken.attributes + [.boolean("own").optional])), otherwise: .nothing),
      loss: .askIfMore("This push token of another app is deleted:"),
      examples: [
        .init(
          "token delete fcm dry-run=yes", "* bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD provider=fcm app=<word> device=<uuid> …",
          "OK 1"),
        .init("token delete fcm", "OK"),
      ]
    ) { (arguments) throws(Refusal) in
      .registry(
        .deleteToken(
          provider: try arguments.provider(), app: arguments["app"], dryRun: try arguments.flag("dry-run")))
    },
  ]

  /// A token in an answer.
  private static let shownToken = Line(
    [.word("token")],
    [
      .word("provider"), .word("app"), .uuid("device"), .word("environment").optional, .word("topic").optional,
      .word("state"), .word("reason").optional, .time("created"), .time("changed"), .time("confirmed"),
    ])

  /// A client may confuse provider and token, so error texts repeat neither of them.
  private static let provider = Operand.private("PROVIDER")
  private static let token = Operand.private("TOKEN")

  /// A hundred years, in seconds.
  private static let longestTime = 3_155_760_000
}

extension Arguments {
  fileprivate func provider() throws(Refusal) -> Text { try name(operands[0], named: "PROVIDER") }

  fileprivate func token() throws(Refusal) -> Text {
    let token = operands[1]
    guard !token.isEmpty else { throw combination("TOKEN is empty") }
    guard token.bytes.count <= Bound.tokenLength else { throw .limit("a token has at most \(Bound.tokenLength) bytes") }
    return token
  }
}
