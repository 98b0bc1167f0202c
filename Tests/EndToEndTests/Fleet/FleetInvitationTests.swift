import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

// Invitations by file and by code, and the client's part in them.
extension FleetServiceTests {
  @Test func `an invitation shows its code, and replaces an earlier one`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    #expect(try device.ask("account create alice") == ["OK"])
    let invited = try device.identityctl("account", "invite")
    #expect(invited.status == 0 && invited.errors.contains("nobody can use the code"), "\(invited)")
    #expect(invited.output.contains(/^([0-9A-Z]{4}-){3}[0-9A-Z]{4}/), "\(invited)")
    #expect(try device.ask("fleet status").contains("* invitation=open"))
    #expect(try device.ask("account join meeting=\(String(repeating: "A", count: 64))")[0].hasPrefix("ERR conflict"))
    let json = try device.identityctl("account", "invite", "--json")
    #expect(json.output.contains(/^{"code":"([0-9A-Z]{4}-){3}[0-9A-Z]{4}","expires":"[^"]+"}\n$/), "\(json)")
    #expect(try device.ask("fleet status").contains("* invitation=open"))
    #expect(try device.identityctl("account", "invite", "--quiet").output == "")
  }

  @Test func `a device that has joined lists all devices at once`() throws {
    let broker = try BrokerUnderTest()
    let desk = try device("desk", at: broker)
    // The longest wait for the first attempt to connect would be a minute.
    let others = try ["laptop", "phone"].map { name in
      let device = try FleetUnderTest("\(broker.configuration)\nSpread=1min")
      #expect(try device.daemon.ask("devices name \(name)") == "OK")
      return device
    }
    let created = try desk.identityctl("account", "create", "alice")
    #expect(created == (0, "", ""), "\(created)")
    try desk.wait(state: "live")
    func code() throws -> String {
      let invited = try desk.identityctl("account", "invite")
      #expect(invited.errors == "", "\(invited)")
      return String(try #require(invited.output.firstMatch(of: /^\S+/)).0)
    }
    let joined = try others[0].identityctl("account", "join", try code())
    #expect(joined.status == 0 && joined.errors == "", "\(joined)")
    let known = try [desk, others[0]].map { "\(try $0.daemon.uuid("get device"))" }
    #expect(Set(joined.output.split(separator: "\n").map(String.init)) == Set(known), "\(joined)")
    #expect(try others[0].devices() == ["desk", "laptop"])
    try desk.wait(for: ["desk", "laptop"])
    let json = try others[1].identityctl("account", "join", "--json", try code())
    #expect(json.output == "{\"devices\":3}\n", "\(json)")
    #expect(try others[1].devices() == ["desk", "laptop", "phone"])
  }

  @Test func `a wrong code and a silent broker are told apart while the attempt goes on`() throws {
    let broker = try BrokerUnderTest()
    let device = try device("desk", at: broker)
    let code = "\(try #require(JoinCode.random()))"
    func join(until words: String) throws {
      let path = device.daemon.folder.appending(path: "errors").path
      let client = DaemonUnderTest.binaries.appending(path: "identityctl").path
      let process = Process()
      process.executableURL = URL(filePath: "/bin/sh")
      process.arguments = ["-c", "exec '\(client)' account join \(code) 2>'\(path)'"]
      process.environment = ["IDENTITYD_SOCKET": device.daemon.socket, "IDENTITY_FLEET_SOCKET": device.socket]
      try process.runUnmasked()
      defer {
        process.terminate()
        process.waitUntilExit()
      }
      try device.wait("the client says: \(words)") {
        try String(contentsOfFile: path, encoding: .utf8).contains("still trying: \(words)")
      }
      #expect(process.isRunning)
    }
    try join(until: "the broker has no invitation for this code")
    broker.kill()
    try join(until: "no broker has taken this device: Connection refused")
  }

  @Test func `a new account comes with the reason why no broker has taken the device`() throws {
    let certificates = try CertificatesUnderTest()
    try certificates.issue("right", for: "IP:127.0.0.1")
    try certificates.issue("wrong", for: "DNS:elsewhere.example")
    func port(_ settings: String) throws -> BrokerUnderTest { try BrokerUnderTest("allow_anonymous true\n\(settings)") }
    func files(_ name: String) -> String {
      "certfile \(certificates["\(name).crt"])\nkeyfile \(certificates["\(name).key"])"
    }
    let right = try port(files("right"))
    let wrong = try port(files("wrong"))
    let plain = try port("")
    let closed = try port(files("right"))
    closed.kill()
    let named = try BrokerUnderTest("allow_anonymous false")
    let authority = "CAFile=\(certificates["authority.crt"])"
    let cases = [
      ("mqtts://127.0.0.1:\(right.port)", "", "its authority is not in CAFile="),
      ("mqtts://127.0.0.1:\(wrong.port)", authority, "for another host name than that in Broker="),
      ("mqtts://127.0.0.1:\(plain.port)", authority, "as at a port for mqtt://"),
      // Some releases of libmosquitto leave the kernel's word.
      ("mqtts://127.0.0.1:\(closed.port)", authority, "Connection refused|nobody listens at the port"),
      ("mqtt://127.0.0.1:\(right.port)", "", "a port for mqtt:// that is asked with mqtts://, or the reverse"),
      ("mqtt://127.0.0.1:\(closed.port)", "", "Connection refused"),
      ("mqtts://nowhere.invalid:\(right.port)", authority, "the host name in Broker= is not known"),
      ("mqtt://127.0.0.1:\(named.port)", "", "not authorised"),
    ]
    for (broker, setting, reason) in cases {
      let device = try FleetUnderTest("Broker=\(broker)\n\(setting)\nSpread=0")
      let created = try device.identityctl("account", "create", "alice")
      let isNamed = reason.split(separator: "|").contains { created.errors.contains($0) }
      #expect(created.status == 0 && isNamed, "\(broker): \(created)")
    }
  }

  @Test func `an account and a code that the broker does not hear of come with a warning`() throws {
    let broker = try BrokerUnderTest()
    broker.kill()
    let device = try device("desk", at: broker)
    let reason = "Connection refused; see 'identityctl check'"
    let created = try device.identityctl("account", "create", "alice")
    #expect(created.status == 0 && created.errors.contains("no broker has taken this device: \(reason)"), "\(created)")
    // An attempt may be under way.
    try device.wait("the code comes with a warning") {
      let invited = try device.identityctl("account", "invite")
      #expect(invited.status == 0 && invited.errors.contains("nobody can use the code"), "\(invited)")
      return invited.errors.contains(reason)
    }
    try broker.start()
    try device.wait(state: "live")
    #expect(try device.identityctl("account", "invite").errors == "")
  }

  @Test func `the access rules in the manual give the user of an account its own topics alone`() throws {
    let accounts = try BrokerOfAccounts()
    let devices = try ["desk", "laptop"].map { try device($0, at: accounts.broker, BrokerOfAccounts.settings) }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try devices[0].wait(state: "refused")
    let credentials = try devices[0].ask("fleet credentials")[0]
    let password = String(try #require(credentials.firstMatch(of: /password=(\S+)/)).1)
    let account = try account(of: devices[0])
    try accounts.admit(account, password)
    try accounts.admit("stranger", "secret")
    try accounts.broker.forget()
    try devices[0].reload("\(accounts.broker.configuration)\nSpread=0\n\(BrokerOfAccounts.settings)")
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    let topics = topics(of: account)
    try devices[0].wait("the broker has all records") { try accounts.read(topics, as: account, password) == 2 }
    #expect(try accounts.read(topics, as: "stranger", "secret") == 0)
  }

  @Test func `a second device that uses a code is named until the key is replaced`() throws {
    let broker = try BrokerUnderTest()
    let devices = try ["desk", "laptop"].map { try device($0, at: broker) }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try devices[0].wait(state: "live")
    let meeting = try #require(JoinCode.Meeting.random())
    let code = Data(meeting.copy()).base64EncodedString()
    #expect(try devices[0].ask("account invite meeting=\(code)")[0].hasPrefix("OK expires="))
    #expect(try devices[1].ask("account join meeting=\(code)") == ["OK"])
    try agree(devices, on: ["desk", "laptop"])
    // As a thief answers that has read the invitation before the other device took it.
    let thief = UUID(high: 1, low: 2)
    let seed = try #require(SecretKey.random())
    let keys = try #require(DeviceKeys(seed: seed))
    var fields = Fields()
    fields[.name] = Array("thief".utf8)
    fields[.signingKey] = keys.signingKey.bytes
    fields[.boxKey] = keys.boxKey.bytes
    let body = Body(
      subject: thief, generation: 1, counter: 0, run: Run(high: 1, low: 1), time: Timestamp(milliseconds: 1),
      author: thief, fields: fields)
    let answer = MessageTopic.answer(meeting.rendezvous)
    let message = try #require(meeting.key.seal(.answer, body, on: answer, by: keys))
    try broker.publish(message.bytes, to: answer.text)
    let row = "* second-newcomer=\"\(thief) thief\""
    try devices[0].wait("status names the device") { try devices[0].ask("fleet status").contains(row) }
    let finding = try devices[0].daemon.diagnosis()["fleet"]
    #expect(finding.result == "warning" && finding.cause?.contains("\(thief) thief") == true, "\(finding)")
    #expect(try devices[0].ask("account rotate") == ["OK"])
    try devices[0].wait("the key is replaced") { try !devices[0].ask("fleet status").contains(row) }
    try agree(devices, on: ["desk", "laptop"])
  }

  @Test func `an invitation whose time is over lets nobody in`() throws {
    let broker = try BrokerUnderTest()
    // As a device invites whose clock is a week behind.
    let meeting = try #require(JoinCode.Meeting.random())
    let (root, key, seed) = try (
      #require(SecretKey.random()), #require(SecretKey.random()), #require(SecretKey.random())
    )
    let expiry = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000) - 1_000)
    let device = UUID(high: 1, low: 2)
    let body = Body(
      subject: device, generation: 1, counter: 0, run: Run(high: 1, low: 1), time: expiry, author: device,
      fields: Fields())
    let invitation = Invitation(
      name: "alice", root: root, epoch: EpochKey(number: 1, key: key), rosterSize: 1, expiry: expiry)
    let keys = try #require(DeviceKeys(seed: seed))
    let message = try #require(invitation.sealed(body, for: meeting, by: keys))
    let laptop = try FleetUnderTest("\(broker.configuration)\nSpread=0")
    try broker.publish(message.bytes, to: MessageTopic.invitation(meeting.rendezvous).text)
    let code = Data(meeting.copy())
    #expect(
      try laptop.ask("account join data=\((code + message.bytes).base64EncodedString())")[0]
        .hasPrefix("ERR conflict the invitation has expired"))
    #expect(try laptop.ask("account join meeting=\(code.base64EncodedString())") == ["OK"])
    try laptop.wait("the attempt ends") {
      try laptop.ask("fleet status").contains { $0.hasPrefix("* join=\"the invitation has expired") }
    }
    #expect(try laptop.daemon.ask("account") == "OK \"\"")
  }

  /// Returns how often a process with one thread has waited for something.
  private func waits(of process: Process) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
    return try #require(status.firstMatch(of: /\nvoluntary_ctxt_switches:\t(\d+)/).flatMap { Int($0.1) })
  }

  @Test func `an attempt to join outlives the daemon, and the client waits`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk"], at: broker)
    try agree(devices, on: ["desk"])
    let invited = try devices[0].identityctl("account", "invite")
    let code = try #require(invited.output.firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)).0
    let laptop = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    #expect(try laptop.daemon.ask("devices name laptop") == "OK")
    broker.kill()
    let joining = Process()
    joining.executableURL = DaemonUnderTest.binaries.appending(path: "identityctl")
    joining.arguments = ["account", "join", String(code), "--socket=\(laptop.socket)"]
    try joining.runUnmasked()
    try laptop.wait("the attempt begins") { try laptop.ask("fleet status").contains("* join=trying") }
    laptop.daemon.end(with: SIGKILL)
    try laptop.wait("the service cannot tell") { try laptop.ask("fleet status")[0].hasPrefix("ERR unavailable ") }
    // The client waits at most for an answer and for its pause, so it asks twice meanwhile.
    let before = try waits(of: joining)
    try laptop.wait("the client asks again") { try waits(of: joining) >= before + 5 }
    try laptop.daemon.start()
    try broker.start()
    joining.waitUntilExit()
    #expect(joining.terminationStatus == 0)
    try agree([devices[0], laptop], on: ["desk", "laptop"])
  }

  @Test func `a second code is refused while the first one is answered`() throws {
    let broker = try BrokerUnderTest()
    let devices = try fleet(["desk"], at: broker)
    try agree(devices, on: ["desk"])
    let invited = try devices[0].identityctl("account", "invite")
    let code = try #require(invited.output.firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)).0
    try devices[0].wait("the broker has the invitation") { try broker.retained("identityd/v1/join/#").count == 1 }
    // Nobody confirms the answer.
    devices[0].end(with: SIGKILL)
    let laptop = try FleetUnderTest("Broker=mqtt://127.0.0.1:\(broker.port)\nSpread=0")
    let joining = Process()
    joining.executableURL = DaemonUnderTest.binaries.appending(path: "identityctl")
    joining.arguments = ["account", "join", String(code), "--socket=\(laptop.socket)"]
    try joining.runUnmasked()
    defer { joining.terminate() }
    try laptop.wait("the keys are stored") { try laptop.daemon.ask("account") == "OK alice" }
    for request in ["account join meeting=\(String(repeating: "A", count: 64))", "account create bob"] {
      let answer = try laptop.ask(request)[0]
      #expect(answer.hasPrefix("ERR conflict this device is joining an account"), "\(answer)")
    }
    #expect(try laptop.ask("fleet status").contains("* join=trying"))
  }

  @Test func `an attempt to join ends if the keys cannot be read`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    #expect(try device.daemon.ask("item put service=s account=a data=eA==") == "OK created")
    device.end(with: SIGKILL)
    device.daemon.end()
    try FileManager.default.removeItem(at: device.daemon.masterKey)
    try device.daemon.start()
    try device.start()
    #expect(try device.ask("account join meeting=\(String(repeating: "A", count: 64))") == ["OK"])
    let progress = try device.ask("fleet status").first { $0.hasPrefix("* join=") }
    #expect(progress != nil && progress != "* join=trying", "\(progress ?? "")")
  }

  @Test func `a broker that needs an account lets nobody in with a code`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nUsername=account\nSpread=0")
    #expect(
      try device.ask("account join meeting=\(String(repeating: "A", count: 64))") == ["OK"])
    try device.wait("status tells why") {
      try device.ask("fleet status").contains { $0.contains("lets no newcomers in") }
    }
    #expect(try device.ask("account create alice") == ["OK"])
    #expect(try !device.ask("fleet status").contains { $0.hasPrefix("* join=") })
  }

  @Test func `the client names what is missing`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1")
    for (words, status, text) in [
      (["account", "invite", "--no-passphrase"], 2, "only with --file=PATH"),
      (["account", "join", "-"], 2, "a code has 16 letters"),
      (["account", "join"], 2, "needs a CODE, or --file=PATH"),
      (["account", "join", "7KQ2-M4XD-9TRW-A3Z0"], 2, "the code is mistyped"),
      (["account", "join", "7KQ2-M4XD-9TRW-A3ZF", "--file=x"], 2, "either one CODE or --file=PATH"),
      (["account", "join", "--file=/dev/null"], 7, "is not an invitation"),
      (["account", "join", "--file=/etc/hostname", "--no-passphrase"], 2, "only for 'account invite'"),
      (["devices", "--file=x"], 2, "only for 'migrate device'"),
      (["account", "invite", "--file=/nowhere/x", "--no-passphrase"], 7, "/nowhere"),
      (["fleet", "status", "--socket=/nowhere"], 3, "no identity-fleet at /nowhere"),
    ] as [([String], Int32, String)] {
      let result = try run(
        [DaemonUnderTest.binaries.appending(path: "identityctl").path] + words,
        environment: ["IDENTITYD_SOCKET": device.daemon.socket, "IDENTITY_FLEET_SOCKET": device.socket])
      #expect(result.status == status && result.errors.contains(text), "\(words): \(result)")
    }
    let status = try device.identityctl("fleet", "status", "--json")
    #expect(status.output.contains("no-account"), "\(status)")
  }
}
