import IdentityCore
import IdentityWire
import Testing

struct VerbTableTests {
  @Test(
    arguments: [
      ("ping", .local(.ping)), ("PING", .local(.ping)), ("\"ping\"", .local(.ping)), ("hello", .local(.hello)),
      ("Get Device", .registry(.get(.device, app: nil))), ("seal", .registry(.seal(dryRun: false))),
      ("get uuid", .local(.uuids(count: nil, version: .random))),
      ("get uuid version=7 count=10000", .local(.uuids(count: 10_000, version: .timeOrdered))),
      ("check x", .local(.check("x"))), ("help", .local(.help([]))), ("help get uuid", .local(.help(["get", "uuid"]))),
      ("check ping", .local(.check("ping"))), ("quit", .local(.quit)), ("whoami", .local(.whoami)),
      ("status", .local(.status)), ("app list", .registry(.apps)), ("APP  LIST", .registry(.apps)),
      ("app forget user:1000", .registry(.forget(app: "user:1000"))), ("account", .registry(.account)),
    ] as [(String, Command)])
  func `a request is parsed to the command that it names`(line: String, expected: Command) throws {
    #expect(try command(line) == expected)
  }

  @Test(
    arguments: [
      ("frobnicate", .unknownVerb), ("pin", .unknownVerb), ("pingping", .unknownVerb), ("getdevice", .unknownVerb),
      ("get", .badArgument), ("get frobnicate", .badArgument), ("GET FROB", .badArgument),
      ("get device x", .badArgument),
      ("ping x", .badArgument), ("ping x=1", .badArgument), ("get uuid count=1 COUNT=1", .badArgument),
      ("get uuid count=0", .badArgument), ("get uuid count=10001", .badArgument), ("get uuid count=+5", .badArgument),
      ("get uuid count=-1", .badArgument), ("get uuid count=99999999999999999999", .badArgument),
      ("get uuid count=\"\"", .badArgument), ("get uuid count=1.0", .badArgument),
      ("get uuid count=0x10", .badArgument),
      ("get uuid count=\u{661}", .badArgument), ("get uuid version=5", .badArgument), ("check", .badArgument),
      ("check a b", .badArgument), ("check a=b", .badArgument), ("a=b", .syntax), ("   ", .syntax),
      ("\u{212A}ing", .unknownVerb), ("app", .unknownVerb), ("app frobnicate", .unknownVerb), ("seal x", .badArgument),
      ("app list x", .badArgument), ("app forget", .badArgument), ("app forget a b", .badArgument),
      ("status x", .badArgument), ("whoami app=x", .badArgument), ("quit now", .badArgument),
    ] as [(String, ErrorCode)])
  func `a wrong request is refused with the right code`(line: String, code: ErrorCode) {
    do {
      let command = try command(line)
      Issue.record("\(line) was taken for \(command)")
    } catch {
      #expect(error.code == code, "\(error.text)")
    }
  }

  @Test func `every verb is found by its own words and shown by help`() throws {
    try expectHelp(of: VerbTable.verbs.map(\.words), in: VerbTable.help)
  }

  @Test func `every verb of the fleet's service is found by its own words and shown by help`() throws {
    try expectHelp(of: ControlVerb.allCases.map(\.rawValue), in: ControlVerb.help)
    for verb in ControlVerb.allCases {
      let line = verb.rawValue.uppercased()
      #expect(try match(line + " x=1 y") == (verb, line.split(separator: " ").count))
      #expect(verb.declaration.words == verb.rawValue)
    }
  }

  @Test(arguments: [
    ("account", "unknown verb \"account\""), ("fleet rename", "unknown verb \"fleet\""),
    ("ping", "unknown verb \"ping\""), ("help\u{212A}", "unknown verb \"help\u{212A}\""),
    ("\(String(repeating: "x", count: 40)) y", "unknown verb \"…\""),
  ])
  func `a verb that the fleet's service does not have is refused`(line: String, expected: String) {
    do throws(Refusal) {
      Issue.record("\(line) was taken for \(try match(line))")
    } catch {
      #expect(error.code == .unknownVerb && error.text.hasPrefix(expected), "\(error.text)")
    }
  }

  private func match(_ line: String) throws(Refusal) -> (verb: ControlVerb, count: Int) {
    let bytes = Array(line.utf8)
    var parser = WordParser()
    do throws(SyntaxFault) { try parser.parse(bytes.span) } catch { throw .syntax(error) }
    return try ControlVerb.match(parser, in: bytes.span)
  }

  /// Expects that `help` shows all verbs, and with the words of a verb its row first.
  private func expectHelp(of verbs: [String], in help: ([Text]) throws(Refusal) -> Reply) throws {
    func shown(_ words: [Text]) throws -> String {
      var bytes: [UInt8] = []
      try help(words).append(to: &bytes)
      return String(decoding: bytes, as: UTF8.self)
    }
    #expect(try shown([]).hasSuffix("\nOK \(verbs.count)\n"))
    for verb in verbs {
      let quote = verb.contains(" ") ? "\"" : ""
      let words = verb.split(separator: " ").map { Text($0.uppercased()) }
      #expect(try shown(words).hasPrefix("* \(quote)\(verb)\(quote) usage="), "\(verb)")
    }
  }

  @Test(arguments: [
    (
      "item add",
      "item add service=S account=A [group=G] data=BASE64 [label=L] [attr.NAME=V]… [this-device-only=yes] [lifetime=installation]"
    ),
    (
      "item put",
      "item put service=S account=A [group=G] data=BASE64 [label=L] [attr.NAME=V]… [this-device-only=yes] [lifetime=installation]"
    ),
    ("item read", "item read [service=S] [account=A] [group=G] [label=L] [attr.NAME=V]…"),
    (
      "item find",
      "item find [service=S] [account=A] [group=G|*] [label=L] [attr.NAME=V]… [data=yes] [limit=one|all|N]"
    ),
    (
      "item update",
      "item update [service=S] [account=A] [group=G] [where.label=L] [where.attr.NAME=V]… [data=BASE64] [label=L] [attr.NAME=V]…"
    ),
    ("item delete", "item delete [service=S] [account=A] [group=G] [label=L] [attr.NAME=V]… [dry-run=yes]"),
    ("key rotate", "key rotate"), ("backup", "backup key=BASE64"), ("restore begin", "restore begin key=BASE64"),
    ("restore add", "restore add data=BASE64"), ("restore end", "restore end [dry-run=yes] [adopt-device=yes]"),
    ("migrate device", "migrate device [VALUE] [item=ACCOUNT] [service=S] [group=G] [app=ID] [commit=yes] [force=yes]"),
    ("subscribe", "subscribe [TOPIC…] [since=SEQ] [epoch=WORD] [snapshot=yes]"),
    (
      "devices put",
      "devices put UUID [name=NAME] [seen=TIME] [generation=N] [counter=N] [record=BASE64] [replaces=UUID] [suspect=yes|no]"
    ),
  ])
  func `the usage of a verb shows its operands and attributes`(words: String, usage: String) throws {
    #expect(try #require(VerbTable.verbs.first { $0.words == words }).usage == usage)
  }

  @Test func `the examples of every verb are valid requests`() {
    for example in VerbTable.verbs.flatMap(\.examples) {
      #expect(refused(example.request) == nil, "\(example.request)")
    }
  }

  @Test func `help for an unknown verb is unknown-verb`() {
    #expect(throws: Refusal.unknownVerb("frob")) { try VerbTable.help(["frob"]) }
  }
}
