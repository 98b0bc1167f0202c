import FleetCore
import FleetSeal
import FleetWire
import Glibc
import LinuxSystem

/// All simulated devices, their sockets and their deadlines, in one thread.
final class Town {
  private let poller: Poller
  private(set) var devices: [Device] = []
  private(set) var accounts: [SimulatedAccount] = []
  /// Returns the port of the broker for an account.
  var port: (SimulatedAccount) -> UInt16
  /// Nil for connections without TLS.
  private let security: TransportSecurity?
  private var deadlines = Deadlines()
  /// When the devices ask for signs of life again, where there was silence: once a second.
  private var nextCare = Clock.monotonicMicroseconds
  private var nextLink: UInt64 = 0
  /// The devices by the numbers of their connections.
  private var places: [UInt64: Device] = [:]
  /// The times in microseconds that renamed devices took to be known by another one.
  private var renamed: [DeviceTag: UInt64] = [:]
  private(set) var latencies: [Double] = []
  private var generator = SystemRandomNumberGenerator()
  /// As identity-fleet.conf has it by default, in seconds.
  private static let keepAlive: UInt16 = 60

  init(
    devices count: Int, each size: Int, _ settings: Settings, _ security: TransportSecurity?,
    port: @escaping (SimulatedAccount) -> UInt16
  ) throws {
    poller = try Poller()
    self.security = security
    self.port = port
    guard let seed = SecretKey.random(), let keys = DeviceKeys(seed: seed) else { throw BenchError("no memory") }
    for number in 0..<count {
      if number % size == 0 { accounts.append(try SimulatedAccount()) }
      let account = accounts[accounts.count - 1]
      account.devices.append(number)
      devices.append(Device(account, keys, settings))
    }
  }

  /// The devices that are connected and have read their roster.
  var liveCount: Int { devices.count { $0.fleet.phase == .live } }

  /// The number of devices that are live and know all devices of their account.
  private var completeCount: Int {
    devices.count { $0.fleet.phase == .live && $0.fleet.roster.devices == $0.account.devices.count }
  }

  /// Whether all devices are live and know all devices of their account.
  var isComplete: Bool { completeCount == devices.count }

  /// The figures of all devices together.
  var total: Device.Figures {
    devices.reduce(into: Device.Figures()) { sum, device in
      let one = device.total
      sum.wakeups += one.wakeups
      sum.packets += one.packets
      sum.sent += one.sent
      sum.received += one.received
      sum.faults.merge(one.faults, uniquingKeysWith: +)
    }
  }

  func start() throws { for device in devices { try device.start(in: self) } }

  /// Renames a device, and measures when the other devices of its account know.
  func rename(_ device: Device, _ name: String) throws {
    renamed[device.tag] = Clock.monotonicMicroseconds
    try device.rename(name, in: self)
  }

  /// Runs until a condition holds, which is looked at ten times a second.
  ///
  /// - Returns: the time that it took, in seconds.
  @discardableResult
  func run(until condition: () -> Bool, limit: Double, _ what: String) throws -> Double {
    let started = Clock.monotonicMicroseconds
    while true {
      try run(for: 0.1)
      let passed = Double(Clock.monotonicMicroseconds - started) / 1e6
      if condition() { return passed }
      guard passed < limit else {
        throw BenchError(
          "not within \(limit) s: \(what); of \(devices.count) devices, \(liveCount) are live, and \(completeCount) "
            + "know all devices of their account")
      }
    }
  }

  /// Runs until brokers have the records of all devices.
  ///
  /// - Returns: the time that it took, in seconds.
  func runUntilRecorded(at ports: [UInt16], limit: Double) throws -> Double {
    let started = Clock.monotonicMicroseconds
    try run(until: { isComplete }, limit: limit, "all devices know each other")
    while true {
      let shown = try ports.reduce(0) { try $0 + Probe($1, security).retained("identityd/v1/+/d/+/+", quiet: 0.5) }
      let passed = Double(Clock.monotonicMicroseconds - started) / 1e6
      if shown == devices.count { return passed }
      guard passed < limit else { throw BenchError("the brokers have \(shown) of \(devices.count) records") }
      try run(for: 1)
    }
  }

  /// Runs for a time in seconds.
  func run(for seconds: Double) throws {
    let end = Clock.monotonicMicroseconds + UInt64(seconds * 1e6)
    while true {
      let now = Clock.monotonicMicroseconds
      guard now < end else { return }
      let next = min(deadlines.next ?? end, end)
      for number in try poller.wait(milliseconds: next > now ? Int32((next - now + 999) / 1_000) : 0) {
        guard let device = places[number] else { continue }
        try device.exchange(in: self)
        if device.link?.number != number { places[number] = nil }
      }
      while let passed = deadlines.takePassed(Clock.monotonicMicroseconds) {
        try passed.device.pass(passed.deadline, number: passed.number, in: self)
      }
      care()
    }
  }

  private func care() {
    let now = Clock.monotonicMicroseconds
    guard now >= nextCare else { return }
    nextCare = now + 1_000_000
    for device in devices {
      device.link?.care(at: now)
      // The end of a connection is noticed by the next exchange.
      _ = device.link?.flush()
    }
  }

  // MARK: For the devices

  func connect(_ device: Device, will: (topic: String, payload: [UInt8])?) throws -> Link {
    nextLink += 1
    let letters = Array("0123456789abcdefghijklmnopqrstuvwxyz")
    let client = String((0..<23).map { _ in letters.randomElement(using: &generator) ?? "0" })
    places[nextLink] = device
    return try Link(
      to: port(device.account), security, number: nextLink, poller, client: client,
      keepAlive: security == nil ? 0 : Self.keepAlive, will: will)
  }

  func schedule(_ deadline: Deadline, after delay: Delay, of device: Device) -> UInt64 {
    let moment = Clock.monotonicMicroseconds + UInt64(Int.random(in: delay, using: &generator)) * 1_000
    return deadlines.add(deadline, of: device, at: moment)
  }

  func noteArrival(at device: Device, of tag: DeviceTag) {
    guard let started = renamed[tag] else { return }
    latencies.append(Double(Clock.monotonicMicroseconds - started) / 1e3)
  }
}

/// Deadlines of all devices, as a binary heap.
private struct Deadlines {
  struct Entry {
    let moment: UInt64
    let number: UInt64
    let deadline: Deadline
    let device: Device
  }

  private var heap: [Entry] = []
  private var last: UInt64 = 0

  /// The earliest moment, in microseconds.
  var next: UInt64? { heap.first?.moment }

  /// Adds a deadline, and returns its number.
  mutating func add(_ deadline: Deadline, of device: Device, at moment: UInt64) -> UInt64 {
    last += 1
    heap.append(Entry(moment: moment, number: last, deadline: deadline, device: device))
    var place = heap.count - 1
    while place > 0, heap[place].moment < heap[(place - 1) / 2].moment {
      heap.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
    return last
  }

  /// Removes and returns the earliest deadline, if it has passed.
  mutating func takePassed(_ now: UInt64) -> Entry? {
    guard let first = heap.first, first.moment <= now else { return nil }
    let end = heap.removeLast()
    guard !heap.isEmpty else { return first }
    heap[0] = end
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count && heap[child].moment < heap[least].moment {
        least = child
      }
      guard least != place else { return first }
      heap.swapAt(place, least)
      place = least
    }
  }
}
