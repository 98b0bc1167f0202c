import IdentityCore

extension Verb {
  /// The verbs of the fleet's service (identityd-protocol(7), section The fleet).
  static let fleet: [Verb] = [
    Verb(
      words: "fleet open", attributes: [.required("run", "HEX")], access: .fleet,
      summary:
        "Begin a run of the fleet on this connection; show earlier runs and the counter of this device.",
      answer: .report(
        Line(
          [.uuid("uuid")],
          [
            .number("generation"), .number("counter"), .word("home"), .word("account").optional,
            .uuid("original").optional,
          ]),
        rows: "runs",
        Line([.word("kind"), .word("run")])),
      loss: .nothing,
      examples: [
        .init(
          "fleet open run=404142434445464748494a4b4c4d4e4f", "OK <uuid> generation=0 counter=0 home=<word>")
      ]
    ) { (arguments) throws(Refusal) in
      let run = try arguments.required("run")
      guard run.bytes.count == 32, let value = UUID(run) else {
        throw arguments.notAllowed("run", run, "32 hexadecimal digits")
      }
      return .registry(.openFleet(run: value))
    },

    Verb(
      words: "fleet next", attributes: [.init("above", "N")], access: .fleet,
      summary: "Show the next counter of this device: greater than the last one and than N.",
      answer: .object(Line([.number("counter")])),
      loss: .nothing, examples: [.init("fleet next above=41", "OK 42")]
    ) { (arguments) throws(Refusal) in
      .registry(.nextCounter(above: Int64(try arguments.number("above", in: 0...Int.max - 1) ?? 0)))
    },

    Verb(
      words: "fleet records", attributes: [.init("after", "UUID"), .init("limit", "N")], access: .fleet,
      summary: "List the stored records and tombstones of devices in the order of their UUIDs, those after a UUID.",
      answer: .list(
        Line(
          [.uuid("uuid")],
          [.number("generation"), .number("counter"), .boolean("gone"), .base64("record")])),
      loss: .nothing,
      examples: [
        .init("fleet records limit=100", "OK 0")
      ]
    ) { (arguments) throws(Refusal) in
      .registry(
        .records(
          after: try arguments.uuid(named: "after"), limit: try arguments.number("limit", in: 1...2 * Bound.devices)))
    },

    Verb(
      words: "fleet rekeyed", attributes: [.required("original", "UUID")], access: .fleet,
      summary: "Note that the service has made other keys than those of the original, which fleet open named.",
      answer: .nothing,
      loss: .nothing, examples: [.init("fleet rekeyed original=557e5958-d390-4cbf-b928-2a2b19a1399a", "OK")]
    ) { (arguments) throws(Refusal) in
      let text = try arguments.required("original")
      guard let original = UUID(text) else { throw .invalidUUID(text) }
      return .registry(.noteNewKeys(insteadOf: original))
    },

    Verb(
      words: "fleet twin", attributes: [.required("copy", "yes|no|unknown")], access: .fleet,
      summary: "Report that another machine speaks for this device, and whether this machine is the copy.",
      answer: .nothing,
      loss: .named, examples: [.init("fleet twin copy=unknown", "OK")]
    ) { (arguments) throws(Refusal) in
      .registry(.reportTwin(try arguments.choice(try arguments.required("copy"), named: "copy")))
    },

    Verb(
      words: "fleet said", attributes: [.init("state", "WORD"), .prefixed("said.", "NAME", "TEXT")], access: .fleet,
      summary: "Show these words about the fleet in status until this connection, which has the fleet open, ends.",
      answer: .nothing,
      loss: .nothing,
      examples: [.init("fleet said state=waiting said.broker=mqtts://broker.example.org", "ERR conflict …")]
    ) { (arguments) throws(Refusal) in
      .local(.said(state: try arguments.optional("state"), try arguments.words("said.", atMost: Bound.fleetWords)))
    },
  ]
}
