import IdentityCore
import IdentityWire
import Testing

private let value = UUID(high: 0x557e_5958_d390_4cbf, low: 0xb928_2a2b_19a1_399a)
private let text = "557e5958-d390-4cbf-b928-2a2b19a1399a"

@Suite struct IdentifierVerbTests {
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

  @Test(
    arguments: [
      ("get frob", "get: LEVEL cannot be \"frob\"; allowed: uuid, key, session, boot, installation, vendor, device"),
      ("get", "get: LEVEL is missing"), ("migrate", "migrate: LEVEL is missing"),
      ("migrate vendor \(text)", "migrate: LEVEL cannot be \"vendor\"; allowed: device, installation"),
      ("renew", "renew: LEVEL is missing"),
      ("renew session", "renew: LEVEL cannot be \"session\"; allowed: installation, vendor, device"),
      ("renew device x", "renew: unexpected word \"x\""),
      ("renew device dry-run=1", "renew: dry-run cannot be \"1\"; allowed: yes, no"),
      ("renew device dry-run=YES", "renew: dry-run cannot be \"YES\"; allowed: yes, no"),
      ("renew device dry-run=\"\"", "renew: dry-run cannot be \"\"; allowed: yes, no"),
      ("renew device dry-run=yes Dry-Run=yes", "renew: \"dry-run\" is given twice"),
      ("renew device commit=yes", "renew: unknown attribute \"commit\""),
      ("history", "history: LEVEL is missing"),
      ("history uuid", "history: LEVEL cannot be \"uuid\"; allowed: installation, vendor, device"),
      ("history device since=1", "history: unknown attribute \"since\""),
      ("resolve", "resolve: UUID is missing"), ("resolve \(text) \(text)", "resolve: unexpected word \"\(text)\""),
      ("resolve \(text) app=x", "resolve: unknown attribute \"app\""),
      ("migrate device", "migrate device: give VALUE, or item=ACCOUNT and service=S"),
      ("migrate device commit=yes", "migrate device: give VALUE, or item=ACCOUNT and service=S"),
      ("migrate device \(text) item=a service=s", "migrate device: VALUE cannot be combined with item="),
      ("migrate device \(text) item=a", "migrate device: VALUE cannot be combined with item="),
      ("migrate device item=a", "migrate device: service= is missing"),
      ("migrate device item=a group=g", "migrate device: service= is missing"),
      (
        "migrate device service=s group=g",
        "migrate device: service= and group= require item=ACCOUNT"
      ),
      (
        "migrate installation \(text) group=g",
        "migrate installation: service= and group= require item=ACCOUNT"
      ),
      (
        "migrate device \(text) service=s",
        "migrate device: service= and group= require item=ACCOUNT"
      ),
      ("migrate device item=\"\" service=s", "migrate device: item cannot be \"\"; allowed: 1 to 255 bytes"),
      ("migrate device item=a service=\"\"", "migrate device: service cannot be \"\"; allowed: 1 to 255 bytes"),
      (
        "migrate device item=a service=s group=*",
        "migrate device: group cannot be \"*\"; allowed: the name of one group; only 'item find' takes *"
      ),
      ("migrate device item=a service=s force=1", "migrate device: force cannot be \"1\"; allowed: yes, no"),
      ("migrate device \(text) \(text)", "migrate device: unexpected word \"\(text)\""),
      ("migrate device \(text) commit=true", "migrate device: commit cannot be \"true\"; allowed: yes, no"),
      ("migrate installation \(text) force=x", "migrate installation: force cannot be \"x\"; allowed: yes, no"),
      ("get key", "get key: NAME is missing"),
      ("get key \"\"", "get key: NAME cannot be \"\"; allowed: 1 to 255 bytes"),
      ("get session app=x", "get session: unknown attribute \"app\""),
      ("get boot x", "get boot: unexpected word \"x\""),
      ("get device x", "get device: unexpected word \"x\""),
    ])
  func `an error names the wrong argument`(line: String, message: String) throws {
    let refusal = try #require(refused(line))
    #expect(refusal.code == .badArgument)
    #expect(refusal.text == message)
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
