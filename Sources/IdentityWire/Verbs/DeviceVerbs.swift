import IdentityCore

extension Verb {
  /// The verbs about the account and its devices (identityd-protocol(7), section Devices of an account).
  static let devices: [Verb] = [
    Verb(
      words: "account", summary: "Tell the name of the account that this device belongs to, or \"\".",
      examples: [.init("account", "OK \"\"")]
    ) { (_) throws(Refusal) in .registry(.account) },

    Verb(
      words: "account set", operands: [.required("NAME")], access: .admin,
      summary: "Name the account; under another name the list of devices begins anew.",
      examples: [.init("account set alice@example.org", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.setAccount(try arguments.name(arguments.operands[0], named: "NAME")))
    },

    Verb(
      words: "account clear", access: .admin,
      summary: "Belong to no account: this device is alone in the list.",
      examples: [.init("account clear", "OK")]
    ) { (_) throws(Refusal) in .registry(.setAccount(nil)) },

    Verb(
      words: "devices", summary: "List the devices of the account, this one among them.",
      examples: [.init("devices", "* <uuid> self=yes added=<time>", "OK 1")]
    ) { (_) throws(Refusal) in .registry(.devices) },

    Verb(
      words: "devices put", operands: [.required("UUID")],
      attributes: [.init("name", "NAME"), .init("seen", "TIME")], access: .admin,
      summary: "Add a device of the account, or say more of one that is listed.",
      examples: [.init("devices put 557e5958-d390-4cbf-b928-2a2b19a1399a name=laptop", "OK")]
    ) { (arguments) throws(Refusal) in
      var name: Text?
      if let given = arguments["name"] { name = try arguments.name(given, named: "name") }
      return .registry(.putDevice(try arguments.uuid(0), name: name, seen: try arguments.time("seen")))
    },

    removal("devices remove", "Take a device out of the list, because another place says that it left.", "OK"),
    removal("devices forget", "Take a device out of the list.", "ERR not-found …"),
  ]

  private static func removal(_ words: String, _ summary: String, _ reply: String) -> Verb {
    Verb(
      words: words, operands: [.required("UUID")], access: .admin, summary: summary,
      examples: [.init("\(words) 557e5958-d390-4cbf-b928-2a2b19a1399a", reply)]
    ) { (arguments) throws(Refusal) in .registry(.removeDevice(try arguments.uuid(0))) }
  }
}
