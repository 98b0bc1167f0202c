import IdentityCore

extension Verb {
  /// The verbs about events (identityd-protocol(7), section EVENTS).
  static let events: [Verb] = [
    Verb(
      words: "subscribe", operands: [.any("TOPIC")],
      attributes: [.init("since", "SEQ"), .init("epoch", "WORD"), .init("snapshot", "yes")],
      summary: "Send the events of these topics, or of all topics; with since=, first the events after SEQ.",
      answer: .either(
        ifGiven: ["snapshot"], .report(position, rows: "snapshot", Line([.word("topic")], isOpen: true)),
        otherwise: .object(position)),
      loss: .nothing,
      examples: [
        .init("subscribe", "OK <number> epoch=<uuid>"),
        .init("subscribe account snapshot=yes", "* account value=\"\"", "OK <number> epoch=<uuid>"),
      ]
    ) { (arguments) throws(Refusal) in
      let since = try arguments.number("since", in: 0...Int.max)
      let epoch = arguments["epoch"]
      guard epoch == nil || since != nil else {
        throw arguments.combination("epoch= requires since=")
      }
      return .local(
        .subscribe(
          try topics(arguments), since: since.map { EventNumber(Int64($0), epoch: epoch) },
          snapshot: try arguments.flag("snapshot")))
    },

    Verb(
      words: "unsubscribe", operands: [.any("TOPIC")],
      summary: "Stop sending the events of these topics, or of all topics.",
      answer: .nothing,
      loss: .nothing, examples: [.init("unsubscribe", "OK")]
    ) { (arguments) throws(Refusal) in .local(.unsubscribe(try topics(arguments))) },
  ]

  /// The position of the subscription: the events after this number follow.
  private static let position = Line([.number("sequence")], [.word("epoch")])

  /// Returns the topics that the operands name, or all topics if there are no operands.
  private static func topics(_ arguments: Arguments) throws(Refusal) -> Set<Topic> {
    var topics: Set<Topic> = []
    for operand in arguments.operands { topics.insert(try arguments.choice(operand, named: "TOPIC")) }
    return topics.isEmpty ? Set(Topic.allCases) : topics
  }
}
