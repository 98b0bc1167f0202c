import Foundation
import TestSupport
import Testing

// Brokers that change messages or refuse devices, and disks that are full.
extension FleetServiceTests {
  @Test func `row 59: messages that a broker deletes, replays, moves or damages are put right`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let topics = topics(of: try account(of: devices[0]))
    let former = try broker.retained(topics)
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    let present = try broker.retained(topics)
    let replayed = BrokerUnderTest.message(try #require(former.first { !present.contains($0) }))
    let other = BrokerUnderTest.message(try #require(present.first { former.contains($0) }))
    var damaged = replayed.payload
    damaged[damaged.count - 1] ^= 1
    let last = try devices[0].daemon.ask("subscribe")
    for (attack, payload) in [
      ("deleted", []), ("replayed", replayed.payload), ("moved", other.payload), ("damaged", damaged),
      ("too long", [UInt8](repeating: 0x69, count: 70_000)),
    ] {
      try broker.publish(payload, to: replayed.topic)
      // Until it is put right, a deleted message is none.
      let count = payload.isEmpty ? nil : present.count
      try devices[0].wait("the \(attack) message is put right") {
        try broker.retained(topics, count: count) == present
      }
    }
    for device in devices { #expect(try device.devices() == ["desk", "notebook"]) }
    #expect(try devices[0].daemon.ask("subscribe") == last, "no event")
  }

  @Test func `row 60: a broker that refuses a device leaves it its list, and a reload is an attempt`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    try broker.restart(with: "allow_anonymous false")
    for device in devices {
      try device.wait(state: "refused")
      #expect(try device.devices() == ["desk", "laptop"])
      #expect(try device.ask("fleet status").contains { $0.hasPrefix("* reason=") })
      #expect(device.log.contains(/127\.0\.0\.1:\d+: .*[Rr]efused/), "\(device.log)")
    }
    try broker.restart(with: "allow_anonymous true")
    // Without it, the next attempt comes after five minutes.
    for device in devices { try device.reload("\(broker.configuration)\nSpread=0\nKeepAlive=61s") }
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
  }

  @Test func `a device that leaves without its broker says so, and leaves once the broker is back`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    try broker.restart(with: "allow_anonymous false")
    try devices[1].wait(state: "refused")
    let left = try devices[1].identityctl("account", "leave", "--yes")
    #expect(left.status == 0 && left.output.lowercased().contains("pending"), "\(left)")
    #expect(left.errors.contains("this device leaves as soon as the broker is reached"), "\(left)")
    #expect(try devices[1].daemon.ask("account") == "OK alice")
    try broker.restart(with: "allow_anonymous true")
    for device in devices { try device.reload("\(broker.configuration)\nSpread=0\nKeepAlive=61s") }
    try devices[1].wait(state: "no-account")
    try devices[0].wait(for: ["desk"])
  }

  @Test func `row 65: a certificate that is wrong or expired leaves the list, and status tells why`() throws {
    let certificates = try CertificatesUnderTest()
    try certificates.issue("right", for: "IP:127.0.0.1")
    try certificates.issue("wrong", for: "DNS:elsewhere")
    try certificates.issue("expired", for: "IP:127.0.0.1", isExpired: true)
    func listener(_ name: String) -> String {
      "allow_anonymous true\ncertfile \(certificates["\(name).crt"])\nkeyfile \(certificates["\(name).key"])"
    }
    let broker = try BrokerUnderTest(listener("right"))
    let settings = "Broker=mqtts://127.0.0.1:\(broker.port)\nCAFile=\(certificates["authority.crt"])\nSpread=0"
    let devices = try ["desk", "laptop"].map { name in
      let device = try FleetUnderTest(settings)
      #expect(try device.daemon.ask("devices name \(name)") == "OK")
      return device
    }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    var names = ["desk", "laptop"]
    let reasons = [("wrong", "host name", 2), ("expired", "certificate verify failed", 3)]
    for (name, reason, heartbeat) in reasons {
      try broker.restart(with: listener(name))
      #expect(try devices[1].daemon.ask("devices name \(name)") == "OK")
      for device in devices {
        try device.wait("status tells why") {
          let status = try device.daemon.client().ask("status")
          return status.contains("* fleet=waiting")
            && status.contains { $0.contains("reason=") && $0.contains(reason) }
        }
      }
      #expect(try devices[0].devices() == names)
      try broker.restart(with: listener("right"))
      // Another configuration ends the wait.
      for device in devices { try device.reload("\(settings)\nHeartbeat=\(heartbeat)h") }
      names = ["desk", name].sorted()
      try agree(devices, on: names)
    }
  }

  @Test func `row 61: a record for which a disk has no room is held, and stored once there is room`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try moveToSmallDisk(devices[0].daemon)
    try agree(devices, on: ["desk", "laptop"])
    try fillDisk(of: devices[0].daemon)
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try devices[0].wait("the record is held") { try devices[0].ask("fleet status").contains("* held=1") }
    #expect(try devices[0].ask("fleet status").contains { $0.hasPrefix("* reason=") })
    #expect(try devices[0].devices() == ["desk", "laptop"])
    #expect(try devices[0].daemon.ask("devices name table").hasPrefix("ERR no-space "))
    try makeRoom(for: devices[0].daemon)
    try agree(devices, on: ["desk", "notebook"])
    try devices[0].wait("nothing is held") {
      try !devices[0].ask("fleet status").contains { $0.hasPrefix("* held=") || $0.hasPrefix("ERR ") }
    }
  }

  // MARK: Messages

  /// Returns the number of messages that a device has dropped.
  func dropped(by device: FleetUnderTest) throws -> Int { try number("dropped", by: device) }

  /// Returns a number from the status of a device; 0 without its row.
  func number(_ name: String, by device: FleetUnderTest) throws -> Int {
    let row = "* \(name)="
    return try device.ask("fleet status").first { $0.hasPrefix(row) }.flatMap { Int($0.dropFirst(row.count)) } ?? 0
  }

  // MARK: Full disks

  /// Starts a daemon anew, with a disk of two megabytes.
  func moveToSmallDisk(_ daemon: DaemonUnderTest) throws {
    daemon.end()
    try FileManager.default.moveItem(at: daemon.state, to: daemon.folder.appending(path: "saved"))
    try FileManager.default.createDirectory(at: daemon.state, withIntermediateDirectories: false)
    let mount = #"mount -t tmpfs -o mode=0700,size=2m tmpfs "$0" && cp -a "$0/../saved/." "$0" && exec "$@""#
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", mount, daemon.state.path])
  }

  /// Fills the disk of a daemon with items.
  func fillDisk(of daemon: DaemonUnderTest) throws {
    let client = try daemon.client()
    let secret = String(repeating: "A", count: 4_000)
    var answer = ""
    for number in 1...1_000 where !answer.hasPrefix("ERR") {
      answer = try client.ask("item put service=s account=a\(number) data=\(secret)")[0]
    }
    try #require(answer.hasPrefix("ERR no-space "), "\(answer)")
  }

  /// Makes the disk of a daemon larger.
  func makeRoom(for daemon: DaemonUnderTest) throws {
    let inside = ["nsenter", "--target", "\(daemon.process.processIdentifier)", "--mount"]
    try #require(try run(inside + ["mount", "-o", "remount,size=16m", daemon.state.path]).status == 0)
  }
}
