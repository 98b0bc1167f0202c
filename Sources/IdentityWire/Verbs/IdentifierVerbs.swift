import IdentityCore

extension Verb {
  /// The verbs about identifiers (protocol, section 3).
  static let identifiers: [Verb] = [
    Verb(
      words: "get uuid", attributes: [.init("count", "N"), .init("version", "4|7")], kind: .local,
      summary: "Make fresh UUIDs: version 4 at random, version 7 strictly ascending over all callers.",
      examples: [
        .init("get uuid", "OK <uuid>"),
        .init("get uuid count=2 version=7", "* <uuid>", "* <uuid>", "OK 2"),
      ]
    ) { (arguments) throws(Refusal) in
      let count = try arguments.number("count", in: 1...Bound.uuidsPerRequest)
      guard let text = arguments["version"] else { return .local(.uuids(count: count, version: .random)) }
      switch text {
      case "4": return .local(.uuids(count: count, version: .random))
      case "7": return .local(.uuids(count: count, version: .timeOrdered))
      default: throw arguments.notAllowed("version", text, "4, 7")
      }
    },

    Verb(
      words: "get installation", attributes: [.init("app", "ID")], kind: .question,
      summary: "Tell the app's installation identifier: it lives until the app is uninstalled.",
      examples: [.init("get installation", "OK <uuid> level=installation app=<word> vendor=<word> created=<time>")]
    ) { (arguments) throws(Refusal) in .registry(.installation(app: arguments["app"])) },

    Verb(
      words: "get device", kind: .question,
      summary: "Tell the device identifier: it lives until the system is reset.",
      examples: [.init("get device", "OK <uuid> level=device created=<time> origin=<word>")]
    ) { (_) throws(Refusal) in .registry(.device) },

    Verb(
      words: "check", operands: [.required("VALUE")], kind: .local,
      summary: "Tell whether VALUE is a UUID, and its canonical form.",
      examples: [
        .init("check 557E5958D3904CBFB9282A2B19A1399A", "OK valid 557e5958-d390-4cbf-b928-2a2b19a1399a"),
        .init("check {557e5958-d390-4cbf-b928-2a2b19a1399a}", "OK invalid"),
      ]
    ) { (arguments) throws(Refusal) in .local(.check(arguments.operands[0])) },
  ]
}
