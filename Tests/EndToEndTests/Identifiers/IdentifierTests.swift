import Foundation
import TestSupport
import Testing

/// Peers and identifiers (identityd-protocol(7), sections "WHO IS ASKING" and "IDENTIFIERS").
struct IdentifierTests {
  @Test func `all apps share the device identifier, and each has its own installation identifier`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    #expect(device != installation)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.uuid("get installation") == installation)
    guard isRoot else { return }
    let other = try identityctl(daemon, "get", "installation", asUser: 65_534)
    #expect(other.status == 0)
    #expect(other.output.trimmingCharacters(in: .newlines) != installation)
    #expect(try identityctl(daemon, "get", "device", asUser: 65_534).output == device + "\n")
  }

  @Test(.enabled(if: isRoot, "to renew the device needs an admin"))
  func `a repeated request gets the new value after a change, on every connection`() throws {
    let daemon = try DaemonUnderTest().start()
    let clients = try (0..<3).map { _ in try daemon.client() }
    var devices: Set<String> = []
    for round in 0..<20 {
      let answers = try clients.flatMap { client in
        try client.send("get device\nget device\r\nget device\n")
        return try (0..<3).map { _ in try client.answer().last ?? "" }
      }
      #expect(Set(answers).count == 1)
      let device = try #require(answers.first?.split(separator: " ").dropFirst().first.map(String.init))
      #expect(devices.insert(device).inserted, "round \(round)")
      // A request behind `renew device` in the same pipeline gets the new identifier.
      try clients[round % 3].send("get device\nrenew device\nget device\n")
      let pipeline = try (0..<3).map { _ in try clients[round % 3].answer().last ?? "" }
      #expect(pipeline[0] == answers[0] && pipeline[2] != answers[0])
      #expect(pipeline[1].contains("previous=\(device)"))
    }
  }

  @Test(.enabled(if: isRoot, "acting as two users needs root"))
  func `app= may name one's own app or, for an admin, any installed app`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("get installation app=user:65534").hasPrefix("ERR not-found "))
    let nobody = try identityctl(daemon, "get", "installation", "app=user:65534", asUser: 65_534)
    #expect(nobody.status == 0)
    #expect(try daemon.uuid("get installation app=user:65534") + "\n" == nobody.output)
    let denied = try identityctl(daemon, "get", "installation", "app=user:0", asUser: 65_534)
    #expect(denied.status == 15)
    #expect(denied.errors.contains("user:65534"))
    #expect(denied.errors.contains("admin"))
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `whoami shows root and members of the admin group as admins`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Access]\nAdminGroup=tty\n")
    #expect(try daemon.ask("whoami").hasSuffix("admin=yes"))
    let plain = try identityctl(daemon, "--json", "whoami", asUser: 65_534).output
    #expect(plain.contains("\"admin\":false"))
    #expect(plain.contains("\"uid\":65534"))
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let member = try run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--groups=5", program, "--json", "whoami"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(member.output.contains("\"admin\":true"), "\(member)")
  }

  @Test(.enabled(if: isRoot, "acting as another user needs root"))
  func `row 36: user ID 4294967294 is that user and not root`() throws {
    let daemon = try DaemonUnderTest().start()
    let answer = try identityctl(daemon, "--json", "whoami", asUser: 4_294_967_294)
    #expect(answer.output.contains("\"user:4294967294\""), "\(answer)")
    #expect(answer.output.contains("\"admin\":false"))
  }

  @Test func `version 7 UUIDs ascend across all clients, and version 4 UUIDs never repeat`() throws {
    let daemon = try DaemonUnderTest().start()
    let clients = try (0..<4).map { _ in try daemon.client() }
    var last = ""
    var random: Set<String> = []
    for round in 0..<400 {
      for line in try clients[round % 4].ask("get uuid count=10 version=7").dropLast() {
        let uuid = String(line.dropFirst(2))
        #expect(last < uuid)
        #expect(uuid.dropFirst(14).first == "7")
        last = uuid
      }
      for line in try clients[round % 4].ask("get uuid count=10 version=4").dropLast() {
        #expect(line.dropFirst(16).first == "4")
        #expect(random.insert(line).inserted)
      }
    }
  }

  @Test func `10,000 UUIDs come in one answer`() throws {
    let daemon = try DaemonUnderTest().start()
    let lines = try daemon.client().ask("get uuid count=10000")
    #expect(lines.count == 10_001)
    #expect(lines.last == "OK 10000")
    #expect(Set(lines).count == 10_001)
  }

  @Test func `a new store on the same machine yields the same device and another installation`() throws {
    let daemon = try DaemonUnderTest().start()
    let origin = try daemon.ask("get device")
    try #require(origin.hasSuffix("origin=machine"), "this machine has no usable machine-id: \(origin)")
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.uuid("get installation") != installation)
  }

  @Test(
    .enabled(if: isRoot, "a machine-id of one's own needs a mount"),
    arguments: [
      ("", "empty"), ("uninitialized\n", "uninitialized"), ("00000000000000000000000000000000\n", "all zero"),
      ("not a machine-id\n", "not 32 hexadecimal digits"), ("0123456789abcdef\n", "not 32 hexadecimal digits"),
    ])
  func `row 41: a bad machine-id yields a random device identifier, which a good one does not replace`(
    content: String, said: String
  ) throws {
    let daemon = try DaemonUnderTest()
    try daemon.start(through: try daemon.onMachine(withID: content))
    let first = try daemon.ask("get device")
    #expect(first.hasSuffix("origin=random"), "\(first)")
    try daemon.waitForLog(said)
    daemon.end()
    try daemon.start()
    #expect(try daemon.ask("get device") == first)
  }
}
