import IdentityCore
import Testing

struct MachineTests {
  /// Returns a `Life` that began on a machine with this machine-id and hardware, with an identifier of every level.
  private func life(on machine: Text? = "m", _ hardware: Text? = "h") throws(Refusal) -> Life {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app)])
    try life.start(machine, hardware)
    for peer in [alice, peer("org.a")] {
      for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer) }
    }
    return life
  }

  private func record(_ machine: Text?, _ hardware: Text?) -> MachineRecord {
    MachineRecord(fingerprint: .init(machine: machine, hardware: hardware))
  }

  @Test(arguments: [("m", "h"), ("m", nil), (nil, "h"), (nil, nil)] as [(Text?, Text?)])
  func `the first start records the machine and changes nothing else`(machine: Text?, hardware: Text?) throws {
    var life = Life()
    #expect(
      try life.start(machine, hardware, onHardwareChange: .renew) == [.machineRecorded(record(machine, hardware))])
    #expect(life.events.isEmpty)
  }

  @Test(arguments: MachinePolicy.allCases)
  func `a start on the same machine changes nothing`(policy: MachinePolicy) throws {
    var life = try life()
    let before = life.registry
    #expect(try life.start("m", "h", onMachineChange: policy, onHardwareChange: policy) == [])
    #expect(life.registry == before)
  }

  @Test(
    arguments: [
      // The marks found, the policies for a changed machine-id and for changed hardware, and the cause.
      ("n", "h", .renew, .keep, .machineChanged), ("n", "h", .renew, .renew, .machineChanged),
      ("n", nil, .renew, .keep, .machineChanged), ("n", "i", .renew, .keep, .machineChanged),
      ("n", "i", .renew, .renew, .machineChanged), ("m", "i", .keep, .renew, .hardwareChanged),
      ("m", "i", .renew, .renew, .hardwareChanged), (nil, "i", .keep, .renew, .hardwareChanged),
    ] as [(Text?, Text?, MachinePolicy, MachinePolicy, Cause)])
  func `row 41b: another machine renews every identifier`(
    machine: Text?, hardware: Text?, onMachine: MachinePolicy, onHardware: MachinePolicy, cause: Cause
  ) throws {
    var life = try life()
    let before = life.registry
    let last = before.lastEvent
    try life.start(machine, hardware, onMachineChange: onMachine, onHardwareChange: onHardware)
    #expect(Set(life.registry.scopes) == Set(before.scopes))
    for scope in before.scopes {
      let identifier = try #require(life.registry[scope])
      #expect(!before.identifiers(valued: identifier.value).contains { _ in true })
      #expect(identifier.cause == cause)
      #expect(identifier.author == nil)
      #expect(life.registry.history.contains { $0.scope == scope && $0.end?.cause == cause })
    }
    #expect(life.registry.machine?.suspicion == nil)
    #expect(life.registry.machine?.fingerprint == .init(machine: machine ?? "m", hardware: hardware ?? "h"))
    #expect(life.registry.devices.map(\.value) == [life.registry[.device]?.value])
    #expect(life.told(from: last + 1).allSatisfy { $0.contains("cause=\(cause.rawValue)") || $0.contains("replaced") })
  }

  @Test func `another machine-id yields other derived identifiers`() throws {
    var life = try life()
    let last = life.registry.lastEvent
    try life.start("n", "h")
    #expect(life.registry.scopes.map(\.level) == [.installation, .vendor, .device, .installation, .vendor, .device])
    #expect(life.spoken(.device) == "n.device")
    #expect(life.spoken(.deviceOfApp("org.a")) == "n.device.org.a")
    #expect(
      life.told(from: last + 3).prefix(2) == [
        "\(last + 3) device changed value=n.device previous=m.device cause=machine-changed > sharing",
        "\(last + 4) devices replaced value=n.device previous=m.device > sharing",
      ])
  }

  @Test(
    arguments: [
      ("n", "h", .keep, .keep, .machineChanged), ("n", "h", .keep, .renew, .machineChanged),
      ("m", "i", .renew, .keep, .hardwareChanged), ("m", "i", .keep, .keep, .hardwareChanged),
      ("n", "i", .keep, .keep, .machineChanged), (nil, "i", .renew, .keep, .hardwareChanged),
    ] as [(Text?, Text?, MachinePolicy, MachinePolicy, Cause)])
  func `if identifiers are kept, the suspicion is recorded and reported once`(
    machine: Text?, hardware: Text?, onMachine: MachinePolicy, onHardware: MachinePolicy, cause: Cause
  ) throws {
    var life = try life()
    let history = life.registry.history
    let last = life.registry.lastEvent
    try life.start(machine, hardware, onMachineChange: onMachine, onHardwareChange: onHardware)
    #expect(life.registry.history == history)
    #expect(life.registry.machine?.suspicion == .init(cause: cause, since: Timestamp(milliseconds: life.now)))
    #expect(
      life.told(from: last + 1)
        == [
          "\(last + 1) device suspect value=m.device cause=\(cause.rawValue) > sharing",
          "\(last + 2) device suspect value=m.device.org.a cause=\(cause.rawValue) app=org.a > app org.a",
        ])
    let before = life.registry
    #expect(try life.start(machine, hardware, onMachineChange: onMachine, onHardwareChange: onHardware) == [])
    #expect(life.registry == before)
  }

  @Test(arguments: [(nil, "h"), ("m", nil), (nil, nil)] as [(Text?, Text?)])
  func `a missing mark is no change, and the recorded one stays`(machine: Text?, hardware: Text?) throws {
    var life = try life()
    let before = life.registry
    #expect(try life.start(machine, hardware, onHardwareChange: .renew) == [])
    #expect(life.registry == before)
    try life.start("n", "h", onMachineChange: .keep)
    #expect(life.registry.machine?.suspicion?.cause == .machineChanged)
  }

  @Test(arguments: [(nil, "h"), ("m", nil), (nil, nil)] as [(Text?, Text?)])
  func `a mark that appears is recorded and is no suspicion`(machine: Text?, hardware: Text?) throws {
    var life = try life(on: machine, hardware)
    let history = life.registry.history
    #expect(try life.start("m", "h", onHardwareChange: .renew) == [.machineRecorded(record("m", "h"))])
    #expect(life.registry.history == history)
  }

  @Test(arguments: MachinePolicy.allCases)
  func `without identifiers another machine is just recorded`(policy: MachinePolicy) throws {
    var life = Life()
    try life.start("m", "h")
    #expect(
      try life.start("n", "i", onMachineChange: policy, onHardwareChange: policy)
        == [.machineRecorded(record("n", "i"))])
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(life.spoken(.device) == "n.device")
  }

  @Test func `a kept identifier of another machine-id stays suspect over later starts`() throws {
    var life = try life()
    try life.start("n", "h", onMachineChange: .keep)
    let since = life.registry.machine?.suspicion?.since
    try life.start("n", "h", onMachineChange: .renew)
    #expect(life.spoken(.device) == "m.device")
    #expect(life.registry.machine?.suspicion?.since == since)
    try life.start("o", "h", onMachineChange: .renew)
    #expect(life.registry.machine?.suspicion == nil)
  }

  @Test(arguments: [true, false])
  func `row 41c: copies of one image on other hardware never share an identifier`(wasHandedOut: Bool) throws {
    // All copies have one machine-id. A device identifier that was handed out is not derived from it.
    var image = Life()
    try image.start("m", "h")
    if wasHandedOut {
      try image.ask(.migrate(.device, given(1), app: nil, commits: true, forces: false), as: root)
    } else {
      try image.ask(.get(.installation, app: nil), as: root)
    }
    image.install(["org.a": Manifest("org.v", device: .app)])
    var values: Set<UUID> = []
    for hardware in ["i", "j"] as [Text] {
      var copy = image
      try copy.start("m", hardware, onHardwareChange: .renew)
      for peer in [alice, peer("org.a")] { try copy.ask(.get(.device, app: nil), as: peer) }
      for scope in copy.registry.scopes where scope.level == .device {
        values.insert(try #require(copy.registry[scope]?.value))
      }
    }
    #expect(values.count == 4)
  }
}
