import Foundation
import TestSupport
import Testing

// Devices with wrong clocks.
extension FleetServiceTests {
  @Test func `row 63: clocks that are wrong by years change no name, no order and no twin`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "ahead", "behind"], at: broker)
    try agree(devices, on: ["ahead", "behind", "desk"])
    let decade = 315_576_000
    for (device, seconds) in zip(devices[1...], [decade, -decade]) {
      device.end(with: SIGKILL)
      device.daemon.end()
      let clock = try ClockTests.wrapper(of: device.daemon)
      try ClockTests.set(seconds, of: device.daemon)
      try device.daemon.start(through: clock)
      try device.start(through: clock)
    }
    let identifiers = try devices.map { try $0.daemon.uuid("get device") }
    /// Waits until a device has seen another one at a time.
    func wait(for other: Int, seenBy device: Int, in period: ClosedRange<Date>) throws {
      try devices[device].wait("device \(device) has seen device \(other) in \(period)") {
        let row = try #require(try self.row(about: identifiers[other], at: devices[device]))
        let seen = try #require(row.firstMatch(of: /seen=(\S+)/)).1
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return period.contains(try Date(String(seen), strategy: format))
      }
    }
    let start = Date()
    func period(_ shift: Int = 0) -> ClosedRange<Date> {
      start.addingTimeInterval(Double(shift) - 1)...Date(timeIntervalSinceNow: Double(shift) + 1)
    }
    let listener = try devices[0].daemon.client()
    _ = try listener.ask("subscribe devices")
    #expect(try devices[1].daemon.ask("devices name early") == "OK")
    try agree(devices, on: ["behind", "desk", "early"])
    // The later name wins, although its time is twenty years earlier.
    try ClockTests.set(-decade, of: devices[1].daemon)
    #expect(try devices[1].daemon.ask("devices name late") == "OK")
    try agree(devices, on: ["behind", "desk", "late"])
    try wait(for: 1, seenBy: 0, in: period(-decade))
    try ClockTests.set(decade, of: devices[1].daemon)
    for (place, name) in ["table", "ahead", "after"].enumerated() {
      #expect(try devices[place].daemon.ask("devices name \(name)") == "OK")
    }
    try agree(devices, on: ["after", "ahead", "table"])
    // Nobody is seen in the future.
    try wait(for: 1, seenBy: 0, in: period())
    try wait(for: 2, seenBy: 0, in: period(-decade))
    try wait(for: 0, seenBy: 1, in: period())
    try wait(for: 0, seenBy: 2, in: period(-decade))
    try listener.send("ping\n")
    var events: [String] = []
    while let line = try listener.line(), line != "OK" { events.append(line) }
    #expect(events.count { $0.contains(" devices changed value=\(identifiers[1]) ") } == 3, "\(events)")
    #expect(events.count { $0.contains(" devices changed value=\(identifiers[2]) ") } == 1, "\(events)")
    for device in devices {
      #expect(try !isSuspect(device) && !device.daemon.client().ask("devices").contains { $0.contains("suspect=yes") })
    }
    // A removal is one, whatever its time is. Only an invitation depends on the clock.
    #expect(try devices[2].daemon.ask("devices forget \(identifiers[1])") == "OK")
    try devices[1].wait(state: "no-account")
    try agree([devices[0], devices[2]], on: ["after", "table"])
    let path = devices[0].daemon.folder.appending(path: "invitation").path
    #expect(try devices[0].identityctl("account", "invite", "--file=\(path)", "--no-passphrase").status == 0)
    let late = try devices[1].identityctl("account", "join", "--file=\(path)")
    #expect(late.status != 0 && late.errors.contains("the invitation has expired"), "\(late)")
    try ClockTests.set(0, of: devices[1].daemon)
    #expect(try devices[1].identityctl("account", "join", "--file=\(path)").status == 0)
    try agree(devices, on: ["after", "ahead", "table"])
  }

  @Test func `a code that nobody has used expires after fifteen minutes, and lets nobody in`() throws {
    let broker = try BrokerUnderTest()
    let device = try device("desk", at: broker)
    device.end(with: SIGKILL)
    try device.start(through: try ClockTests.wrapper(of: device.daemon))
    #expect(try device.ask("account create alice") == ["OK"])
    try device.wait(state: "live")
    let invited = try device.identityctl("account", "invite")
    let code = try #require(invited.output.firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)?.0)
    func isOpen() throws -> Bool { try device.ask("fleet status").contains("* invitation=open") }
    try ClockTests.pass(890, of: device.daemon)
    #expect(try isOpen() && isOpen())
    try ClockTests.pass(901, of: device.daemon)
    // A timer of the kernel does not know of the jump, but each request makes the service look at its deadlines.
    try device.wait("the invitation expires") {
      try device.ask("fleet status").contains("* invitation=expired")
    }
    #expect(device.log.contains("the invitation has ended, and nobody has used its code"))
    try device.wait("nothing is left at the broker") {
      _ = try device.ask("fleet status")
      return try broker.retained("identityd/v1/join/+/+").isEmpty
    }
    let late = try self.device("laptop", at: broker)
    let joined = try late.identityctl("account", "join", String(code))
    #expect(joined.status != 0, "\(joined)")
    #expect(try device.devices() == ["desk"])
  }

  @Test func `devices that were not heard of for a year leave the account`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    let others = try PlayedDevices(1, in: devices[0])
    // Its time is in 1970.
    let record = try others.record(0, named: "old", counter: 1)
    try broker.publish(record.payload, to: record.topic)
    try agree(devices, on: ["desk", "laptop", "old"])
    let shown = try devices[0].daemon.client().ask("devices forget unused=365 dry-run=yes")
    #expect(shown.count == 2 && shown[0].hasPrefix("* \(others[0]) ") && shown[1] == "OK 1 left=0", "\(shown)")
    #expect(try devices[0].daemon.client().ask("devices forget unused=365") == shown)
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[1].daemon.ask("devices forget unused=365") == "OK 0 left=0")
  }
}
