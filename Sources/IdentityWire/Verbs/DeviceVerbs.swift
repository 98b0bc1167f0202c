import IdentityCore

extension Verb {
  /// The verbs about the account and its devices (identityd-protocol(7), section Devices of an account).
  static let devices: [Verb] = [
    Verb(
      words: "account", summary: "Show the name of the account that this device belongs to, or \"\" for none.",
      answer: .object(Line([.word("account").nullable])),
      examples: [.init("account", "OK \"\"")]
    ) { (_) throws(Refusal) in .registry(.account) },

    Verb(
      words: "account set", operands: [.required("NAME")], access: .fleet,
      summary: "Set the name of the account; replacing an earlier name removes all other devices.",
      answer: .nothing,
      examples: [.init("account set alice@example.org", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.setAccount(try arguments.name(arguments.operands[0], named: "NAME")))
    },

    Verb(
      words: "account clear", access: .fleet,
      summary: "Leave the account; only this device stays in the list of devices.",
      answer: .nothing,
      consequence: "This device leaves its account, and these devices leave the list.",
      examples: [.init("account clear", "OK")]
    ) { (_) throws(Refusal) in .registry(.setAccount(nil)) },

    Verb(
      words: "devices", summary: "List the devices of the account, among them this device once it has an identifier.",
      answer: .list(
        Line(
          [.uuid("uuid")],
          [.boolean("self"), .word("name").optional, .time("seen").optional, .time("added").optional])),
      examples: [.init("devices", "OK 0")]
    ) { (_) throws(Refusal) in .registry(.devices) },

    Verb(
      words: "devices name", operands: [.required("NAME")], access: .admin,
      summary: "Name this device in the list of devices.",
      answer: .nothing,
      examples: [.init("devices name laptop", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.nameDevice(try arguments.name(arguments.operands[0], named: "NAME")))
    },

    Verb(
      words: "devices put", operands: [.required("UUID")],
      attributes: [.init("name", "NAME"), .init("seen", "TIME")], access: .fleet,
      summary: "Add a device to the list, or update the name and the time of a listed device.",
      answer: .nothing,
      examples: [.init("devices put 557e5958-d390-4cbf-b928-2a2b19a1399a name=laptop", "OK")]
    ) { (arguments) throws(Refusal) in
      var name: Text?
      if let given = arguments["name"] { name = try arguments.name(given, named: "name") }
      return .registry(.putDevice(try arguments.uuid(0), name: name, seen: try arguments.time("seen")))
    },

    removal(
      "devices remove", .fleet, "Remove a device from the list because it has left the account elsewhere.", "OK",
      RegistryCommand.removeDevice),
    removal(
      "devices forget", .admin, "Remove a device from the list.", "ERR not-found …", RegistryCommand.forgetDevice),
  ]

  private static func removal(
    _ words: String, _ access: Access, _ summary: String, _ reply: String,
    _ command: @escaping @Sendable (UUID) -> RegistryCommand
  ) -> Verb {
    Verb(
      words: words, operands: [.required("UUID")], access: access, summary: summary, answer: .nothing,
      consequence: "This device leaves the list.",
      examples: [.init("\(words) 557e5958-d390-4cbf-b928-2a2b19a1399a", reply)]
    ) { (arguments) throws(Refusal) in .registry(command(try arguments.uuid(0))) }
  }
}
