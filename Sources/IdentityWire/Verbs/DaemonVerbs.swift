import IdentityCore

extension Verb {
  /// The verbs about the daemon and the connection (identityd-protocol(7), sections WHO IS ASKING and VERBS).
  static let daemon: [Verb] = [
    Verb(
      words: "ping", summary: "Answer, and do nothing else.",
      examples: [.init("ping", "OK")]
    ) { (_) throws(Refusal) in .local(.ping) },

    Verb(
      words: "hello", summary: "Say which daemon this is and which protocol it speaks.",
      examples: [.init("hello", "OK identityd \(Version.program) protocol=1")]
    ) { (_) throws(Refusal) in .local(.hello) },

    Verb(
      words: "help", operands: [.any("VERB")],
      summary: "List the verbs, or those that begin with VERB.",
      examples: [
        .init("help ping", "* ping usage=ping access=app summary=\"Answer, and do nothing else.\"", "OK 1")
      ]
    ) { (arguments) throws(Refusal) in .local(.help(arguments.operands)) },

    Verb(
      words: "whoami", summary: "Say who the daemon takes the peer for, by the kernel's word.",
      examples: [.init("whoami", "OK <word> uid=<number> gid=<number> pid=<number> …")]
    ) { (_) throws(Refusal) in .local(.whoami) },

    Verb(
      words: "status",
      summary:
        "Show the daemon's state, a row a value; most rows are for admins and members of MonitorGroup=.",
      examples: [.init("status", "* version=\(Version.program)", "…", "OK")]
    ) { (_) throws(Refusal) in .local(.status) },

    Verb(
      words: "stats", attributes: [.init("apps", "yes")],
      summary: "Show what was counted and measured; apps=yes: by app; most is for admins and MonitorGroup= alone.",
      examples: [
        .init("stats", "* build-info=1 version=\(Version.program)", "…", "* log-dropped=0", "OK"),
        .init("stats apps=yes", "* <word> connections=1 subscribers=0 requests=<number>", "OK 1"),
      ]
    ) { (arguments) throws(Refusal) in .local(.stats(ofApps: try arguments.flag("apps"))) },

    Verb(
      words: "seal", access: .admin,
      summary: "Prepare a golden image: every identifier ends, and the next start is a first one.",
      examples: [.init("seal", "OK")]
    ) { (_) throws(Refusal) in .registry(.seal) },

    Verb(
      words: "quit", summary: "Answer, then close the connection.",
      examples: [.init("quit", "OK")]
    ) { (_) throws(Refusal) in .local(.quit) },
  ]
}
