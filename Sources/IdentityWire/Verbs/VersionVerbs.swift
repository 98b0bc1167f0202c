import IdentityCore

extension Verb {
  /// The verbs about versions (identityd-protocol(7), section VERSIONS).
  static let versions: [Verb] = [
    Verb(
      words: "version report", operands: [.required("VERSION")],
      attributes: [.init("build", "B"), .init("order", orders), .init("app", "ID"), .init("dry-run", "yes")],
      summary: "Report the running version, and compare it with the version of the last session.",
      answer: .object(report),
      loss: .nothing,
      examples: [
        .init("version report 1.4.2 dry-run=yes", "OK installed 1.4.2"),
        .init("version report 1.4.2 build=9f3c2a1", "OK installed 1.4.2 build=9f3c2a1 installed=<time>"),
      ]
    ) { (arguments) throws(Refusal) in
      let release = Release(
        version: try arguments.name(arguments.operands[0], named: "VERSION"), build: try arguments.optional("build"))
      let (app, order) = (arguments["app"], try arguments.versionOrder())
      let isDry = try arguments.flag("dry-run")
      return .registry(
        isDry ? .previewVersion(release, app: app, order: order) : .reportVersion(release, app: app, order: order))
    },

    Verb(
      words: "version state", attributes: [.init("of", "app|os"), .init("app", "ID|*")],
      summary: "Show the version report of this session, or else the last; app=* is for admins and the fleet.",
      answer: .either(
        ifGiven: ["app=*"], .list(Line(report.words, report.attributes + [.word("app")])), otherwise: .object(report)),
      loss: .nothing,
      examples: [
        .init("version state", "OK installed 1.4.2 build=9f3c2a1 installed=<time>"),
        .init("version state of=os", "OK installed <word> …"),
        .init("version state app=*", "* installed 1.4.2 build=9f3c2a1 installed=<time> app=<word>", "OK 1"),
      ]
    ) { (arguments) throws(Refusal) in
      let question = try arguments.versionQuestion()
      return .registry(question == .app(named: "*") ? .versionStates : .versionState(question))
    },

    Verb(
      words: "version history", attributes: whose,
      summary: "List all reported versions, in the order of their first reports.",
      answer: .list(
        Line(
          [.word("version")],
          [.word("build").optional, .word("id").optional, .time("installed"), .time("last")])),
      loss: .nothing,
      examples: [
        .init("version history", "* 1.4.2 build=9f3c2a1 installed=<time> last=<time>", "OK 1")
      ]
    ) { (arguments) throws(Refusal) in .registry(.versionHistory(try arguments.versionQuestion())) },

    Verb(
      words: "version compare", operands: [.required("A"), .required("B")],
      attributes: [.init("build", "B"), .init("build2", "B"), .init("order", orders)],
      summary: "Compare version A, of build=, with version B, of build2=.",
      answer: .object(Line([.word("order")])),
      loss: .nothing,
      examples: [
        .init("version compare 1.2 1.10", "OK less"), .init("version compare 2.0 2.00.0", "OK equal"),
        .init("version compare 1.2 1.2~rc1 order=linux", "OK greater"),
        .init("version compare 1.0.0-rc.1 1.0.0 order=auto", "OK less"),
        .init("version compare 1.2 1.2 build=7 build2=8", "OK different"),
      ]
    ) { (arguments) throws(Refusal) in
      let left = Release(version: arguments.operands[0], build: arguments["build"])
      let right = Release(version: arguments.operands[1], build: arguments["build2"])
      return .local(.compare(left, right, try arguments.versionOrder() ?? .numeric))
    },

    Verb(
      words: "version claim", operands: [.required("NAME")], attributes: [.init("app", "ID")],
      summary: "Claim work that is done once per version; only the first caller gets the answer 'first'.",
      answer: .object(Line([.word("result")])),
      loss: .nothing,
      examples: [
        .init("version claim migrate-database", "OK first"), .init("version claim migrate-database", "OK again"),
      ]
    ) { (arguments) throws(Refusal) in
      let name = try arguments.name(arguments.operands[0], named: "NAME")
      return .registry(.claim(name: name, app: arguments["app"]))
    },
  ]

  /// A version report in an answer.
  private static let report = Line(
    [.word("state"), .word("version")],
    [
      .word("build").optional, .word("id").optional, .word("previous").optional, .word("previous-build").optional,
      .word("previous-id").optional, .word("same-order").optional, .time("installed").optional,
    ])

  /// The values of `order=`, as the manual writes them.
  package static let orders = VersionOrder.allCases.reduce(into: "") { values, order in
    values += (values.isEmpty ? "" : "|") + order.rawValue
  }

  /// The attributes that select the versions of an app or of the system.
  private static let whose: [Attribute] = [.init("of", "app|os"), .init("app", "ID")]
}

/// The values of the attribute `of=`.
private enum VersionOwner: String, CaseIterable {
  case app
  case os
}

extension Arguments {
  /// The value of `order=`; nil without one.
  fileprivate func versionOrder() throws(Refusal) -> VersionOrder? {
    try self["order"].map { (text) throws(Refusal) in try choice(text, named: "order") }
  }

  /// Returns the owner of the versions in question: an app or the system.
  fileprivate func versionQuestion() throws(Refusal) -> VersionQuestion {
    guard let text = self["of"] else { return .app(named: self["app"]) }
    let owner: VersionOwner = try choice(text, named: "of")
    switch owner {
    case .app: return .app(named: self["app"])
    case .os:
      guard self["app"] == nil else { throw combination("app= cannot be combined with of=os") }
      return .system
    }
  }
}
