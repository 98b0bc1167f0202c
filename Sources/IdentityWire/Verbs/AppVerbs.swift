import IdentityCore

extension Verb {
  /// The verbs about apps (identityd-protocol(7), sections WHO IS ASKING and VERBS).
  static let apps: [Verb] = [
    Verb(
      words: "app list",
      summary: "List the installed apps: all apps for an admin, otherwise the apps of the peer's vendor.",
      answer: .list(
        Line(
          [.word("app")],
          [
            .word("vendor"), .time("installed"), .boolean("manifest"), .time("suspended").optional,
            .word("unit").optional, .word("container").optional, .list("groups").optional, .list("rights").optional,
          ])),
      loss: .nothing, examples: [.init("app list", "OK 0")]
    ) { (_) throws(Refusal) in .registry(.apps) },

    Verb(
      words: "app forget", operands: [.optional("ID")],
      attributes: [.init("unused", "DAYS"), .init("app", "PATTERN"), .init("dry-run", "yes")],
      summary: "Uninstall an app without a manifest, or all unused apps that never had one and have no items.",
      answer: .either(
        ifGiven: ["unused", "app"],
        .report(
          Line([.number("count")], [.number("left")]), rows: "apps",
          Line([.word("app")], [.time("installed").optional, .time("used").optional])),
        otherwise: .nothing),
      loss: .ask("These apps are uninstalled: their installation identifiers, versions and push tokens end."),
      examples: [
        .init("app forget user:4294967294", "ERR …"),
        .init("app forget unused=90 app=container:* dry-run=yes", "OK 0 left=0"),
      ]
    ) { (arguments) throws(Refusal) in
      let unused = try arguments.number("unused", in: 1...100_000)
      let pattern = arguments["app"]
      let dryRun = try arguments.flag("dry-run")
      guard let id = arguments.operands.first else {
        guard unused != nil || pattern != nil else {
          throw arguments.combination("give ID, or unused=DAYS or app=PATTERN")
        }
        return .registry(.forgetMatching(AppCondition(unused: unused, pattern: pattern), dryRun: dryRun))
      }
      guard unused == nil, pattern == nil, !dryRun else {
        throw arguments.combination("unused=, app= and dry-run= cannot be combined with ID")
      }
      return .registry(.forget(app: id))
    },
  ]
}
