import IdentityCore

extension Verb {
  /// The verbs of the fleet's service (identityd-protocol(7), section The fleet).
  static let fleet: [Verb] = [
    Verb(
      words: "fleet open", attributes: [.required("run", "HEX")], access: .fleet,
      summary: "Begin a run of the fleet on this connection; show earlier runs and the counter of this device.",
      answer: .report(
        Line([.uuid("uuid")], [.number("counter"), .word("home"), .word("account").optional]), rows: "runs",
        Line([.word("kind"), .word("run")])),
      examples: [
        .init(
          "fleet open run=404142434445464748494a4b4c4d4e4f", "OK <uuid> counter=0 home=<word>")
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
      examples: [.init("fleet next above=41", "OK 42")]
    ) { (arguments) throws(Refusal) in
      .registry(.nextCounter(above: Int64(try arguments.number("above", in: 0...Int.max - 1) ?? 0)))
    },
  ]
}
