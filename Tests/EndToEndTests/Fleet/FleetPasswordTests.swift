import Foundation
import TestSupport
import Testing

// The password of an account at a broker, which a rotation replaces.
extension FleetServiceTests {
  private func credentials(of device: FleetUnderTest, _ words: String = "") throws -> String {
    try device.ask("fleet credentials\(words)")[0]
  }

  /// The user and the password in an answer to `fleet credentials`.
  private func words(_ credentials: String) throws -> (user: String, password: String) {
    let words = try #require(credentials.firstMatch(of: /^OK user=(\S+) password=(\S+)$/))
    return (String(words.1), String(words.2))
  }

  /// Starts devices whose account has the broker's first password.
  private func fleet(_ names: [String], at accounts: BrokerOfAccounts) throws -> [FleetUnderTest] {
    let devices = try names.map { try device($0, at: accounts.broker, BrokerOfAccounts.settings) }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try accounts.admit(try credentials(of: devices[0]))
    // The broker reads its users when it gets to that.
    try devices[0].wait("the broker lets the device in") {
      try reload([devices[0]], at: accounts)
      try devices[0].wait(state: "live", for: 5)
      return true
    }
    for device in devices.dropFirst() { try join(device, by: devices[0]) }
    try agree(devices, on: names)
    return devices
  }

  private func usesFormerPassword(_ device: FleetUnderTest) throws -> Bool {
    try device.ask("fleet status").contains("* password=former")
  }

  /// Has devices connect anew, as the advice of `check` says.
  private func reload(_ devices: [FleetUnderTest], at accounts: BrokerOfAccounts) throws {
    for device in devices {
      try device.reload("\(accounts.broker.configuration)\nSpread=0\n\(BrokerOfAccounts.settings)")
    }
  }

  @Test func `a rotation replaces the password, and a removed device is out once the broker has the new one`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try fleet(["desk", "laptop", "phone"], at: accounts)
    let former = try words(try credentials(of: devices[0]))
    #expect(try credentials(of: devices[0], " previous=yes").hasPrefix("ERR not-found "))
    let phone = try devices[2].daemon.uuid("get device")
    let rotated = try devices[0].identityctl("account", "rotate", "without=\(phone)", "--yes")
    #expect(rotated.status == 0 && rotated.errors.contains("'identityctl fleet credentials'"), "\(rotated)")
    let members = Array(devices[..<2])
    for device in members {
      try device.wait("the former password is in use") { try usesFormerPassword(device) }
      let previous = try device.ask("fleet credentials previous=yes")
      #expect(previous == ["* password=\(former.password)", "OK user=\(former.user)"])
    }
    #expect(try devices[1].identityctl("fleet", "credentials", "--previous").output.contains(former.password))
    try devices[2].wait(state: "no-account")

    // Until the broker's admin acts, the thief sees sizes and times, and what it overwrites is put back.
    let topics = topics(of: former.user)
    #expect(try accounts.read(topics, as: former.user, former.password) ?? 0 >= 2)
    let own = try #require(try accounts.topic(ofRecordIn: topics, as: former.user, former.password))
    #expect(try accounts.publish("x", on: own, as: former.user, former.password))
    try devices[0].wait("the record is put back") {
      try accounts.payload(of: own, as: former.user, former.password).hasPrefix("6946")
    }

    // The former password is of use also for a new connection.
    try reload(members, at: accounts)
    try agree(members, on: ["desk", "laptop"])
    for device in members { try device.wait("the former password is in use again") { try usesFormerPassword(device) } }
    let found = try devices[1].daemon.diagnosis()["fleet"]
    #expect(found.result == "warning" && found.commands.count == 2, "\(found)")
    #expect(found.cause?.contains("'identityctl fleet credentials'") == true, "\(found)")
    #expect(found.commands[1].contains("reload"), "\(found)")

    let present = try credentials(of: devices[0])
    try devices[1].wait("both have the same") { try credentials(of: devices[1]) == present }
    try accounts.admit(present)
    try devices[0].wait("the broker knows the password") {
      try accounts.read(topics, as: words(present).user, words(present).password) != nil
    }
    try reload(members, at: accounts)
    for device in members { try device.wait("the present password is in use") { try !usesFormerPassword(device) } }
    try agree(members, on: ["desk", "laptop"])
    #expect(try devices[1].daemon.diagnosis()["fleet"].result == "ok")
    #expect(try devices[0].daemon.ask("devices name table") == "OK")
    try agree(members, on: ["laptop", "table"])
    // Nothing is left to the thief at the broker.
    #expect(try accounts.read(topics, as: former.user, former.password) == nil)
    #expect(try !accounts.publish("", on: own, as: former.user, former.password))
  }

  @Test func `a device that was away while the password was replaced comes back by an invitation`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try fleet(["desk", "laptop"], at: accounts)
    let laptop = try devices[1].daemon.uuid("get device")
    devices[1].end(with: SIGKILL)
    // It knows the password of the first epoch, which the broker then has no longer.
    let former = try credentials(of: devices[0])
    #expect(try devices[0].ask("account rotate") == ["OK password=replaced"])
    try devices[0].wait("the key is replaced") { try credentials(of: devices[0]) != former }
    try accounts.admit(try credentials(of: devices[0]))
    try reload([devices[0]], at: accounts)
    try devices[0].wait("the present password is in use") {
      try devices[0].ask("fleet status").contains("* state=live") && !usesFormerPassword(devices[0])
    }
    try devices[1].start()
    try devices[1].wait(state: "refused")
    let found = try devices[1].daemon.diagnosis()["fleet"]
    #expect(found.cause?.contains("an invitation that another device of the account has written since") == true)
    // Its list is as it was, and its key is of no use for the invitation's check.
    #expect(try devices[1].devices() == ["desk", "laptop"])
    let event = try devices[0].daemon.ask("subscribe")
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    #expect(try !usesFormerPassword(devices[1]))
    #expect(try devices[1].daemon.uuid("get device") == laptop)
    #expect(try devices[0].daemon.ask("subscribe") == event, "nobody hears of a new device")
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(devices, on: ["desk", "notebook"])
    let path = devices[0].daemon.folder.appending(path: "again").path
    #expect(try devices[0].identityctl("account", "invite", "--file=\(path)", "--no-passphrase").status == 0)
    let again = try devices[1].identityctl("account", "join", "--file=\(path)")
    #expect(again.status != 0 && again.errors.contains("the key of the invitation is not a later one"), "\(again)")
  }

  @Test func `a device finds the password that the broker has after several rotations`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try fleet(["desk", "laptop"], at: accounts)
    func rotate(_ count: Int) throws {
      for _ in 0..<count {
        try agree(devices, on: ["desk", "laptop"])
        let before = try credentials(of: devices[0])
        #expect(try devices[0].ask("account rotate") == ["OK password=replaced"])
        for device in devices {
          try device.wait("the key is replaced") { try credentials(of: device) != before }
        }
      }
    }
    // The broker has that of the second epoch, and nobody remembers after a restart.
    try rotate(1)
    try accounts.admit(try credentials(of: devices[0]))
    try reload(devices, at: accounts)
    for device in devices { try device.wait("the present password is in use") { try !usesFormerPassword(device) } }
    try rotate(6)
    #expect(try devices[0].ask("fleet credentials previous=yes").count == 8)
    let path = devices[0].daemon.folder.appending(path: "early").path
    let early = try devices[0].identityctl("account", "invite", "--file=\(path)", "--no-passphrase")
    #expect(early.status == 0 && early.errors.contains("which the invited device may not know"), "\(early)")
    for device in devices {
      device.end(with: SIGKILL)
      try device.start()
      try device.wait("the password is found") {
        let status = try device.ask("fleet status")
        // Without the pause of five minutes after a refusal.
        if status.contains("* state=refused") { try reload([device], at: accounts) }
        return status.contains("* state=live")
      }
      #expect(try usesFormerPassword(device))
    }
  }

  @Test func `a key from an invitation goes to no device that its new owner has removed`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try fleet(["desk", "laptop", "phone"], at: accounts)
    let phone = try devices[2].daemon.uuid("get device")
    devices[1].end(with: SIGKILL)
    // Nobody hears of it, and the phone gets the next key.
    #expect(try devices[1].daemon.ask("devices forget \(phone)") == "OK")
    let former = try credentials(of: devices[0])
    #expect(try devices[0].ask("account rotate") == ["OK password=replaced"])
    for place in [0, 2] {
      try devices[place].wait("the key is replaced") { try credentials(of: devices[place]) != former }
    }
    try accounts.admit(try credentials(of: devices[0]))
    try reload([devices[0], devices[2]], at: accounts)
    try agree([devices[0], devices[2]], on: ["desk", "laptop", "phone"])
    try devices[1].start()
    try devices[1].wait(state: "refused")
    try join(devices[1], by: devices[0])
    try devices[2].wait(state: "no-account")
    for device in devices[..<2] {
      try device.wait("the key is replaced again") { try device.ask("fleet status").contains("* rotations=2") }
    }
    try agree(Array(devices[..<2]), on: ["desk", "laptop"])
    // A removed device can write an invitation, which nobody takes.
    let foreign = try PlayedDevices(1, in: devices[0]).invitation(by: 0, to: 0x3_0001)
    let joined = try devices[1].ask("account join data=\(foreign)")
    #expect(joined[0].hasPrefix("ERR conflict no device that this one knows as a member"), "\(joined)")
  }

  @Test func `an invitation that a removed device has kept lets nobody in after a rotation`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try fleet(["desk", "laptop", "phone"], at: accounts)
    let members = Array(devices[..<2])
    let kept = devices[2].daemon.folder.appending(path: "kept").path
    #expect(try devices[2].identityctl("account", "invite", "--file=\(kept)", "--no-passphrase").status == 0)
    #expect(try devices[0].daemon.ask("devices forget \(devices[2].daemon.uuid("get device"))") == "OK")
    try agree(members, on: ["desk", "laptop"])
    func newcomer(_ name: String) throws -> FleetUnderTest {
      let device = try device(name, at: accounts.broker, BrokerOfAccounts.settings)
      let joined = try device.identityctl("account", "join", "--file=\(kept)")
      #expect(joined.status == 0, "\(joined)")
      return device
    }
    // Without a rotation, the keys in the invitation are those of the account.
    let first = try newcomer("first")
    try agree(members + [first], on: ["desk", "first", "laptop"])
    let removed = try "\(first.daemon.uuid("get device")),\(devices[2].daemon.uuid("get device"))"
    #expect(try devices[0].ask("account rotate without=\(removed)").first?.hasPrefix("ERR not-found") == true)
    #expect(try devices[0].ask("account rotate without=\(first.daemon.uuid("get device"))") == ["OK password=replaced"])
    try first.wait(state: "no-account")
    try agree(members, on: ["desk", "laptop"])
    // With the former password, it gets to the broker, and shares nothing with the members.
    let second = try newcomer("second")
    try second.wait(state: "live")
    #expect(try devices[1].daemon.ask("devices name notebook") == "OK")
    try agree(members, on: ["desk", "notebook"])
    #expect(try Set(second.devices()).isDisjoint(with: ["notebook"]))
    try accounts.admit(try credentials(of: devices[0]))
    try reload(members + [second], at: accounts)
    try second.wait(state: "refused")
    try agree(members, on: ["desk", "notebook"])
    #expect(try !members.contains(where: usesFormerPassword))
  }

  @Test func `an invitation to another account does not take a member out of its own`() throws {
    let broker = try BrokerUnderTest()
    let devices = try ["desk", "laptop"].map { try device($0, at: broker) }
    for device in devices { #expect(try device.ask("account create alice") == ["OK"]) }
    let credentials = try credentials(of: devices[1])
    let path = devices[0].daemon.folder.appending(path: "invitation").path
    #expect(try devices[0].identityctl("account", "invite", "--file=\(path)", "--no-passphrase").status == 0)
    let joined = try devices[1].identityctl("account", "join", "--file=\(path)")
    #expect(joined.status != 0 && joined.errors.contains("the invitation is to another one"), "\(joined)")
    #expect(try self.credentials(of: devices[1]) == credentials)
  }
}
