import IdentityCore
import Testing

/// The return of a machine on which the store was before.
struct FormerMachineTests {
  /// Returns a `Life` on the machine "m" with the hardware "h", with an identifier of every level for two apps.
  private func life() throws(Refusal) -> Life {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.start("m", "h")
    for peer in [alice, peer("org.a")] {
      for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer) }
    }
    return life
  }

  /// Returns the identifiers in force by scope.
  private func values(_ life: Life) -> [Scope: UUID] {
    Dictionary(uniqueKeysWithValues: life.registry.scopes.map { ($0, life.registry[$0]?.value ?? given(0)) })
  }

  @Test(
    arguments: [("n", "h", "m", "h"), ("n", "i", "m", "h"), ("m", "i", "m", "h"), ("n", "h", "m", nil)]
      as [(Text, Text, Text, Text?)])
  func `a former machine brings all of its identifiers back`(
    machine: Text, hardware: Text, formerMachine: Text, formerHardware: Text?
  ) throws {
    var life = try life()
    let before = values(life)
    try life.start(machine, hardware, onHardwareChange: .renew)
    let elsewhere = values(life)
    #expect(Set(elsewhere.values).isDisjoint(with: before.values))
    life.restart()
    let last = life.registry.lastEvent
    try life.start(formerMachine, formerHardware, onHardwareChange: .renew)
    #expect(values(life) == before)
    #expect(life.registry.scopes.allSatisfy { life.registry[$0]?.cause == .machineReturned })
    #expect(life.registry[.device]?.origin == .machine)
    #expect(life.told(from: last + 1).contains { $0.hasPrefix("\(last + 3) device changed value=m.device previous=") })
    #expect(life.registry.devices.map(\.value) == [before[.device]])
    // The other machine can come back as well.
    try life.start(machine, hardware, onHardwareChange: .renew)
    #expect(values(life) == elsewhere)
  }

  @Test func `a machine-id on hardware other than before is not the former machine`() throws {
    var life = try life()
    let before = values(life)
    try life.start("n", "h")
    try life.start("m", "i", onHardwareChange: .renew)
    #expect(Set(values(life).values).isDisjoint(with: before.values))
  }

  @Test func `identifiers that were uninstalled, renewed or made since do not come back`() throws {
    var life = try life()
    let before = values(life)
    try life.start("n", "h")
    try life.ask(.get(.installation, app: nil), as: bob)
    let bobs = life.registry[.installation("user:1001")]?.value
    life.install([:])
    life.install(["org.a": Manifest("org.v", device: .app)])
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    try life.start("m", "h")
    for scope in [.device, .deviceOfApp("org.a"), .installation("user:1000"), .vendor("user:1000")] as [Scope] {
      #expect(life.registry[scope]?.value == before[scope], "\(scope)")
    }
    for scope in [.installation("org.a"), .vendor("org.v")] as [Scope] {
      #expect(life.registry[scope]?.cause == .machineChanged, "\(scope)")
      #expect(life.registry[scope]?.value != before[scope], "\(scope)")
    }
    #expect(life.registry[.installation("user:1001")]?.value != bobs)
  }

  @Test func `an identifier that an admin renewed before the machine changed stays ended`() throws {
    var life = try life()
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    let renewed = life.registry[.device]?.value
    try life.start("n", "h")
    try life.start("m", "h")
    #expect(life.registry[.device]?.value == renewed)
  }

  @Test func `kept identifiers are not suspect any more on the machine that they are from`() throws {
    var life = try life()
    let before = values(life)
    try life.start("n", "h", onMachineChange: .keep)
    try life.start("o", "h", onMachineChange: .keep)
    #expect(life.registry.machine?.suspicion != nil)
    try life.start("m", "h", onMachineChange: .keep)
    #expect(life.registry.machine?.suspicion == nil && values(life) == before)
    try life.start("n", "h", onMachineChange: .keep)
    #expect(life.registry.machine?.suspicion != nil)
  }

  @Test func `identifiers that were kept and then renewed on a third machine come back`() throws {
    var life = try life()
    let before = values(life)
    try life.start("n", "h", onMachineChange: .keep)
    try life.start("o", "h")
    #expect(Set(values(life).values).isDisjoint(with: before.values))
    try life.start("m", "h")
    #expect(values(life) == before)
  }

  @Test func `a return keeps identifiers that never ended`() throws {
    var life = try life()
    let before = life.registry
    try life.start("n", "h", onMachineChange: .keep)
    try life.start("m", "h")
    #expect(life.registry.history == before.history)
    #expect(life.registry.machine?.suspicion == nil)
  }

  @Test func `with keep, other identifiers than those of the former machine are suspect`() throws {
    var life = try life()
    try life.start("n", "h")
    let elsewhere = values(life)
    try life.start("m", "h", onMachineChange: .keep)
    #expect(values(life) == elsewhere)
    #expect(life.registry.machine?.suspicion != nil)
  }

  @Test func `the newest former machines are remembered, each once`() throws {
    var life = try life()
    let before = values(life)
    for round in 1...Bound.formerMachines { try life.start(Text("n\(round)"), "h") }
    #expect(life.registry.formerMachines.count == Bound.formerMachines)
    try life.start("m", "h")
    #expect(values(life) == before)
    for _ in 1...3 {
      try life.start("n1", "h")
      try life.start("m", "h")
    }
    #expect(life.registry.formerMachines.count == Bound.formerMachines)
    for round in 1...(Bound.formerMachines + 1) { try life.start(Text("o\(round)"), "h") }
    try life.start("m", "h")
    #expect(Set(values(life).values).isDisjoint(with: before.values))
  }

  // MARK: Acknowledgement

  @Test func `a renewal is unacknowledged until an admin acknowledges it`() throws {
    var life = try life()
    try life.start("n", "h")
    let since = Timestamp(milliseconds: life.now)
    #expect(life.registry.unacknowledged == .init(cause: .machineChanged, since: since))
    life.restart()
    try life.start("n", "h")
    #expect(life.registry.unacknowledged?.since == since)
    let history = life.registry.history
    #expect(try life.ask(.acknowledgeMachine(), as: root) == ["OK"])
    #expect(life.registry.unacknowledged == nil && life.registry.history == history)
    life.restart()
    #expect(life.registry.unacknowledged == nil)
    let before = life.registry
    #expect(try life.ask(.acknowledgeMachine(), as: root) == ["OK"])
    #expect(life.registry == before)
  }

  @Test func `an acknowledgement ends the suspicion about kept identifiers`() throws {
    var life = try life()
    try life.start("m", "i")
    #expect(life.registry.machine?.suspicion != nil && life.registry.unacknowledged == nil)
    try life.ask(.acknowledgeMachine(), as: root)
    #expect(life.registry.machine?.suspicion == nil)
    #expect(
      life.told().suffix(2).map { $0.drop { $0 != " " } } == [
        " device acknowledged value=m.device cause=hardware-changed > sharing",
        " device acknowledged value=m.device.org.a cause=hardware-changed app=org.a > app org.a",
      ])
    // There is nothing to acknowledge any more.
    let last = life.registry.lastEvent
    try life.ask(.acknowledgeMachine(), as: root)
    #expect(life.registry.lastEvent == last)
    #expect(try life.start("m", "i") == [])
  }

  @Test func `a return needs no acknowledgement, and ends that of the renewal`() throws {
    var life = try life()
    try life.start("n", "h")
    try life.start("m", "h")
    #expect(life.registry.unacknowledged == nil)
  }

  // MARK: Comparison

  @Test func `a machine-id is compared with the present and the former ones`() throws {
    var life = try life()
    #expect(try life.lines(life.registry.comparison(of: "m")) == ["OK current"])
    try life.start("n", "h")
    #expect(try life.lines(life.registry.comparison(of: "n")) == ["OK current"])
    #expect(
      try life.lines(life.registry.comparison(of: "m")) == [
        "OK former left=t\(life.now) device=m.device"
      ])
    for digest in ["o", nil] as [Text?] {
      #expect(try life.lines(life.registry.comparison(of: digest)) == ["OK unknown"])
    }
    life.registry.doubt([.settings], incomplete: [])
    #expect(throws: Refusal.self) { try life.registry.comparison(of: "n") }
  }
}
