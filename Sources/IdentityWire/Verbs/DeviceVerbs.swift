import IdentityCore

extension Verb {
  /// The verbs about the account and its devices (identityd-protocol(7), section Devices of an account).
  static let devices: [Verb] = [
    Verb(
      words: "account", summary: "Show the name of the account that this device belongs to, or \"\" for none.",
      answer: .object(Line([.word("account").nullable])),
      loss: .nothing, examples: [.init("account", "OK \"\"")]
    ) { (_) throws(Refusal) in .registry(.account) },

    Verb(
      words: "account set", operands: [.required("NAME")], attributes: [.init("dry-run", "yes")], access: .fleet,
      summary: "Set the name of the account; replacing an earlier name removes all other devices.",
      answer: leaving,
      loss: .askIfMore("This device leaves its account for another one, and all other devices leave the list:"),
      examples: [
        .init("account set alice@example.org", "OK"),
        .init("account set bob@example.org dry-run=yes", "OK 0 previous=alice@example.org"),
      ]
    ) { (arguments) throws(Refusal) in
      .registry(
        .setAccount(
          try arguments.name(arguments.operands[0], named: "NAME"), dryRun: try arguments.flag("dry-run")))
    },

    Verb(
      words: "account clear", attributes: [.init("dry-run", "yes")], access: .fleet,
      summary: "Leave the account; only this device stays in the list of devices.",
      answer: leaving,
      loss: .ask("This device leaves its account, and all other devices leave the list:"),
      examples: [
        .init("account clear dry-run=yes", "OK 0 previous=alice@example.org"), .init("account clear", "OK"),
      ]
    ) { (arguments) throws(Refusal) in .registry(.setAccount(nil, dryRun: try arguments.flag("dry-run"))) },

    Verb(
      words: "devices", summary: "List the devices of the account, among them this device once it has an identifier.",
      answer: .list(Line(device.words, device.attributes + [.boolean("suspect").optional])),
      loss: .nothing, examples: [.init("devices", "OK 0")]
    ) { (_) throws(Refusal) in .registry(.devices) },

    Verb(
      words: "devices name", operands: [.required("NAME")], access: .admin,
      summary: "Name this device in the list of devices.",
      answer: .nothing,
      loss: .named, examples: [.init("devices name laptop", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.nameDevice(try arguments.name(arguments.operands[0], named: "NAME")))
    },

    Verb(
      words: "devices put", operands: [.required("UUID")],
      attributes: [.init("name", "NAME"), .init("seen", "TIME")] + Verb.message + [
        .init("replaces", "UUID"), .init("suspect", "yes|no"),
      ], access: .fleet,
      summary:
        "Add a device to the list, or update it there; with record=, store its record if that is newer.",
      answer: .either(ifGiven: ["record"], .object(Line([.word("result")])), otherwise: .nothing),
      loss: .named,
      examples: [
        .init("devices put 557e5958-d390-4cbf-b928-2a2b19a1399a name=laptop", "OK"),
        .init(
          "devices put 557e5958-d390-4cbf-b928-2a2b19a1399a generation=1 counter=7 record=aUYBAQ== name=laptop",
          "OK changed"),
      ]
    ) { (arguments) throws(Refusal) in
      var name: Text?
      if let given = arguments["name"] { name = try arguments.name(given, named: "name") }
      let (device, seen) = (try arguments.uuid(0), try arguments.time("seen"))
      guard let record = try arguments.message(about: device, isGone: false) else {
        return .registry(.putDevice(device, name: name, seen: seen))
      }
      return .registry(.putRecord(record, name: name, seen: seen, replaces: try arguments.replaced(by: device)))
    },

    Verb(
      words: "devices remove", operands: [.required("UUID")], attributes: Verb.message, access: .fleet,
      summary:
        "Remove a device that has left the account elsewhere; with record=, store its tombstone.",
      answer: .nothing, loss: .ask("This device leaves the list."),
      examples: [
        .init("devices remove 557e5958-d390-4cbf-b928-2a2b19a1399a generation=1 counter=8 record=aUYBAg==", "OK"),
        .init("devices remove 557e5958-d390-4cbf-b928-2a2b19a1399a", "ERR not-found …"),
      ]
    ) { (arguments) throws(Refusal) in
      let device = try arguments.uuid(0)
      let tombstone = try arguments.message(about: device, isGone: true)
      return .registry(tombstone.map(RegistryCommand.putTombstone) ?? .removeDevice(device))
    },

    Verb(
      words: "devices forget", operands: [.optional("UUID")],
      attributes: [.init("unused", "DAYS"), .init("dry-run", "yes")], access: .admin,
      summary: "Remove a device from the list, or all devices that have not been heard of for so many days.",
      answer: .either(
        ifGiven: ["unused"], .report(Line([.number("count")], [.number("left")]), rows: "devices", device),
        otherwise: .nothing),
      loss: .ask("These devices leave the list."),
      examples: [
        .init("devices forget 557e5958-d390-4cbf-b928-2a2b19a1399a", "ERR not-found …"),
        .init("devices forget unused=365 dry-run=yes", "OK 0 left=0"),
      ]
    ) { (arguments) throws(Refusal) in
      let days = try arguments.number("unused", in: 1...100_000)
      let dryRun = try arguments.flag("dry-run")
      guard arguments.operands.isEmpty else {
        guard days == nil, !dryRun else {
          throw arguments.combination("unused= and dry-run= cannot be combined with UUID")
        }
        return .registry(.forgetDevice(try arguments.uuid(0)))
      }
      guard let days else { throw arguments.combination("give UUID, or unused=DAYS") }
      return .registry(dryRun ? .devices(unused: days) : .forgetDevices(unused: days))
    },
  ]

  /// A device in an answer.
  private static let device = Line(
    [.uuid("uuid")],
    [.boolean("self"), .word("name").optional, .time("seen").optional, .time("added").optional])

  /// The answer to a change of the account: in a dry run, the devices that would leave the list, and the account.
  private static let leaving = Answer.either(
    ifGiven: ["dry-run"],
    .report(Line([.number("count")], [.word("previous").optional]), rows: "devices", device), otherwise: .nothing)

  /// The attributes of a message of the fleet.
  private static let message: [Attribute] = [
    .init("generation", "N"), .init("counter", "N"), .init("record", "BASE64"),
  ]
}

extension Arguments {
  /// Returns the message of the fleet about a device; nil for a request without one.
  fileprivate func message(about device: UUID, isGone: Bool) throws(Refusal) -> FleetRecord? {
    guard let message = self["record"] else {
      for name in ["generation", "counter", "replaces", "suspect"] where self[name] != nil {
        throw combination("\(name)= is allowed with record= only")
      }
      return nil
    }
    guard let generation = try number("generation", in: 0...Int(UInt32.max)), let counter = try counter() else {
      throw combination("record= needs generation= and counter=")
    }
    guard FleetRecord.length(of: message) <= Bound.messageLength else {
      throw .limit("a record has at most \(Bound.messageLength) bytes")
    }
    guard FleetRecord.isMessage(message) else { throw .badArgument(verb: verb, .notBase64(name: "record")) }
    return FleetRecord(
      device: device, generation: UInt32(generation), counter: counter, isGone: isGone,
      isSuspect: try flag("suspect"), message: message)
  }

  /// Returns the counter of a message, which has all 64 bits.
  private func counter() throws(Refusal) -> UInt64? {
    guard let text = self["counter"] else { return nil }
    let isDecimal = text.bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    guard isDecimal, let counter = UInt64(text.description) else {
      throw notAllowed("counter", text, "0 to \(UInt64.max)")
    }
    return counter
  }

  /// Returns the identifier that a device had before.
  fileprivate func replaced(by device: UUID) throws(Refusal) -> UUID? {
    guard let text = self["replaces"] else { return nil }
    guard let replaced = UUID(text), !replaced.isPlaceholder else { throw .invalidUUID(text) }
    guard replaced != device else { throw combination("a device does not replace itself") }
    return replaced
  }
}
