import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import LinuxSystem

/// The measurements, each with a broker of its own.
struct Measurements {
  let options: Options
  private(set) var table = Table()

  private let security: TransportSecurity?
  /// How the devices connect.
  private var manner: String { security == nil ? "without TLS and keep-alives" : "with TLS and keep-alives" }

  init(_ options: Options) throws {
    self.options = options
    security = options.isPlain ? nil : try TransportSecurity()
  }

  private func say(_ text: String) { Program.say("\(options.engine.rawValue): \(text)") }

  // MARK: Many accounts

  /// Connects devices in accounts of five: what each costs, how fast a change is known, and how they return.
  mutating func devices() throws {
    let count = options.devices
    let broker = try Broker(options.engine, base: options.port, security)
    defer { broker.kill() }
    let (before, time) = (broker.memory, broker.processorTime)
    let settings = Settings(spread: options.spread * 1_000)
    let ports = broker.ports
    let town = try Town(devices: count, each: 5, settings, security) { account in
      ports[Int(truncatingIfNeeded: account.id.low % UInt64(ports.count))]
    }
    say("connecting \(count) devices in accounts of 5")
    try town.start()
    let connecting = try town.runUntilRecorded(at: [ports[0]], limit: 600)
    table.add("all devices connected, and their records published", connecting, "s", note: "Spread=\(options.spread)")
    let (joined, joinedTime) = (town.total, broker.processorTime - time)
    table.add("a device's bytes sent, joining", Double(joined.sent) / Double(count), "bytes")
    table.add("a device's bytes received, joining", Double(joined.received) / Double(count), "bytes")
    table.add(
      "the broker's CPU time for a device, joining", joinedTime / Double(count) * 1e3, "ms",
      note: "all nodes, \(manner)")
    table.add(
      "memory of a node for a device", (broker.memory - before) / Double(count), "kB",
      note: "connection and record, \(manner)")
    let extrapolation = Extrapolation(
      memory: (broker.memory - before) / Double(count), processorTime: joinedTime / Double(count) * 1e3,
      nodes: ports.count)
    try idle(town, broker)
    try changes(town)
    for devices in [1e6, 1e8] { extrapolation.add(for: devices, manner, to: &table) }
    try refuseFaults(of: town)
    guard options.engine == .mosquitto else { return }
    say("killing the broker, which forgets everything")
    broker.kill()
    try town.run(for: 1)
    try broker.start()
    // Until the devices notice, they are as they were.
    try town.run(for: 0.1)
    let back = try town.runUntilRecorded(at: ports, limit: 900)
    table.add("all devices and records back, after a restart of an empty broker", back, "s")
    try refuseFaults(of: town)
  }

  private func refuseFaults(of town: Town) throws {
    let faults = town.total.faults
    guard faults.isEmpty else {
      let named = faults.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
      throw BenchError("the devices report faults: \(named.joined(separator: ", "))")
    }
  }

  private mutating func idle(_ town: Town, _ broker: Broker) throws {
    // Behind the second reading again, which comes two minutes after a device is live.
    if !options.isQuick { try town.run(for: 150) }
    say("measuring idle devices")
    let seconds = options.isQuick ? 10.0 : 60.0
    let (before, time) = (town.total, broker.processorTime)
    try town.run(for: seconds)
    let after = town.total
    let each = seconds * Double(town.devices.count)
    table.add("an idle device's deadlines", Double(after.wakeups - before.wakeups) / each * 3_600, "an hour")
    table.add("an idle device's packets received", Double(after.packets - before.packets) / each * 3_600, "an hour")
    table.add(
      "the broker's CPU time", (broker.processorTime - time) / seconds * 100, "% of a core",
      note: manner)
  }

  private mutating func changes(_ town: Town) throws {
    let names = min(town.devices.count, options.isQuick ? 100 : 500)
    say("renaming \(names) devices")
    for number in 0..<names {
      let device = town.devices[number * town.devices.count / names]
      try town.rename(device, "renamed \(number)")
      try town.run(for: 0.02)
    }
    try town.run(for: 5)
    let latencies = town.latencies.sorted()
    guard latencies.count == names * 4 else {
      throw BenchError("\(latencies.count) of \(names * 4) devices heard of a change")
    }
    table.add("a change at another device, median", latencies[latencies.count / 2], "ms")
    table.add("a change at another device, 99th percentile", latencies[latencies.count * 99 / 100], "ms")
    table.add("a change at another device, worst", latencies[latencies.count - 1], "ms")
  }

  // MARK: One large account

  /// Lets one device read an account with many devices for the first time.
  mutating func account() throws {
    let count = options.account
    let broker = try Broker(options.engine, base: options.port + 10, security)
    defer { broker.kill() }
    let port = broker.ports[0]
    let town = try Town(devices: 1, each: 1, Settings(spread: 0), security) { _ in port }
    guard let seed = SecretKey.random(), let keys = DeviceKeys(seed: seed) else { throw BenchError("no memory") }
    let records = Samples(town.accounts[0], keys)
    say("publishing \(count) records of one account")
    var opened: [(MessageTopic, [UInt8])] = []
    try Probe(port, security).publish(count, window: 50) { _ in
      let (topic, payload) = records.record()
      opened.append((topic, payload))
      return (topic.text, payload)
    }
    let before = Broker.ownMemory
    try town.start()
    let device = town.devices[0]
    let reading = try town.run(
      until: { device.fleet.roster.devices == count + 1 && device.fleet.phase == .live }, limit: 300,
      "the first reading")
    table.add("first reading of \(count) records", reading, "s")
    table.add("memory for \(count) records", (Broker.ownMemory - before) / 1_024, "MB")
    let started = Clock.monotonicMicroseconds
    for (topic, payload) in opened { _ = try town.accounts[0].seal.open(payload, on: topic) }
    table.add("\(count) records opened and checked", Double(Clock.monotonicMicroseconds - started) / 1e6, "s")
  }

  // MARK: A rotation

  /// Gives a large account another key, while one device in ten is away.
  mutating func rotation() throws {
    let count = options.members
    let broker = try Broker(options.engine, base: options.port + 50, security)
    defer { broker.kill() }
    let port = broker.ports[0]
    let town = try Town(devices: count, each: count, Settings(spread: options.spread * 1_000), security) { _ in port }
    say("connecting an account of \(count) devices")
    try town.start()
    _ = try town.runUntilRecorded(at: [port], limit: 600)
    let away = stride(from: 9, to: count, by: 10).map { town.devices[$0] }
    for device in away { device.stop() }
    try town.run(for: 3)
    let connected = town.devices.filter { $0.link != nil }
    say("handing another key to \(connected.count) connected devices, and to \(away.count) that are away")
    try town.devices[0].rotate(in: town)
    let handing = try town.run(until: { connected.allSatisfy(\.hasLaterEpoch) }, limit: 300, "the connected devices")
    table.add(
      "a rotation's key at all connected devices of an account", handing, "s",
      note: "\(connected.count) connected, \(away.count) away")
    try refuseFaults(of: town)
  }

  // MARK: Many records

  /// Fills a broker with records, and starts it with them.
  mutating func records() throws {
    let count = options.records
    let broker = try Broker(options.engine, base: options.port + 20, security, keepsMessages: true)
    defer { broker.kill() }
    let port = broker.ports[0]
    guard let seed = SecretKey.random(), let keys = DeviceKeys(seed: seed) else { throw BenchError("no memory") }
    var samples = Samples(try SimulatedAccount(), keys)
    let before = broker.memory
    say("publishing \(count) records")
    let started = Clock.monotonicMicroseconds
    try Probe(port, security).publish(count, window: 200) { number in
      // An account has a hundred records, so that keys are derived now and then only.
      if number % 100 == 0, let account = try? SimulatedAccount() { samples = Samples(account, keys) }
      let (topic, payload) = samples.record()
      return (topic.text, payload)
    }
    let seconds = Double(Clock.monotonicMicroseconds - started) / 1e6
    table.add("retained records acknowledged", Double(count) / seconds, "a second", note: "sealed here, too")
    table.add("memory of a node for a record", (broker.memory - before) / Double(count), "kB")
    broker.end()
    let again = Clock.monotonicMicroseconds
    try broker.start()
    table.add("start of the broker with \(count) records", Double(Clock.monotonicMicroseconds - again) / 1e6, "s")
  }

  // MARK: Sharding

  /// Divides accounts between two brokers by their names, and then moves those of one to the other.
  mutating func shards() throws {
    let brokers = try [options.port + 30, options.port + 40].map { try Broker(options.engine, base: $0, security) }
    defer { for broker in brokers { broker.kill() } }
    let ports = brokers.map { $0.ports[0] }
    // The first two digits of the account's name, as "%a2" in Broker= puts them into the name of the broker.
    let town = try Town(devices: options.devices / 10, each: 5, Settings(spread: options.spread * 1_000), security) {
      account in
      account.id.high >> 56 < 128 ? ports[0] : ports[1]
    }
    say("connecting \(town.devices.count) devices to two brokers")
    try town.start()
    _ = try town.runUntilRecorded(at: ports, limit: 300)
    let divided = try ports.map { try Probe($0, security).retained("identityd/v1/+/d/+/+", quiet: 2) }
    say("moving the accounts of one broker to the other")
    town.port = { _ in ports[0] }
    brokers[1].kill()
    try town.run(for: 0.1)
    let moving = try town.runUntilRecorded(at: [ports[0]], limit: 300)
    table.add(
      "accounts of a lost shard at another broker, with their records", moving, "s",
      note: "\(divided[0]) + \(divided[1]) records")
  }
}

/// Records of many devices of an account, as their devices would publish them.
struct Samples {
  private let account: SimulatedAccount
  private let keys: DeviceKeys

  init(_ account: SimulatedAccount, _ keys: DeviceKeys) {
    self.account = account
    self.keys = keys
  }

  /// Seals the record of another device.
  func record() -> (MessageTopic, [UInt8]) {
    var generator = SystemRandomNumberGenerator()
    let device = UUID(high: generator.next() & ~0xf000 | 0x4000, low: generator.next() & (.max >> 2) | 1 << 63)
    let topic = MessageTopic.device(account.id, account.seal.account.tag(of: device))
    let description = DeviceDescription(
      name: Text("device"), signingKey: keys.signingKey, boxKey: keys.boxKey, joined: Timestamp(milliseconds: 1),
      home: Home(high: 0, low: 0), readableVersion: EnvelopeVersion.two.rawValue)
    let body = Body(
      subject: device, generation: 1, counter: 1, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1_790_000_000_000), author: device, fields: description.fields)
    return (topic, account.seal.seal(.record, body, epoch: 1, .two, on: topic, by: keys)?.bytes ?? [])
  }
}
