import Foundation
import TestSupport
import Testing

/// Kills of everything that the fleet consists of, while the devices are renamed all the time. Nothing is lost.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons"), .serialized, .oneCluster, .tags(.trial))
struct FleetKillTests {
  /// Something that is killed.
  private enum Victim {
    case broker
    case node(Int)
    case service(Int)
    case daemon(Int)
  }

  /// A thread that renames a random one of several devices every tenth of a second, to the device's place and a number.
  private final class Renaming: @unchecked Sendable {
    // Sendable: the lock guards the state.
    private let lock = NSLock()
    private var numbers: [(acknowledged: Int, sent: Int)]
    private var isOver = false
    private let done = DispatchSemaphore(value: 0)

    init(_ sockets: [String], _ seed: UInt64) {
      numbers = sockets.map { _ in (0, 0) }
      Thread.detachNewThread { [self] in
        var generator = SeededGenerator(seed)
        while !lock.withLock({ isOver }) {
          let place = sockets.indices.randomElement(using: &generator) ?? 0
          rename(place, sockets[place])
          usleep(100_000)
        }
        done.signal()
      }
    }

    private func rename(_ place: Int, _ socket: String) {
      let number = lock.withLock {
        numbers[place].sent += 1
        return numbers[place].sent
      }
      // A daemon that was killed does not answer. It may have stored the name or not.
      guard (try? Client(socket).ask("devices name d\(place)-\(number)")) == ["OK"] else { return }
      lock.withLock { numbers[place].acknowledged = number }
    }

    /// The number of acknowledged changes.
    var changes: Int { lock.withLock { numbers.map(\.acknowledged).reduce(0, +) } }

    /// Ends the thread, and returns the possible names of each device.
    func end() -> [[String]] {
      lock.withLock { isOver = true }
      done.wait()
      return numbers.enumerated().map { place, number in
        (number.acknowledged...number.sent).map { "d\(place)-\($0)" }
      }
    }
  }

  /// The messages that the devices have stored, by device, generation and counter. No device makes two with one counter.
  private struct Witness {
    private var records: [Substring: Substring] = [:]
    private(set) var reused: [String] = []

    mutating func look(at devices: [FleetUnderTest]) {
      for device in devices {
        for row in (try? device.daemon.client().ask("fleet records")) ?? [] {
          guard let match = row.firstMatch(of: /^\* (\S+ generation=\d+ counter=\d+) .*record=(\S+)/) else { continue }
          if let earlier = records.updateValue(match.2, forKey: match.1), earlier != match.2 {
            reused.append("\(match.1): \(earlier), \(match.2)")
          }
        }
      }
    }
  }

  /// Kills a victim, and starts it again.
  private func kill(_ victim: Victim, of devices: [FleetUnderTest], _ broker: any MessageBroker) throws {
    switch victim {
    case .broker: try broker.forget()
    case .node(let node):
      let cluster = try #require(broker as? ClusterUnderTest)
      cluster.kill(node)
      try cluster.start(node)
    case .service(let place):
      devices[place].end(with: SIGKILL)
      try devices[place].start()
    case .daemon(let place):
      devices[place].daemon.end(with: SIGKILL)
      try devices[place].daemon.start()
    }
  }

  /// Kills one victim after the other, and returns once everything agrees.
  private func kill(
    _ victims: [Victim], times kills: Int, over broker: any MessageBroker, _ name: String
  ) throws {
    let fleet = FleetServiceTests()
    let names = (0..<3).map { "d\($0)-0" }
    let devices = try fleet.fleet(names, at: broker)
    try fleet.agree(devices, on: names)
    let topics = fleet.topics(of: try fleet.account(of: devices[0]))
    var generator = SeededGenerator(11)
    var witness = Witness()
    let renaming = Renaming(devices.map(\.daemon.socket), 12)
    for round in 0..<kills {
      // A third of the kills hit a fleet that works, the others one that has not come back yet.
      if Int.random(in: 0..<3, using: &generator) == 0 { for device in devices { try device.wait(state: "live") } }
      let changes = renaming.changes + Int.random(in: 1...10, using: &generator)
      try devices[0].wait("\(changes) changes") { renaming.changes >= changes }
      usleep(.random(in: 0..<100_000, using: &generator))
      try kill(victims[round % victims.count], of: devices, broker)
      witness.look(at: devices)
    }
    let possible = renaming.end()
    // Later changes could hide a loss, so all are killed once more without any.
    for device in devices { try device.wait(state: "live") }
    for victim in victims { try kill(victim, of: devices, broker) }
    let start = Date()
    for device in devices {
      try device.wait("all agree") {
        let listed = try devices.map { try $0.devices() }
        return listed.allSatisfy { $0 == listed[0] } && zip(listed[0], possible).allSatisfy { $1.contains($0) }
      }
    }
    try devices[0].wait("the broker has all records") {
      let kept = try devices.map { try records(of: $0) }
      let shown = try broker.retained(topics).compactMap { $0.split(separator: " ").last.map(String.init) }.sorted()
      return kept.allSatisfy { $0 == shown } && shown.count == devices.count
    }
    let duration = Date().timeIntervalSince(start)
    witness.look(at: devices)
    #expect(witness.reused == [])
    for device in devices {
      #expect(try !device.daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") }, "no false twin")
    }
    try Trial(name).report(
      tried: kills + victims.count, lost: witness.reused.count,
      "\(renaming.changes) changes, agreed after \(Int(duration.rounded(.up))) s")
  }

  /// Returns the records that a device has stored, in hexadecimal digits, sorted.
  private func records(of device: FleetUnderTest) throws -> [String] {
    try device.daemon.client().ask("fleet records").compactMap { row in
      row.firstMatch(of: /record=(\S+)/).flatMap { Data(base64Encoded: String($0.1)) }?
        .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }.sorted()
  }

  // Each device starts anew now and then: it may publish 200 changes a day.

  @Test func `rows 55 and 58: kill -9 of a forgetful broker, services and daemons loses no name`() throws {
    try kill(
      (0..<3).flatMap { [.service($0), .daemon(($0 + 1) % 3), .broker] }, times: Trial.rounds(15, long: 691),
      over: BrokerUnderTest(), "kill -9 in a fleet over Mosquitto")
  }

  @Test(.enabled(if: ClusterUnderTest.missing == nil, Comment(rawValue: ClusterUnderTest.missing ?? "")))
  func `rows 56 and 58: kill -9 of the nodes of a cluster, services and daemons loses no name`() throws {
    try kill(
      [.node(1), .service(0), .node(2), .daemon(1), .node(3), .service(2)], times: Trial.rounds(3, long: 294),
      over: OneCluster.running(), "kill -9 in a fleet over a cluster")
  }
}
