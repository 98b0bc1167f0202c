import IdentityCore
import IdentityWire
import Testing

private let value = UUID(high: 0x557e_5958_d390_4cbf, low: 0xb928_2a2b_19a1_399a)
private let text = "557e5958-d390-4cbf-b928-2a2b19a1399a"

struct IdentifierVerbTests {
  @Test(
    arguments: [
      ("get device", .registry(.get(.device, app: nil))), ("get vendor", .registry(.get(.vendor, app: nil))),
      ("get installation", .registry(.get(.installation, app: nil))),
      ("get installation APP=user:0", .registry(.get(.installation, app: "user:0"))),
      ("get device app=org.a", .registry(.get(.device, app: "org.a"))),
      ("get vendor app=\"\"", .registry(.get(.vendor, app: ""))), ("GET KEY Name", .local(.derived(.key("Name")))),
      ("get key \"a=b\"", .local(.derived(.key("a=b")))),
      (
        "get key \(String(repeating: "é", count: 127))",
        .local(.derived(.key(Text(String(repeating: "é", count: 127)))))
      ),
      ("get session", .local(.derived(.session))), ("get boot", .local(.derived(.boot(app: nil)))),
      ("get boot app=x", .local(.derived(.boot(app: "x")))),
    ] as [(String, Command)])
  func `get is parsed to a command for each level`(line: String, expected: Command) throws {
    #expect(try command(line, by: alice) == expected)
  }

  @Test(
    arguments: [
      ("renew device", .renew(.device, app: nil, dryRun: false)),
      ("renew vendor dry-run=yes", .renew(.vendor, app: nil, dryRun: true)),
      ("RENEW installation DRY-RUN=no APP=org.a", .renew(.installation, app: "org.a", dryRun: false)),
      ("history device", .history(.device, app: nil)), ("history vendor app=org.a", .history(.vendor, app: "org.a")),
      ("resolve \(text)", .resolve(value)), ("resolve 557E5958D3904CBFB9282A2B19A1399A", .resolve(value)),
      ("migrate device \(text)", .migrate(.device, value, app: nil, commits: false, forces: false)),
      ("migrate device \(text) commit=yes", .migrate(.device, value, app: nil, commits: true, forces: false)),
      (
        "migrate installation \(text) force=yes commit=no app=org.a",
        .migrate(.installation, value, app: "org.a", commits: false, forces: true)
      ),
      (
        "migrate device item=serial service=legacy",
        .migrateFromItem(
          .device, ItemName(service: "legacy", account: "serial", group: nil), app: nil, commits: false, forces: false)
      ),
      (
        "MIGRATE installation FORCE=yes Group=org.shared item=\"a b\" service=s app=org.a commit=yes",
        .migrateFromItem(
          .installation, ItemName(service: "s", account: "a b", group: "org.shared"), app: "org.a", commits: true,
          forces: true)
      ),
      (
        "commit=yes migrate device 557E5958d3904cbfb9282A2B19A1399A",
        .migrate(.device, value, app: nil, commits: true, forces: false)
      ),
    ] as [(String, RegistryCommand)])
  func `requests about identifiers are parsed to commands`(line: String, expected: RegistryCommand) throws {
    #expect(try command(line) == .registry(expected))
  }

  @Test func `the length of a name is limited, and an error repeats only a part of it`() throws {
    let long = String(repeating: "é", count: 128)
    let refusal = try #require(refused("get key \(long)"))
    #expect(refusal.code == .badArgument)
    #expect(refusal.text.utf8.count < 200)
    #expect(try command("get key \(long.dropLast())a") == .local(.derived(.key(Text("\(long.dropLast())a")))))
  }

  @Test(
    arguments: [
      "resolve", "migrate device", "migrate installation", "devices put", "devices remove", "devices forget",
    ],
    [
      "x", "\"\"", "{\(text)}", "\(text.dropLast())", "urn:uuid:\(text)", "\" \(text)\"",
      "00000000-0000-0000-0000-000000000000", "ffffffffffffffffffffffffffffffff",
    ])
  func `text that is no UUID, and the nil and max UUIDs, are invalid-uuid in every verb`(verb: String, word: String) {
    #expect(refused("\(verb) \(word)")?.code == .invalidUUID)
  }

  @Test(arguments: ["HISTORY DEVICE", "history Device"])
  func `a level is accepted in upper and lower case`(line: String) throws {
    #expect(try command(line) == .registry(.history(.device, app: nil)))
  }
}
