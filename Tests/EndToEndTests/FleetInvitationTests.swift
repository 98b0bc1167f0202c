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
    #expect(invited.status == 0 && invited.errors == "", "\(invited)")
    #expect(invited.output.contains(/^([0-9A-Z]{4}-){3}[0-9A-Z]{4}/), "\(invited)")
    #expect(try device.ask("fleet status").contains("* invitation=open"))
    #expect(try device.ask("account join meeting=\(String(repeating: "A", count: 64))")[0].hasPrefix("ERR conflict"))
    let json = try device.identityctl("account", "invite", "--json")
    #expect(json.output.contains(/^{"code":"([0-9A-Z]{4}-){3}[0-9A-Z]{4}","expires":"[^"]+"}\n$/), "\(json)")
    #expect(try device.ask("fleet status").contains("* invitation=open"))
    #expect(try device.identityctl("account", "invite", "--quiet").output == "")
  }

  @Test func `the access rules in the manual give the user of an account its own topics alone`() throws {
    let page = try String(
      contentsOf: Document.root.appending(path: "packaging/man/identity-fleet.conf.5"), encoding: .utf8)
    let rules = try #require(page.firstMatch(of: #/tested as access rules\n\.Bd .*\n((?:[^.].*\n)+)\.Ed/#)).1
    let files = try TemporaryFolder()
    try files.write("rules", String(rules))
    try files.write("passwords", "")
    let broker = try BrokerUnderTest(
      "allow_anonymous false\nacl_file \(files["rules"])\npassword_file \(files["passwords"])")
    func admit(_ user: String, _ password: String) throws {
      #expect(try run(["mosquitto_passwd", "-b", files["passwords"], user, password]).status == 0)
    }
    func read(_ account: String, as user: String, _ password: String) throws -> Int {
      let words = ["mosquitto_sub", "-p", "\(broker.port)", "-u", user, "-P", password, "-W", "1", "-F", "%t"]
      return try run(words + ["-t", topics(of: account)]).output.split(separator: "\n").count
    }
    let devices = try ["desk", "laptop"].map { try device($0, at: broker, "Username=account") }
    #expect(try devices[0].ask("account create alice") == ["OK"])
    try devices[0].wait(state: "refused")
    let credentials = try #require(devices[0].ask("fleet credentials")[0].firstMatch(of: /user=(\S+) password=(\S+)/))
    let (account, password) = (String(credentials.1), String(credentials.2))
    try admit(account, password)
    try admit("stranger", "secret")
    try broker.forget()
    try devices[0].reload("\(broker.configuration)\nSpread=0\nUsername=account")
    try join(devices[1], by: devices[0])
    try agree(devices, on: ["desk", "laptop"])
    try devices[0].wait("the broker has all records") { try read(account, as: account, password) == 2 }
    #expect(try read(account, as: "stranger", "secret") == 0)
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
