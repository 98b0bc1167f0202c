import IdentityCore
import IdentityWire
import Testing

private func command(_ line: String) throws(Refusal) -> Command {
  var parser = WordParser()
  let bytes = Array(line.utf8)
  do { try parser.parse(bytes.span) } catch { throw .syntax(error) }
  return try VerbTable().command(parser, in: bytes.span)
}

@Suite struct VerbTableTests {
  @Test(
    arguments: [
      ("ping", .local(.ping)), ("PING", .local(.ping)), ("\"ping\"", .local(.ping)), ("hello", .local(.hello)),
      ("Get Device", .registry(.device)), ("get installation", .registry(.installation(app: nil))),
      ("get installation APP=user:0", .registry(.installation(app: "user:0"))),
      ("get uuid", .local(.uuids(count: nil, version: .random))),
      ("get uuid version=7 count=10000", .local(.uuids(count: 10_000, version: .timeOrdered))),
      ("check x", .local(.check("x"))), ("help", .local(.help([]))), ("help get uuid", .local(.help(["get", "uuid"]))),
      ("check ping", .local(.check("ping"))), ("quit", .local(.quit)), ("whoami", .local(.whoami)),
      ("status", .local(.status)),
    ] as [(String, Command)])
  func `a request is the command it names`(line: String, expected: Command) throws {
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
      ("\u{212A}ing", .unknownVerb),
    ] as [(String, ErrorCode)])
  func `a request that is wrong is refused with the right code`(line: String, code: ErrorCode) {
    do {
      let command = try command(line)
      Issue.record("\(line) was taken for \(command)")
    } catch {
      #expect(error.code == code, "\(error.text)")
    }
  }

  @Test func `every verb is found by its own words and shown by help`() throws {
    for verb in VerbTable.verbs {
      #expect(
        VerbTable.verbs(beginningWith: verb.words.split(separator: " ").map { Text(String($0)) }).first?.words
          == verb.words)
    }
    #expect(VerbTable.verbs(beginningWith: []).count == VerbTable.verbs.count)
  }

  @Test func `help for words that begin no verb is unknown-verb`() {
    #expect(throws: Refusal.unknownVerb("frob")) { try VerbTable.help(["frob"]) }
  }

  @Test(arguments: ["x\"y", "a\nb", String(repeating: "é", count: 500), "\u{1b}[2J"])
  func `a client's own words in an error stay one line, bounded and without control characters`(text: String) throws {
    var line: [UInt8] = []
    Refusal.unknownVerb(Text(text)).append(to: &line)
    #expect(line.count < 300)
    #expect(line.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7f })
    #expect(line.last == UInt8(ascii: "\n"))
  }
}

@Suite struct ErrorCodeTests {
  @Test func `every code has an exit status of its own`() {
    #expect(Set(ErrorCode.allCases.map(\.exitStatus)).count == ErrorCode.allCases.count)
    #expect(ErrorCode.allCases.allSatisfy { (10...63).contains($0.exitStatus) })
  }
}
