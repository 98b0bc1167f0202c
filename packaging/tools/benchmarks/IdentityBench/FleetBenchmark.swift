import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import LinuxSystem

/// Measures a fleet of real devices, each with identityd and identity-fleet, with a real broker.
struct FleetBenchmark {
  /// The measurements, each with a broker of its own.
  enum Measurement: String, CaseIterable {
    /// How long a change takes to an event at another device, over Mosquitto and over a cluster of nats-servers.
    case changes
    /// The processor time and the memory of identity-fleet while nothing happens, in an account of three.
    case idle
    /// How long a read at identityd takes while identity-fleet does not run, is idle, is flooded by its broker, and hangs.
    case reads
    /// How long a device needs to join a large account, and its memory then.
    case account
  }

  /// The first of the ports that brokers and relays listen on.
  private static let port: UInt16 = 22_000

  let options: Options
  let guardian: Guardian

  /// Runs the named measurements, or all.
  func run() throws -> [Row] {
    // For the files of the brokers, which end with the daemons then.
    guard unsafe setenv("TMPDIR", guardian.folder.path, 1) == 0 else { throw BenchError.system("setenv") }
    return try (options.measurements.isEmpty ? Measurement.allCases : options.measurements).flatMap { measurement in
      Program.say("fleet: \(measurement.rawValue)")
      switch measurement {
      case .changes: return try changes()
      case .idle: return try idle()
      case .reads: return try reads()
      case .account: return try account()
      }
    }
  }

  private func row(
    _ name: String, _ unit: String, _ value: Double, most: Double? = nil, of program: String = "identity-fleet"
  ) -> Row {
    Row(
      name: name, unit: unit, measurements: [.init(name: program, rounds: [value])],
      target: most.map { .atMost($0, program) })
  }

  // MARK: Changes and idle devices

  private func changes() throws -> [Row] {
    let hasCluster = Environment["IDENTITYD_NATS_SERVER"] != nil
    return try (hasCluster ? Broker.Engine.allCases : [.mosquitto]).flatMap { engine in
      let broker = try Broker(engine, base: Self.port)
      defer { broker.kill() }
      let times = try times(of: options.isQuick ? 20 : 150, FleetDevice.account(3, broker.ports, guardian))
      let name = "\(engine.rawValue): a change at another device"
      return [
        row("\(name), p50", "ms", times.percentile(0.5), most: 30),
        row("\(name), p99", "ms", times.percentile(0.99), most: 250),
        row("\(name), longest of \(times.count)", "ms", times.percentile(1)),
      ]
    }
  }

  /// Renames devices in turn.
  ///
  /// - Returns: the times until the other devices have the event, in milliseconds.
  private func times(of changes: Int, _ devices: [FleetDevice]) throws -> [Double] {
    defer { for device in devices { device.end() } }
    let writers = try devices.map { try $0.daemon.connect() }
    let listeners = try devices.map { try $0.daemon.connect() }
    for listener in listeners { try listener.ask("subscribe devices") }
    var times: [Double] = []
    for change in 0..<changes {
      let began = nanoseconds()
      let writer = change % devices.count
      guard try writers[writer].ask("devices name name\(change)") == "OK\n" else {
        throw BenchError("a device does not take its name")
      }
      for (place, listener) in listeners.enumerated() {
        try listener.receive()
        let event = String(decoding: listener.received, as: UTF8.self)
        guard event.contains("name=name\(change) ") || event.hasSuffix("name=name\(change)\n") else {
          throw BenchError("this is not the event of name\(change): \(event)")
        }
        if place != writer { times.append(Double(nanoseconds() - began) / 1e6) }
      }
      // A device changes its name once a second, which is as often as the rules publish a change at once.
      while nanoseconds() - began < 350_000_000 { usleep(5_000) }
    }
    return times
  }

  private func idle() throws -> [Row] {
    let broker = try Broker(.mosquitto, base: Self.port)
    defer { broker.kill() }
    let devices = try FleetDevice.account(3, broker.ports, guardian)
    defer { for device in devices { device.end() } }
    let service = devices[0].service
    // Behind the second reading, which comes 15 s after the first one. The third one comes after two minutes.
    sleep(25)
    let before = try (service.processorTime(), service.wakeups())
    let seconds = options.isQuick ? 20.0 : 60
    sleep(UInt32(seconds))
    return [
      row("idle: resident memory", "MB", try service.memory("VmRSS"), most: 16),
      row("idle: CPU time", "% of a core", try (service.processorTime() - before.0) / seconds / 1e4, most: 0.05),
      row("idle: wake-ups", "a second", try (service.wakeups() - before.1) / seconds, most: 1),
    ]
  }

  // MARK: Reads beside the fleet

  /// Measures reads at two devices in turn, of which the other one is without its service.
  private func reads() throws -> [Row] {
    let broker = try Broker(.mosquitto, base: Self.port)
    defer { broker.kill() }
    let relay = try Relay(at: Self.port + 50, to: broker.ports[0])
    let devices = try FleetDevice.account(2, [Self.port + 50], guardian)
    defer { for device in devices { device.end() } }
    let (service, daemons) = (devices[0].service, devices.map(\.daemon))
    for device in devices { try device.service.stop(SIGKILL) }
    // The daemons get their processor at once, as the reader does. The processor time of the service is a row of its own.
    for daemon in daemons {
      try Placement.run(["/usr/bin/chrt", "--all-tasks", "--rr", "--pid", "1", "\(daemon.process)"])
    }
    let states = ["not running", "idle", "flooded", "stopped"]
    var times: [String: [[Double]]] = [:]
    func read(_ state: String) throws {
      let found = try QuietUser.times(0, options.isQuick ? 500 : 3_000, "get device", at: daemons)
      times[state] = zip(times[state] ?? [[], []], found).map { $0 + $1 }
    }
    var used: [Double] = []
    for _ in 0..<options.rounds(usual: 10, quick: 2) {
      try read("not running")
      try service.start()
      try devices[0].waitUntilLive()
      try read("idle")
      // The service takes a flood in bursts, with rests between them.
      let (before, began) = (try service.processorTime(), nanoseconds())
      relay.floods(true)
      sleep(1)
      try read("flooded")
      used.append(try (service.processorTime() - before) / Double(nanoseconds() - began) * 1e5)
      guard try devices[0].isLive() else { throw BenchError("the flood has ended the connection") }
      kill(service.process, SIGSTOP)
      relay.floods(false)
      try read("stopped")
      try service.stop(SIGKILL)
    }
    guard used.median >= 1 else { throw BenchError("the flood does not reach the service") }
    let rows = states.flatMap { state in
      [("p50", 0.5), ("p99", 0.99)].map { name, part in
        let pair = (times[state] ?? []).map { $0.percentile(part) }
        return Row(
          name: "reads, service \(state): \(name)", unit: "µs",
          measurements: [.init(name: "without", rounds: [pair[1]]), .init(name: "beside", rounds: [pair[0]])],
          base: "without", target: state == "not running" ? nil : .atMost(1.05, "beside"))
      }
    }
    return [row("reads: CPU time of the flooded service", "% of a core", used.median)] + rows
  }

  // MARK: A large account

  private func account() throws -> [Row] {
    let count = options.isQuick ? 1_000 : 10_000
    let broker = try Broker(.mosquitto, base: Self.port)
    defer { broker.kill() }
    let first = try FleetDevice.account(1, broker.ports, guardian)[0]
    defer { first.end() }
    let invitation = try first.invite()
    try first.service.stop(SIGKILL)
    let record = try records(of: invitation)
    try Probe(broker.ports[0]).publish(count - 2, window: 200, record)
    let device = try FleetDevice("newcomer", broker.ports, guardian)
    defer { device.end() }
    let listener = try device.daemon.connect()
    try listener.ask("subscribe devices")
    let began = nanoseconds()
    func seconds() -> Double { Double(nanoseconds() - began) / 1e9 }
    try device.join(invitation)
    var names: Set<Substring> = []
    while names.count < count - 1 {
      try listener.receive()
      let event = String(decoding: listener.received, as: UTF8.self)
      if event.contains(" devices added ") {
        names.formUnion(event.split(separator: " ").filter { $0.hasPrefix("value=") })
      }
      guard seconds() < 180 else { throw BenchError("\(names.count) devices after three minutes") }
    }
    let servers = [device.service, device.daemon]
    var rows = [row("account: list of \(count) devices complete after", "s", seconds(), most: 60)]
    for server in servers {
      rows.append(
        row("account: CPU time of \(server.name) for that", "s", try server.processorTime() / 1e6, of: server.name))
    }
    try device.waitUntilLive()
    rows.append(row("account: state live after", "s", seconds()))
    // Behind the second reading.
    sleep(25)
    for server in servers {
      for (name, field) in [("resident memory", "VmRSS"), ("highest resident memory", "VmHWM")] {
        let memory = try server.memory(field)
        rows.append(row("account: \(name) of \(server.name)", "MB", memory, most: 64, of: server.name))
      }
    }
    try device.service.stop(SIGKILL)
    let again = nanoseconds()
    try device.service.start()
    try device.waitUntilLive()
    rows.append(row("account: restarted, live after", "s", Double(nanoseconds() - again) / 1e9))
    rows.append(
      row("account: restarted, highest resident memory", "MB", try device.service.memory("VmHWM"), most: 64))
    return rows
  }

  /// Returns a function that makes the record of another device of an account, given by the file of an invitation.
  private func records(of invitation: URL) throws -> (Int) -> (topic: String, payload: [UInt8]) {
    let line = try String(contentsOf: invitation, encoding: .utf8).split(separator: "\n").last ?? ""
    let bytes = Array(Data(base64Encoded: String(line)) ?? Data())
    var secret = Array(bytes.prefix(JoinCode.Meeting.length))
    guard let meeting = JoinCode.Meeting(consuming: &secret) else { throw BenchError("this is no invitation: \(line)") }
    var message = try meeting.key.open(
      Array(bytes.dropFirst(JoinCode.Meeting.length)), on: .invitation(meeting.rendezvous))
    guard let root = Invitation(taking: &message.body.fields)?.root, let account = AccountKeys(root: root),
      let seed = SecretKey.random(), let keys = DeviceKeys(seed: seed)
    else { throw BenchError("there is no memory for keys") }
    return { number in
      let device = IdentityCore.UUID(high: UInt64(number) << 16 | 0x4000, low: 1 << 63)
      let topic = MessageTopic.device(account.id, account.tag(of: device))
      let description = DeviceDescription(
        name: Text("device \(number)"), signingKey: keys.signingKey, boxKey: keys.boxKey,
        joined: Timestamp(milliseconds: 1), home: Home(high: 0, low: 0))
      let body = Body(
        subject: device, generation: 1, counter: 1, run: Run(high: 1, low: 1),
        time: Timestamp(milliseconds: 1_790_000_000_000), author: device, fields: description.fields)
      let message = MessageSeal(account).seal(.record, body, epoch: 1, on: topic, by: keys)
      return (topic.text, message?.bytes ?? [])
    }
  }
}
