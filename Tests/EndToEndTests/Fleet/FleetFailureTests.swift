import FleetWire
import Foundation
import LinuxSystem
import TestSupport
import Testing

/// The processor time of a service since a moment, which must be far from that of a loop that spins.
private struct Effort {
  private let device: FleetUnderTest
  private let began = Clock.monotonicMicroseconds
  private let before: UInt64

  init(of device: FleetUnderTest) throws {
    self.device = device
    before = try Self.total(of: device)
  }

  /// The processor time so far, in microseconds, with that of threads that have ended (clock_getcpuclockid(3)).
  private static func total(of device: FleetUnderTest) throws -> UInt64 {
    var (clock, time) = (clockid_t(), timespec())
    try #require(unsafe clock_getcpuclockid(device.processID, &clock) == 0 && clock_gettime(clock, &time) == 0)
    return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
  }

  /// The processor time since the moment, in microseconds.
  var used: UInt64 { get throws { try Self.total(of: device) - before } }

  /// Checks that each attempt to connect costs a few times as much as one that succeeds at most, however long it takes.
  /// Reports the processor time in the table of the long run.
  func check(_ name: String, attempts: Int, success: UInt64) throws {
    let (used, passed) = (try used, Clock.monotonicMicroseconds - began)
    #expect(used <= UInt64(attempts + 1) * 4 * success, "\(name): \(used) µs for \(attempts), \(success) µs for one")
    let share = String(format: "%.2f", Double(used) * 100 / Double(passed))
    try Trial("fleet: \(name)").report(tried: attempts, lost: 0, "\(share) % of a core in \(passed / 1_000_000) s")
  }
}

// Brokers and lines that fail in the middle of a connection, or before there is one.
extension FleetServiceTests {
  @Test(arguments: [false, true])
  func `a service gives up a line that fails, and connects again once it works`(isEncrypted: Bool) throws {
    let certificates = try CertificatesUnderTest()
    try certificates.issue("broker", for: "IP:127.0.0.1")
    let files = "certfile \(certificates["broker.crt"])\nkeyfile \(certificates["broker.key"])\n"
    let broker = try BrokerUnderTest("\(isEncrypted ? files : "")allow_anonymous true")
    let line = try FailingLine(to: broker.port)
    func settings(_ port: UInt16) -> String {
      "Broker=mqtt\(isEncrypted ? "s" : "")://127.0.0.1:\(port)\nCAFile=\(certificates["authority.crt"])\nSpread=0\n"
        + "KeepAlive=15s"
    }
    let devices = try [(line.port, "desk"), (broker.port, "laptop")].map { port, name in
      let device = try FleetUnderTest(settings(port))
      #expect(try device.daemon.ask("devices name \(name)") == "OK")
      return device
    }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    let success = try Effort(of: devices[0])
    let first = line.attempts
    line.change(to: .works)
    try devices[0].wait("the line is used again") { line.attempts > first }
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    let cost = try success.used
    // A device notices a half-open line after the time of KeepAlive=, and a silent broker after ten seconds.
    let states: [(state: FailingLine.State, attempts: Int)] =
      [(.reset, 4), (.silent, 2), (.slow, 1)] + (Trial.isLong ? [(.halfOpen, 1)] : [])
    for (round, (state, count)) in states.enumerated() {
      let effort = try Effort(of: devices[0])
      let before = line.attempts
      line.change(to: state)
      try devices[0].wait("\(count) attempts") { line.attempts - before >= count }
      if case .slow = state { try devices[0].wait(state: "live") }
      // Each pause is twice as long as the last one, so hardly one more comes before this process looks.
      let attempts = line.attempts - before
      #expect(attempts <= count + 2)
      try effort.check("\(state) line\(isEncrypted ? " with TLS" : "")", attempts: attempts, success: cost)
      line.change(to: .works)
      #expect(try devices[1].daemon.ask("devices name laptop\(round)") == "OK")
      try agree(devices, on: ["desk", "laptop\(round)"])
    }
    let (effort, before) = (try Effort(of: devices[0]), line.attempts)
    broker.kill()
    try devices[0].wait("4 attempts") { line.attempts - before >= 4 }
    try effort.check("refused line\(isEncrypted ? " with TLS" : "")", attempts: line.attempts - before, success: cost)
    try broker.start()
    try agree(devices, on: ["desk", "laptop\(states.count - 1)"])
  }

  @Test func `a resolver that does not answer holds nobody but the attempt to connect`() throws {
    let broker = try BrokerUnderTest()
    let folder = try TemporaryFolder()
    // An address of this process, which takes packets, and nobody answers them.
    let resolver = "127.53.\(getpid() >> 8 & 255).\(getpid() & 255)"
    try folder.write("resolv.conf", "nameserver \(resolver)\noptions timeout:5 attempts:1\n")
    try folder.write("hosts", "127.0.0.1 localhost\n")
    let places = ["hosts", "resolv.conf"].map { "mount --bind \(folder[$0]) /etc/\($0)" }.joined(separator: " && ")
    let silent = Process()
    silent.executableURL = URL(filePath: "/usr/bin/socat")
    silent.arguments = ["-u", "UDP-RECV:53,bind=\(resolver)", "OPEN:\(folder["queries"]),creat"]
    silent.standardError = FileHandle.nullDevice
    try silent.runUnmasked()
    defer { silent.terminate() }
    let device = try FleetUnderTest(
      "Broker=mqtt://broker.test:\(broker.port)\nAllowPlaintext=yes\nSpread=0",
      at: ["unshare", "--mount", "sh", "-c", "\(places) && exec \"$@\"", "-"])
    let effort = try Effort(of: device)
    #expect(try device.ask("account create alice") == ["OK"])
    try device.wait("a query is sent") {
      (try? Data(contentsOf: URL(filePath: folder["queries"])))?.isEmpty == false
    }
    #expect(try !device.ask("fleet status").contains { $0.contains("Lookup error") })
    // Each request for the status would take processor time, too.
    try device.wait("an attempt fails") { device.log.contains("Lookup error") }
    let failure = try effort.used
    // The same file, because it is mounted.
    let hosts = try FileHandle(forWritingTo: URL(filePath: folder["hosts"]))
    let success = try Effort(of: device)
    try hosts.write(contentsOf: Data("127.0.0.1 localhost broker.test\n".utf8))
    try device.wait(state: "live")
    #expect(try failure <= 4 * success.used, "\(failure) µs")
  }

  @Test func `a rotation that waits for the disk goes on after another configuration`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let phone = try devices[2].daemon.uuid("get device")
    try moveToSmallDisk(devices[0].daemon)
    try agree(devices, on: ["desk", "laptop", "phone"])
    try fillDisk(of: devices[0].daemon)
    #expect(try devices[0].ask("account rotate without=\(phone)") == ["OK"])
    let connections = broker.count("New client connected")
    try devices[0].reload("\(broker.configuration)\nSpread=0\nKeepAlive=61s")
    try devices[0].wait("the first configuration is read") { broker.count("New client connected") > connections }
    try devices[0].reload("Broker=nonsense")
    try devices[0].wait("the second configuration is read") { devices[0].log.contains("configuration refused") }
    let rows = try devices[0].ask("fleet status")
    #expect(rows.contains { $0.hasPrefix("* reason=") } && !rows.contains { $0.hasPrefix("* rotations=") }, "\(rows)")
    #expect(try devices[1].devices() == ["desk", "laptop", "phone"])
    try makeRoom(for: devices[0].daemon)
    for device in devices[..<2] {
      try device.wait("the key is replaced") { try device.ask("fleet status").contains("* rotations=1") }
    }
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    try devices[2].wait(state: "no-account")
  }

  @Test func `a device whose own key takes nothing gets no key of the account, and delays nobody`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let others = try PlayedDevices(1, in: devices[0])
    var fields = others.fields(0, "weak")
    fields[.boxKey] = [UInt8](repeating: 0, count: 32)
    let note = try others.message(.record, about: others[0], by: others[0], signer: 0, fields, counter: 1)
    try broker.publish(note.payload, to: note.topic)
    try agree(devices, on: ["desk", "laptop", "weak"])
    #expect(try devices[0].ask("account rotate") == ["OK"])
    try devices[1].wait("the key is taken") { try devices[1].ask("fleet status").contains("* rotations=1") }
    let warning = "the device \(others[0]) gets no key of the account"
    try devices[0].wait("the log names the device") { devices[0].log.contains(warning) }
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook", "weak"])
    #expect(devices[0].log.components(separatedBy: warning).count == 2)
  }
}
