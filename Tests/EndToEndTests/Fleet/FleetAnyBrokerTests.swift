import Foundation
import TestSupport
import Testing

// The tests that do not depend on the kind of the broker. The usual run has them twice: over a cluster, and over
// Mosquitto with AddressSanitizer.
extension FleetServiceTests {
  @Test func `devices of an account know each other, and their names`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    #expect(try devices[2].daemon.ask("devices name pocket") == "OK")
    try agree(devices, on: ["desk", "laptop", "pocket"])
    // The broker has one message for each device, and learns no name.
    let account = try account(of: devices[1])
    let retained = try broker.retained(topics(of: account))
    #expect(retained.count == 3)
    #expect(retained.allSatisfy { $0.hasPrefix("identityd/v1/\(account)/d/") })
    #expect(!retained.contains { $0.contains("6465736b") }, "desk in hexadecimal digits")
  }

  @Test func `a device that another one removes forgets the account`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    try settleIn([devices[0]])
    let phone = try devices[2].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(phone)") == "OK")
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    try devices[2].wait(state: "no-account")
    #expect(try devices[2].devices() == ["phone"])
    #expect(try devices[2].daemon.ask("account") == "OK \"\"")
    #expect(try devices[2].daemon.uuid("get device") == phone, "it keeps its identifier")
    #expect(try devices[2].daemon.ask("item read service=identity-fleet account=root").hasPrefix("ERR not-found "))
    // It can join again, which outranks the removal.
    try join(devices[2], by: devices[1])
    try agree(devices, on: ["desk", "laptop", "phone"])
    for device in devices { #expect(try !device.ask("fleet status").contains { $0.hasPrefix("* other-key") }) }
  }

  @Test func `a device that leaves is gone everywhere`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let left = try devices[1].identityctl("account", "leave", "--yes")
    #expect(left.status == 0 && left.output.isEmpty && left.errors.isEmpty, "\(left)")
    try devices[0].wait(for: ["desk"])
    try devices[1].wait(state: "no-account")
    #expect(try devices[1].devices() == ["laptop"])
  }

  @Test func `another account that an admin enters stays, and the keys are deleted`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    #expect(try devices[1].daemon.ask("account set bob") == "OK")
    try devices[1].wait(state: "no-account")
    devices[0].end(with: SIGKILL)
    #expect(try devices[0].daemon.ask("account set carol") == "OK")
    try devices[0].start()
    try devices[0].wait(state: "no-account")
    for (device, account) in zip(devices, ["carol", "bob"]) {
      #expect(try device.daemon.ask("account") == "OK \(account)")
      #expect(try device.devices().count == 1)
      #expect(try device.daemon.ask("item read service=identity-fleet account=root").hasPrefix("ERR not-found "))
    }
  }

  @Test func `row 58: a service that is killed loses nothing`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    for round in 1...5 {
      devices[1].end(with: SIGKILL)
      // Changes on both sides, while the service is away.
      #expect(try devices[0].daemon.ask("devices name desk\(round)") == "OK")
      #expect(try devices[1].daemon.ask("devices name laptop\(round)") == "OK")
      try devices[1].start()
      try agree(devices, on: ["desk\(round)", "laptop\(round)"])
    }
    for device in devices {
      #expect(try !device.daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") }, "no false twin")
    }
  }

  @Test func `row 58: a daemon that is killed is found again, and a removal meanwhile is carried out`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    devices[0].end(with: SIGKILL)
    let phone = try devices[2].daemon.uuid("get device")
    #expect(try devices[0].daemon.ask("devices forget \(phone)") == "OK")
    devices[0].daemon.end(with: SIGKILL)
    try devices[0].daemon.start()
    try devices[0].start()
    try devices[2].wait(state: "no-account")
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    devices[1].daemon.end(with: SIGKILL)
    try devices[1].daemon.start()
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
  }

  @Test func `a device with another identifier takes its place`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let former = try devices[1].daemon.uuid("get device")
    let subscriber = try devices[0].daemon.client()
    #expect(try subscriber.subscribe("devices").last?.hasPrefix("OK ") == true)
    let renewed = try devices[1].daemon.uuid("renew device")
    #expect(renewed != former)
    // Another name in the same run belongs to the later identifier.
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    try subscriber.send("ping\n")
    var events: [String] = []
    while let line = try subscriber.line(), line != "OK" { events.append(line) }
    try #require(!events.isEmpty)
    #expect(events[0].contains(" devices replaced value=\(renewed) previous=\(former) "), "\(events)")
    #expect(events.allSatisfy { $0.contains(" value=\(renewed) ") && !$0.contains(" devices added ") }, "\(events)")
    // The others know the tombstone, too, and the new record.
    let known = try devices[0].daemon.client().ask("fleet records")
    #expect(known.contains { $0.hasPrefix("* \(former) ") && $0.contains(" gone=yes ") }, "\(known)")
    #expect(known.contains { $0.hasPrefix("* \(renewed) ") && $0.contains(" gone=no ") }, "\(known)")
  }

  @Test func `devices tell each other that they are connected`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    func wait(for count: Int, _ listening: [FleetUnderTest]) throws {
      for device in listening {
        try device.wait("\(count) others are connected") {
          let row = try device.ask("fleet status").first { $0.hasPrefix("* connected=") }
          return row == (count == 0 ? nil : "* connected=\(count)")
        }
      }
    }
    try wait(for: 2, devices)
    devices[2].end(with: SIGKILL)
    try wait(for: 1, Array(devices[..<2]))
    devices[1].end(with: SIGTERM)
    try wait(for: 0, [devices[0]])
    try devices[2].start()
    try wait(for: 1, [devices[0], devices[2]])
    try devices[0].reload("\(broker.configuration)\nSpread=0\nPresence=no")
    try wait(for: 0, [devices[0], devices[2]])
    #expect(try broker.retained(topics(of: try account(of: devices[0]))).count == 3, "no word is retained")
  }

  @Test func `a device that a rotation removed reads nothing new`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    let phone = try devices[2].daemon.uuid("get device")
    devices[2].end(with: SIGKILL)
    let rotated = try devices[0].identityctl("account", "rotate", "without={\(phone.uppercased())}", "--yes")
    #expect(rotated.status == 0, "\(rotated)")
    for device in devices[..<2] {
      try device.wait("the key is replaced") { try device.ask("fleet status").contains("* rotations=1") }
    }
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(Array(devices[..<2]), on: ["desk", "notebook"])
    // Both go on after an end, and can invite to the new epoch.
    for device in devices[..<2] {
      device.end(with: SIGKILL)
      try device.start()
    }
    let tablet = try device("tablet", at: broker)
    try join(tablet, by: devices[1])
    try agree(Array(devices[..<2]) + [tablet], on: ["desk", "notebook", "tablet"])
    // A thief keeps the tombstone from the phone, and shows it everything else. It can open none of that.
    let thief = try BrokerUnderTest()
    let messages = try broker.messages(topics(of: try account(of: tablet)))
    try thief.publish(all: messages.filter { $0.payload[3] != 2 })
    try devices[2].move(to: thief)
    try devices[2].start()
    try devices[2].wait(state: "live")
    try devices[2].wait("the phone sees messages that it cannot open") {
      try devices[2].ask("fleet status").contains { $0.hasPrefix("* dropped=") }
    }
    #expect(try devices[2].devices() == ["desk", "laptop", "phone"], "as it was before")
    // It hears of its removal once nobody keeps that from it.
    devices[2].end(with: SIGTERM)
    try devices[2].move(to: broker)
    try devices[2].start()
    try devices[2].wait(state: "no-account")
    try agree(Array(devices[..<2]) + [tablet], on: ["desk", "notebook", "tablet"])
    try join(devices[2], by: tablet)
    try agree(devices + [tablet], on: ["desk", "notebook", "phone", "tablet"])
  }

  @Test func `a device whose state was lost joins again under its identifier`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop"], at: broker)
    try agree(devices, on: ["desk", "laptop"])
    let laptop = try devices[1].daemon.uuid("get device")
    let another = try device("phone", at: broker)
    try settleIn([devices[0]])
    #expect(try another.daemon.ask("migrate device \(laptop) commit=yes force=yes").hasPrefix("OK "))
    try join(another, by: devices[0])
    try agree([devices[0], another], on: ["desk", "phone"])
    // The earlier one cannot speak for the device any more.
    try devices[1].wait(state: "no-account")
    #expect(devices[1].log.contains("another machine has joined the account"))
    // Nobody can tell this from a member that speaks in the device's name. A rotation, which a member can make, too, does
    // not end the warning, and a removal does.
    func isNamed() throws -> Bool {
      try devices[0].ask("fleet status").contains { $0.hasPrefix("* other-key=\"\(laptop) ") }
    }
    #expect(try isNamed())
    #expect(try devices[0].identityctl("account", "rotate", "--yes").status == 0)
    try devices[0].wait("the key is replaced") { try devices[0].ask("fleet status").contains("* rotations=1") }
    #expect(try isNamed())
    // The advice of 'identityctl check', to its end.
    let rotated = try devices[0].identityctl("account", "rotate", "without=\(laptop)", "--yes")
    #expect(rotated.status == 0, "\(rotated)")
    try devices[0].wait("the warning ends") { try !isNamed() }
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    #expect(try !isNamed())
  }

  @Test func `a passphrase protects an invitation in a file`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk"], at: broker)
    let other = try device("laptop", at: broker)
    let path = other.daemon.folder.appending(path: "invitation").path
    let options = ["--file=\(path)", "--passphrase-fd=3"]
    let invited = try devices[0].identityctl("account", "invite", options[0], options[1], "--json")
    #expect(invited.status == 0 && invited.output.contains("{\"expires\":\"20"), "\(invited)")
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let wrong = try other.identityctl("account", "join", options[0], options[1], passphrase: "wrong horse")
    #expect(wrong.status == 7 && wrong.errors.contains("the passphrase is wrong"), "\(wrong)")
    let joined = try other.identityctl("account", "join", options[0], options[1])
    #expect(joined.status == 0, "\(joined)")
    try agree([devices[0], other], on: ["desk", "laptop"])
  }

  @Test func `a code lets one device in`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk"], at: broker)
    try agree(devices, on: ["desk"])
    let others = try ["laptop", "phone"].map { try device($0, at: broker) }
    // A code leads to the present key, also after a rotation.
    #expect(try devices[0].identityctl("account", "rotate", "--yes").status == 0)
    let invited = try devices[0].identityctl("account", "invite")
    #expect(invited.status == 0, "\(invited)")
    let code = try #require(invited.output.firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)).0
    // From standard input, so that other users cannot read the code in the list of processes.
    let joined = try others[0].identityctl("account", "join", "-", input: "\(code.lowercased())\n")
    #expect(joined.status == 0 && joined.errors == "", "\(joined)")
    try agree([devices[0], others[0]], on: ["desk", "laptop"])
    #expect(try others[0].daemon.ask("account") == "OK alice")
    #expect(devices[0].log.contains("laptop (") && !devices[0].log.contains(code))
    let rows = try devices[0].ask("fleet status")
    #expect(rows.contains("* invitation=used") && rows.contains("* newcomer=laptop"), "\(rows)")
    #expect(
      try JSONSchema.faults(in: [
        ("fleet status", try devices[0].identityctl("fleet", "status", "--json").output)
      ]) == "")
    try devices[0].wait("nothing is left of the invitation") {
      try broker.retained("identityd/v1/join/+/+").isEmpty
    }
    // The code is used up. The newcomer looks for a minute.
    guard Trial.isLong else { return }
    let late = try others[1].identityctl("account", "join", String(code))
    #expect(late.status == 18 && late.errors.contains("no invitation for this code"), "\(late)")
    #expect(try others[1].devices() == ["phone"])
    #expect(try others[1].daemon.ask("account") == "OK \"\"")
  }

  @Test func `row 55: a broker that lost everything gets everything back, and nobody notices`() throws {
    let broker = try anyBroker()
    let devices = try fleet(["desk", "laptop", "phone"], at: broker)
    try agree(devices, on: ["desk", "laptop", "phone"])
    // The record of a device that is off comes from another one, after two minutes.
    if Trial.isLong { devices[2].end(with: SIGKILL) }
    let topics = topics(of: try account(of: devices[0]))
    let before = try broker.retained(topics)
    let epoch = try devices[0].daemon.ask("subscribe")
    try broker.forget()
    try devices[0].wait("the broker has all records", for: 300) { try broker.retained(topics) == before }
    try agree(Array(devices[..<2]), on: ["desk", "laptop", "phone"])
    #expect(try devices[0].daemon.ask("subscribe") == epoch, "no event")
  }
}
