import IdentityCore
import Testing

/// Renewals on a machine that may be a copy of another one.
struct CopyTests {
  private static let run = UUID(high: 1, low: 1)

  /// Returns a device of an account, with a fleet and a name, and its identifier.
  private func member() throws -> (Life, UUID) {
    var life = Life()
    try life.start("m", "h")
    try life.ask(.openFleet(run: Self.run), as: root)
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.nameDevice("desk"), as: root)
    try life.ask(.putDevice(given(1), name: "laptop", seen: nil), as: root)
    return (life, try #require(life.registry[.device]?.value))
  }

  private func names(_ life: Life) -> [String] { life.registry.devices.map { $0.name.map { "\($0)" } ?? "?" } }

  @Test(arguments: [Cause.cloned, .hardwareChanged, .machineChanged])
  func `a renewal while the machine may be a copy leaves the original in the list`(cause: Cause) throws {
    var (life, original) = try member()
    switch cause {
    case .cloned: try life.ask(.reportTwin(.unknown), as: root)
    case .hardwareChanged: try life.start("m", "i")
    default: try life.start("n", "h", onMachineChange: .keep)
    }
    #expect(life.registry.machine?.suspicion?.cause == cause)
    let last = life.registry.lastEvent
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    let present = try #require(life.registry[.device]?.value)
    #expect(life.registry.devices.map(\.value) == [original, given(1), present])
    #expect(names(life) == ["desk", "laptop", "desk"])
    #expect(life.registry.fleet?.original == original)
    #expect(life.registry.machine?.suspicion == nil)
    let told = life.told(from: last + 1)
    #expect(!told.contains { $0.contains("devices removed") || $0.contains("devices replaced") }, "\(told)")
    // The next renewal is not that of a copy, and the keys are still those of the original.
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(life.registry.devices.map(\.value) == [original, given(1), life.registry[.device]?.value])
    #expect(life.registry.fleet?.original == original)
  }

  @Test func `a renewal of a repaired original replaces its former identifier, for admins only`() throws {
    var (life, original) = try member()
    try life.start("m", "i")
    var manifest = Manifest("org.f")
    manifest.rights = [.fleet]
    life.install(["org.fleet": manifest])
    let renewal = RegistryCommand.renew(.device, app: nil, dryRun: false, replaces: true)
    guard case .denied? = life.refusal(of: renewal, as: peer("org.fleet")) else {
      Issue.record("an app may not end the identifier of an original")
      return
    }
    try life.ask(renewal, as: root)
    let present = try #require(life.registry[.device]?.value)
    #expect(present != original && life.registry.devices.map(\.value) == [present, given(1)])
    #expect(life.registry.fleet?.original == nil && life.registry.machine?.suspicion == nil)
  }

  @Test func `a start on another machine leaves the original in the list, and the way back ends the device in between`()
    throws
  {
    var (life, original) = try member()
    for _ in 1...2 {
      try life.start("n", "h")
      let present = try #require(life.registry[.device]?.value)
      #expect(life.registry.devices.map(\.value) == [original, given(1), present])
      #expect(life.registry.fleet?.original == original)
      try life.start("m", "h")
      #expect(life.registry[.device]?.value == original)
      #expect(life.registry.devices.map(\.value) == [original, given(1)])
      #expect(life.registry.fleet?.original == nil)
    }
  }

  @Test func `the service notes its new keys once, and only for the original that was named`() throws {
    var (life, original) = try member()
    try life.start("n", "h")
    let named = "original=\(original)"
    #expect(life.answer("fleet open run=\(Text(hexadecimal: Self.run))", as: root).last?.contains(named) == true)
    #expect(life.answer("fleet rekeyed original=\(given(1))", as: root) == ["OK"])
    #expect(life.registry.fleet?.original == original)
    #expect(life.answer("fleet rekeyed \(named)", as: root) == ["OK"])
    #expect(life.registry.fleet?.original == nil)
    #expect(life.answer("fleet open run=\(Text(hexadecimal: Self.run))", as: root).last?.contains("original=") == false)
    #expect(try life.registry.answer(.noteNewKeys(insteadOf: original), for: root).map(life.lines) == ["OK"])
  }

  @Test func `without an account, or without a fleet, there is no original to leave`() throws {
    var life = Life()
    try life.start("m", "h")
    try life.ask(.openFleet(run: Self.run), as: root)
    try life.start("n", "h")
    #expect(life.registry.devices.map(\.value) == [life.registry[.device]?.value])
    #expect(life.registry.fleet?.original == nil)
    var listed = Life()
    try listed.start("m", "h")
    try listed.ask(.get(.device, app: nil), as: alice)
    try listed.ask(.setAccount("alice"), as: root)
    try listed.start("n", "h")
    #expect(listed.registry.devices.count == 2 && listed.registry.fleet == nil)
  }

  @Test func `only a device identifier has an original`() {
    var life = Life()
    let answer = life.answer("renew vendor replaces=yes", as: root)
    #expect(answer.first?.contains("replaces=yes requires the level device") == true, "\(answer)")
  }
}
