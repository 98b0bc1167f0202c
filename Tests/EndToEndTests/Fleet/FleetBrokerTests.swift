import Foundation
import LinuxSystem
import TestSupport
import Testing

// Brokers that fail, forget, flood or are replaced.
extension FleetServiceTests {
  @Test func `row 55: without a broker the list stays, and status tells why`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    broker.kill()
    try devices[0].wait("status tells why") {
      let status = try devices[0].daemon.client().ask("status")
      // Between two pauses, the service tries to connect.
      return status.contains { $0.contains("reason=Connection refused") } && status.contains("* fleet=waiting")
    }
    #expect(try devices[0].devices() == ["desk", "laptop"])
  }

  @Test func `a broker that ends each connection is logged once`() throws {
    let (number, port) = try BrokerUnderTest.listener()
    let accepted = Locked(0)
    Thread.detachNewThread {
      let listener = Descriptor(adopting: number)
      while true {
        let connection = Descriptor(adopting: accept(listener.number, nil, nil))
        var packet = [UInt8](repeating: 0, count: 4_096)
        guard connection.number >= 0, (try? connection.read(into: &packet)) != nil else { return }
        // MQTT 3.1.1: CONNACK, accepted.
        try? connection.sendAll([0x20, 2, 0, 0])
        accepted.withLock { $0 += 1 }
      }
    }
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(port)\nSpread=0")
    #expect(try device.ask("account create alice") == ["OK"])
    try device.wait("several connections end") { accepted.withLock { $0 >= 4 } }
    let lines = device.log.split(separator: "\n").filter { $0.contains("127.0.0.1") }
    #expect(lines.count == 1, "\(lines)")
  }

  @Test func `a broker that acknowledges no subscription is left, and named in the log`() throws {
    let (number, port) = try BrokerUnderTest.listener()
    let listener = Descriptor(adopting: number)
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(port)\nSpread=0")
    #expect(try device.ask("account create alice") == ["OK"])
    let connection = Descriptor(adopting: accept(listener.number, nil, nil))
    // MQTT 3.1.1: CONNACK, accepted. Nothing else is answered.
    try connection.sendAll([0x20, 2, 0, 0])
    try device.wait("the reason is logged") {
      device.log.contains("127.0.0.1:\(port): the broker does not acknowledge a subscription in time")
    }
  }

  @Test func `a new configuration is used at once`() throws {
    let broker = try BrokerUnderTest()
    let other = try BrokerUnderTest()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    broker.kill()
    for device in devices { try device.reload("Broker=mqtt://127.0.0.1:\(other.port)\nSpread=0") }
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try agree(devices, on: ["laptop", "table"])
    // A configuration with a fault changes nothing.
    try devices[0].reload("Broker=nonsense")
    try devices[0].wait("the fault is logged") { devices[0].log.contains("configuration refused") }
    try agree(devices, on: ["laptop", "table"])
  }

  @Test func `a device whose record the broker does not keep says so, until it does`() throws {
    let files = try TemporaryFolder()
    try files.write("rules", "topic read identityd/#\n")
    let broker = try BrokerUnderTest("allow_anonymous true\nacl_file \(files["rules"])")
    let device = try device("desk", at: broker)
    #expect(try device.ask("account create alice") == ["OK"])
    try device.wait(state: "unpublished", for: 120)
    let reason = "the broker does not keep the record of this device"
    #expect(try device.ask("fleet status").contains { $0.hasPrefix("* reason=\"\(reason)") })
    #expect(device.log.contains(reason))
    let finding = try device.daemon.diagnosis()["fleet"]
    #expect(finding.result == "warning" && "\(finding)".contains(reason), "\(finding)")
    try broker.restart(with: "allow_anonymous true")
    try device.wait(state: "live")
    #expect(try !device.ask("fleet status").contains { $0.hasPrefix("* reason=") })
  }

  @Test func `a message that did not get to a device is noticed by the comparison, and by a reading on request`() throws
  {
    let files = try TemporaryFolder()
    let everything = "topic readwrite identityd/#\n"
    func permit(_ laptop: String) throws {
      try files.write("rules", "\(everything)user laptop\n\(everything)\(laptop)")
    }
    try permit("")
    let broker = try BrokerUnderTest("allow_anonymous true\nacl_file \(files["rules"])")
    let devices = [try device("desk", at: broker), try device("laptop", at: broker, "Username=laptop")]
    #expect(try devices[0].ask("account create alice") == ["OK"])
    #expect(try devices[1].ask("fleet sync")[0].hasPrefix("ERR conflict "))
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    /// Renames the first device, which the second one does not hear of.
    func rename(_ name: String) throws {
      try permit("topic deny identityd/v1/+/d/#\n")
      let rules = broker.count("Reloading config")
      broker.reload()
      try devices[0].wait("the rules are read") { broker.count("Reloading config") > rules }
      #expect(try devices[0].daemon.ask("devices name \(name)") == "OK")
      try devices[0].wait(for: [name, "laptop"])
      try devices[0].wait("the broker has the record") { try devices[0].ask("fleet status").contains("* state=live") }
      try permit("")
      broker.reload()
      try devices[0].wait("the rules are read") { broker.count("Reloading config") > rules + 1 }
    }
    // Two readings follow a connection, the second one after two minutes.
    usleep(20_000_000)
    try rename("table")
    #expect(try devices[1].devices() == ["desk", "laptop"])
    try devices[1].wait("the change is known before the next reading", for: 90) {
      try devices[1].devices() == ["laptop", "table"]
    }
    try rename("bench")
    #expect(try devices[1].devices() == ["laptop", "table"])
    #expect(try devices[1].identityctl("fleet", "sync").status == 0)
    try devices[1].wait(for: ["bench", "laptop"])
  }

  @Test func `a service that waits says until when, and a reload ends the wait`() throws {
    let broker = try BrokerUnderTest()
    let far = try FleetUnderTest("\(broker.configuration)\nSpread=10min")
    #expect(try far.ask("account create alice") == ["OK"])
    let near = try device("desk", at: broker)
    #expect(try near.ask("account create bob") == ["OK"])
    try near.wait(state: "live")
    broker.kill()
    for (device, longest) in [(far, 600.0), (near, 30)] {
      try device.wait("the time of the next attempt is known") {
        let rows = try device.ask("fleet status")
        guard let next = rows.compactMap({ $0.wholeMatch(of: /\* next=(.+)/)?.1 }).first else { return false }
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        #expect(try Date(String(next), strategy: format).timeIntervalSinceNow <= longest)
        return true
      }
    }
    try broker.start()
    // By itself, this device would hardly connect within the time of this test.
    try far.reload("\(broker.configuration)\nSpread=10min")
    for device in [far, near] { try device.wait(state: "live") }
  }

  @Test func `a configuration with the same brokers keeps the connection, and another one an invitation`() throws {
    let brokers = try (0..<2).map { _ in try BrokerUnderTest() }
    let devices = try fleet(["desk"], at: brokers[0])
    try agree(devices, on: ["desk"])
    let invited = try devices[0].identityctl("account", "invite")
    let code = try #require(invited.output.firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)).0
    let before = brokers[0].log
    try devices[0].reload("Broker=mqtt://127.0.0.1:\(brokers[0].port)\nSpread=1s\nHeartbeat=1h\nOnTwin=renew")
    try devices[0].reload("Broker=nonsense")
    try devices[0].wait("both configurations are read") { devices[0].log.contains("configuration refused") }
    #expect(try devices[0].ask("fleet status").contains("* state=live"))
    #expect(brokers[0].log == before, "no connection began or ended")
    // The newcomer knows the other broker only.
    let laptop = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(brokers[1].port)\nSpread=0")
    #expect(try laptop.daemon.ask("devices name laptop") == "OK")
    try devices[0].reload("Broker=mqtt://127.0.0.1:\(brokers[1].port)\nSpread=0")
    let joined = try laptop.identityctl("account", "join", String(code))
    #expect(joined.status == 0 && joined.errors == "", "\(joined)")
    try agree([devices[0], laptop], on: ["desk", "laptop"])
  }

  @Test func `a network that appears ends the wait`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1883\nSpread=0", at: ["unshare", "--net"])
    #expect(try device.ask("account create alice") == ["OK"])
    let inside = ["nsenter", "--net=/proc/\(device.processID)/ns/net"]
    let folder = try TemporaryFolder()
    func broker(_ setting: String) throws -> Process {
      try folder.write("mosquitto.conf", "listener 1883 127.0.0.1\n\(setting)\nuser root\n")
      let broker = Process()
      broker.executableURL = URL(filePath: "/usr/bin/env")
      broker.arguments = inside + ["/usr/sbin/mosquitto", "-c", folder["mosquitto.conf"]]
      broker.standardError = FileHandle.nullDevice
      try broker.runUnmasked()
      return broker
    }
    func change(_ words: String...) throws { #expect(try run(inside + ["ip"] + words).status == 0) }
    try change("link", "set", "lo", "up")
    let refusing = try broker("allow_anonymous false")
    defer { if refusing.isRunning { refusing.terminate() } }
    // Now it waits for five minutes.
    try device.wait(state: "refused")
    refusing.terminate()
    refusing.waitUntilExit()
    let accepting = try broker("allow_anonymous true")
    defer { accepting.terminate() }
    try device.wait("the broker listens") { try run(inside + ["mosquitto_pub", "-t", "a", "-m", "b"]).status == 0 }
    // No network of other machines.
    try change("address", "add", "169.254.7.7/16", "dev", "lo", "scope", "link")
    try change("route", "add", "198.51.100.0/24", "dev", "lo")
    #expect(try device.ask("fleet status").contains("* state=refused"))
    try change("address", "add", "192.0.2.1/24", "dev", "lo")
    try device.wait(state: "live")
  }

  @Test func `row 66: a flood of foreign messages is read slowly, and disturbs nothing`() throws {
    let broker = try BrokerUnderTest("allow_anonymous true\nmax_queued_messages 0")
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let credentials = try devices[0].ask("fleet credentials")[0]
    let account = try #require(credentials.firstMatch(of: /user=([0-9a-f]{32})/)).1
    let flood = ["-q", "0", "-l", "-t", "identityd/v1/\(account)/d/0/none"]
    let count = 10_000
    let sent = try run(
      ["mosquitto_pub", "-p", "\(broker.port)"] + flood, input: String(repeating: "flood\n", count: count))
    #expect(sent.status == 0, "\(sent)")
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    for device in devices {
      try device.wait("all are dropped") { try device.ask("fleet status").contains("* foreign=\(count)") }
    }
    try agree(devices, on: ["desk", "notebook"])
  }

  @Test func `row 66: ten thousand foreign retained messages are read past`() throws {
    let broker = try BrokerUnderTest("allow_anonymous true\nmax_queued_messages 0")
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let account = try account(of: devices[0])
    for device in devices { device.end(with: SIGKILL) }
    // On topics that no device has, and on those of devices that nobody knows.
    let half = 5_000
    try broker.publish(
      all: (0..<half).flatMap { number in
        [String(number), String(format: "%032x", number)].map { ("identityd/v1/\(account)/d/0/\($0)", [0x69]) }
      })
    for device in devices { try device.start() }
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    for device in devices {
      // Another reading counts them again.
      try device.wait("all are dropped") {
        try number("foreign", by: device) >= half && dropped(by: device) >= half
      }
    }
  }

  @Test func `row 55: a broker that kept everything hears of the changes meanwhile`() throws {
    let broker = try BrokerUnderTest(persists: true)
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let topics = topics(of: try account(of: devices[0]))
    // Until the broker has saved the messages, it loses them, and the devices put them back.
    try devices[0].wait("the messages are on the disk") {
      let present = try broker.retained(topics, count: 2)
      for device in devices { device.end(with: SIGKILL) }
      try broker.forget()
      let kept = try broker.retained(topics)
      for device in devices { try device.start() }
      try agree(devices, on: ["desk", "laptop"])
      return kept == present
    }
    broker.kill()
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try broker.start()
    // Another configuration ends the wait.
    for device in devices { try device.reload("\(broker.configuration)\nSpread=0\nKeepAlive=61s") }
    try agree(devices, on: ["desk", "notebook"])
  }
}
