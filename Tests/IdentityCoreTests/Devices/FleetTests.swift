import IdentityCore
import Testing

/// The counter and the runs of the fleet on this device.
struct FleetTests {
  private static func run(_ number: UInt64) -> UUID { UUID(high: 0x4041_4243_4445_4647, low: number) }
  private static func text(_ number: UInt64) -> String { "4041424344454647" + "00000000000000" + hexadecimal(number) }
  private static func hexadecimal(_ number: UInt64) -> String { (number < 16 ? "0" : "") + String(number, radix: 16) }
  private static let nowhere = "home=" + String(repeating: "0", count: 32)

  /// Opens the fleet, and returns the lines of the answer as they are sent, with `r1` for the identifier.
  private func open(_ number: UInt64, _ life: inout Life) -> [String] {
    let lines = life.answer("fleet open run=\(Self.text(number))", as: root)
    return lines.map { $0.replacing(life.registry[.device].map { "\($0.value)" } ?? "none", with: "r1") }
  }

  @Test func `opening makes the device identifier, stores the run and shows the earlier ones`() throws {
    var life = Life()
    #expect(open(1, &life) == ["OK r1 generation=0 counter=0 \(Self.nowhere)"])
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.nextCounter(above: 0), as: root)
    let opened = ["* run \(Self.text(1))", "OK r1 generation=0 counter=1 \(Self.nowhere) account=alice"]
    #expect(open(2, &life) == opened)
    // The same run again, as after a restart of the daemon.
    #expect(try life.registry.decide(.openFleet(run: Self.run(2)), life.context(root)).changes.isEmpty)
    #expect(open(2, &life) == opened)
  }

  @Test func `the newest runs are kept, and none of them twice`() throws {
    var life = Life()
    for number in 1...20 { try life.ask(.openFleet(run: Self.run(UInt64(number))), as: root) }
    #expect(life.registry.fleet?.runs == (5...20).reversed().map { Self.run(UInt64($0)) })
    let opened = open(7, &life)
    #expect(opened.count == Bound.fleetRuns)
    #expect(opened.first == "* run \(Self.text(20))" && !opened.contains("* run \(Self.text(7))"))
    #expect(life.registry.fleet?.runs.count == Bound.fleetRuns)
  }

  @Test func `each counter is greater than every earlier one and than the given one`() throws {
    var life = Life()
    #expect(try life.ask(.nextCounter(above: 0), as: root) == ["OK 1"])
    #expect(try life.ask(.nextCounter(above: 41), as: root) == ["OK 42"])
    #expect(try life.ask(.nextCounter(above: 7), as: root) == ["OK 43"])
    life.restart()
    #expect(try life.ask(.nextCounter(above: 0), as: root) == ["OK 44"])
    #expect(try life.ask(.nextCounter(above: .max - 1), as: root) == ["OK \(Int64.max)"])
    let used = life.refusal(of: .nextCounter(above: 0), as: root)
    #expect(used == .limit("the counter of this device is used up"))
    #expect(life.registry.fleet?.counter == .max)
    // Without a context nothing is decided, so no counter is given out before it is on disk.
    #expect(try Life().registry.answer(.nextCounter(above: 0), for: root) == nil)
  }

  @Test func `the home is another one on another machine`() throws {
    func home(_ machine: String, _ hardware: String) throws -> Substring? {
      var life = Life()
      try life.start(Text(machine), Text(hardware))
      return open(1, &life).last?.split(separator: " ").first { $0.hasPrefix("home=") }?.dropFirst(5)
    }
    let (one, two) = (String(repeating: "12", count: 32), String(repeating: "34", count: 32))
    #expect(try home(one, two) == Substring(String(repeating: "26", count: 16)))
    #expect(try home(one, one) == Substring(String(repeating: "00", count: 16)))
    #expect(try home(one, "unknown") == Substring(String(repeating: "12", count: 16)))
  }

  @Test func `a restore keeps the higher counter, and leaves the runs where they are`() throws {
    var life = Life()
    try life.ask(.openFleet(run: Self.run(1)), as: root)
    try life.ask(.nextCounter(above: 9), as: root)
    let backup = life.backup()
    try life.ask(.nextCounter(above: 19), as: root)
    #expect(try life.restore(backup).contains { $0.hasPrefix("* fleet") } == false)
    #expect(life.registry.fleet == FleetStanding(counter: 20, runs: [Self.run(1)]))
    var other = Life()
    #expect(try other.restore(backup).contains("* fleet restored counter=10"))
    #expect(other.registry.fleet == FleetStanding(counter: 10))
    var foreign = backup
    foreign.isFromHere = false
    var clone = Life()
    try clone.restore(foreign)
    #expect(clone.registry.fleet == nil)
    try clone.restore(foreign, adopts: true)
    #expect(clone.registry.fleet?.counter == 10)
  }

  @Test func `a twin makes the device suspect once, until its identifier changes or an admin knows`() throws {
    var life = Life()
    try life.start("m", "h")
    life.install(["org.a": Manifest("org.v", device: .app)])
    for peer in [alice, peer("org.a")] { try life.ask(.get(.device, app: nil), as: peer) }
    let last = life.registry.lastEvent
    #expect(try life.ask(.reportTwin(.unknown), as: root) == ["OK"])
    #expect(life.registry.machine?.suspicion?.cause == .cloned)
    let own = life.spoken(.deviceOfApp("org.a")) ?? ""
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) device suspect value=m.device cause=cloned copy=unknown > sharing",
        "\(last + 2) device suspect value=\(own) cause=cloned app=org.a copy=unknown > app org.a",
      ])
    #expect(try life.registry.decide(.reportTwin(.yes), life.context(root)).changes.isEmpty)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(life.registry[.device]?.cause == .cloned && life.registry.machine?.suspicion == nil)
    try life.ask(.reportTwin(.no), as: root)
    try life.start("m", "h")
    #expect(life.registry.machine?.suspicion?.cause == .cloned)
    try life.ask(.acknowledgeMachine(), as: root)
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(life.registry[.device]?.cause == .renewed && life.registry.machine?.suspicion == nil)
  }

  @Test func `the fleet's service sees the tokens and versions of all apps, and only a sender's word changes a token`()
    throws
  {
    var life = Life()
    var manifest = Manifest("org.fleet")
    manifest.rights = [.fleet]
    life.install(["org.fleet": manifest, "org.a": Manifest("org.v")])
    let (fleet, app) = (peer("org.fleet").session(9), peer("org.a").session(8))
    try life.ask(.putToken(TokenRegistration(provider: "p", value: "one"), app: nil), as: app)
    try life.ask(.reportVersion(Release(version: "1.2", build: "b"), app: nil), as: app)
    #expect(life.answer("token list app=*", as: fleet).count == 2)
    #expect(
      life.answer("version state app=*", as: fleet) == [
        "* installed 1.2 build=b installed=1970-01-01T00:00:00.003Z app=org.a", "OK 1",
      ])
    #expect(life.answer("token invalidate p two app=org.a", as: fleet) == ["OK unchanged"])
    #expect(life.answer("token invalidate p one app=org.a", as: fleet) == ["OK invalidated"])
    for denied in [
      "token list app=org.a", "token get p app=org.a", "token put p x app=org.a", "token delete p app=org.a",
      "version state app=org.a", "version history app=org.a", "version report 2 app=org.a", "get device app=org.a",
    ] {
      #expect(life.answer(denied, as: fleet)[0].hasPrefix("ERR denied "), "\(denied)")
    }
    for stranger in [app, alice] {
      #expect(life.answer("token list app=*", as: stranger)[0].hasPrefix("ERR denied "))
      #expect(life.answer("version state app=*", as: stranger)[0].hasPrefix("ERR denied "))
      #expect(life.answer("token invalidate p one app=org.fleet", as: stranger)[0].hasPrefix("ERR denied "))
    }
    #expect(life.answer("version state of=os app=*", as: fleet)[0].hasPrefix("ERR bad-argument "))
  }
}
