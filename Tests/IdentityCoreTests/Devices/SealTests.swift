import IdentityCore
import Testing

struct SealTests {
  @Test func `a seal ends all identifiers, and a second seal changes nothing`() throws {
    var life = Life()
    try life.start("m", "h")
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: alice) }
    let last = life.registry.lastEvent
    let scopes = life.registry.scopes
    #expect(try life.ask(.seal(dryRun: false), as: root) == ["OK"])
    #expect(life.registry.isSealed)
    #expect(life.registry.scopes.isEmpty)
    #expect(life.registry.history.allSatisfy { $0.end?.cause == .sealed })
    #expect(life.registry.lastEvent == last + Int64(scopes.count))
    #expect(life.told(from: last + 1).allSatisfy { $0.contains(" ended ") && $0.contains("cause=sealed") })
    let before = life.registry
    #expect(try life.ask(.seal(dryRun: false), as: root) == ["OK"])
    #expect(life.registry == before)
  }

  @Test func `a dry run lists the identifiers that a seal would end, and changes nothing`() throws {
    var life = Life()
    #expect(try life.ask(.seal(dryRun: true), as: root) == ["OK 0"])
    var expected: [String] = []
    for level in Level.allCases {
      let value = try life.ask(.get(level, app: nil), as: alice)[0].split(separator: " ")[1]
      expected.append("\(level.rawValue) \(value)")
    }
    let before = life.registry
    let rows = try life.ask(.seal(dryRun: true), as: root)
    #expect(life.registry == before)
    #expect(rows.dropLast().map { $0.split(separator: " ")[1...2].joined(separator: " ") } == expected)
    #expect(rows.last == "OK \(expected.count)")
    try life.ask(.seal(dryRun: false), as: root)
    #expect(try life.ask(.seal(dryRun: true), as: root) == ["OK 0"])
  }

  @Test(
    arguments: [
      .get(.device, app: nil), .get(.installation, app: nil), .get(.vendor, app: nil),
      .renew(.device, app: nil, dryRun: false), .migrate(.device, given(1), app: nil, commits: true, forces: true),
      .migrate(.device, given(1), app: nil, commits: false, forces: true),
      .setAccount("bob"), .putDevice(given(3), name: nil, seen: nil), .removeDevice(given(2)),
      .forget(app: "user:0"),
    ] as [RegistryCommand])
  func `a sealed store takes no change`(command: RegistryCommand) throws {
    var life = Life()
    try life.ask(.get(.installation, app: nil), as: root)
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(
      life.refusal(of: command, as: root)
        == .unavailable("the store is sealed for a golden image; the next start of identityd begins a new store"))
  }

  @Test(arguments: [.account, .apps, .devices, .history(.device, app: nil)] as [RegistryCommand])
  func `queries that need no change are still answered`(command: RegistryCommand) throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: root)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(life.refusal(of: command, as: root) == nil)
  }

  @Test func `an image that starts again where it was sealed never derives from that machine-id`() throws {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.start("m", "h", sealedHere: true)
    try life.start("m", "h")
    try life.ask(.get(.device, app: nil), as: alice)
    try life.start(nil, "h")
    life.machine = "m"
    try life.ask(.get(.device, app: nil), as: peer("org.a"))
    #expect(life.registry.history.map(\.origin) == [.random, .random])
  }

  @Test func `on another machine-id an image is an ordinary machine`() throws {
    var life = Life()
    try life.start("m", "h", sealedHere: true)
    try life.start("n", "h")
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(life.spoken(.device) == "n.device")
    try life.start("m", "h")
    #expect(life.registry[.device]?.origin == .random)
  }
}
