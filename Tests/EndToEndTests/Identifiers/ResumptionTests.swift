import Foundation
import TestSupport
import Testing

/// `machine resumed`: the machine goes on from a snapshot, as another one may do.
@Suite(.enabled(if: isRoot, "the verb takes an admin")) struct ResumptionTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest().start() }

  /// The identifiers of a session, and those that last longer.
  private struct Found: Equatable {
    var ofSession: [String] = []
    var lasting: [String] = []
  }

  private func found(_ client: Client) throws -> Found {
    func uuid(_ request: String) throws -> String {
      let answer = try client.ask(request).last ?? ""
      #expect(answer.hasPrefix("OK "), "\(answer)")
      return answer.split(separator: " ").dropFirst().first.map(String.init) ?? ""
    }
    return try Found(
      ofSession: ["get session", "get key a"].map(uuid),
      lasting: ["get boot", "get installation", "get vendor", "get device"].map(uuid))
  }

  @Test func `sessions and keys get other identifiers, and nothing else does`() throws {
    let client = try daemon.client()
    let before = try found(client)
    #expect(try daemon.ask("machine resumed") == "OK")
    let after = try found(client)
    #expect(Set(after.ofSession).isDisjoint(with: before.ofSession))
    #expect(after.lasting == before.lasting)
    // They are those of this process from now on, also after a restart and a kill.
    for signal in [SIGTERM, SIGKILL] {
      #expect(try found(try daemon.client()) == after)
      daemon.end(with: signal)
      try daemon.start()
    }
    #expect(try daemon.ask("machine resumed") == "OK")
    let last = try found(try daemon.client())
    #expect(Set(last.ofSession).isDisjoint(with: before.ofSession + after.ofSession))
    // No suspicion: the machine is the same.
    #expect(try !daemon.client().ask("status").contains { $0.hasPrefix("* suspect=") })
    try daemon.waitForLog("The machine goes on from a snapshot", times: 2)
  }

  @Test func `two machines that go on from one snapshot have different sessions`() throws {
    let other = try DaemonUnderTest()
    // The daemons have the same store, the same boot and the same process at their sockets.
    let first = try found(try daemon.client()).ofSession
    daemon.end()
    try FileManager.default.copyItem(at: daemon.state, to: other.state)
    try daemon.start()
    try other.start()
    #expect(try found(try daemon.client()).ofSession == first)
    #expect(try found(try other.client()).ofSession == first)
    #expect(try daemon.ask("machine resumed") == "OK")
    #expect(try other.ask("machine resumed") == "OK")
    let sessions = try [daemon, other].flatMap { try found(try $0.client()).ofSession } + first
    #expect(Set(sessions).count == 6)
  }

  @Test func `random bytes in reserve are forgotten`() throws {
    daemon.end()
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(through: ["strace", "-D", "-f", "-e", "trace=getrandom", "-o", trace.path])
    // The loop and the writer fetch 4,096 bytes each when they need some.
    func fetched() throws -> Int {
      _ = try daemon.uuid("get uuid")
      _ = try daemon.uuid("renew installation")
      return try String(contentsOf: trace, encoding: .utf8).components(separatedBy: ", 4096, ").count
    }
    _ = try daemon.uuid("get installation")
    let before = try fetched()
    #expect(try fetched() == before)
    #expect(try daemon.ask("machine resumed") == "OK")
    #expect(try fetched() == before + 2)
  }

  @Test func `one event tells each app that shares the device identifier, and one each other`() throws {
    let folder = daemon.folder.appending(path: "apps")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data("[App]\nUser=bin\nVendor=org.example\nDeviceIdentifier=vendor\n".utf8)
      .write(to: folder.appending(path: "org.example.own.app"))
    daemon.end()
    try daemon.start(configuration: "[Apps]\nDirectories=\(folder.path)\n")
    func events() throws -> [String] {
      let client = try daemon.client()
      _ = try client.ask("subscribe device since=0")
      try client.send("quit\n")
      return try client.rest().filter { $0.contains(" device resumed") }
    }
    // Apps may have sessions although there is no identifier yet.
    #expect(try daemon.ask("machine resumed") == "OK")
    let bare = try events()
    #expect(bare.count == 1 && !bare[0].contains("value="), "\(bare)")
    let device = try daemon.uuid("get device")
    let own = try OtherUser(2, of: daemon).ask("get device")
    #expect(own.hasPrefix("OK ") && !own.contains(device), "\(own)")
    #expect(try daemon.ask("machine resumed") == "OK")
    let told = try events().dropFirst()
    #expect(told.count == 2, "\(told)")
    #expect(told.contains { $0.contains("device resumed value=\(device)") })
    #expect(told.contains { $0.contains("vendor=org.example") })
  }

  @Test func `the next report of a version belongs to another session`() throws {
    let client = try daemon.client()
    #expect(try client.ask("version report 1.0").last?.contains("installed") == true)
    #expect(try client.ask("version report 1.0").last?.contains("installed") == true)
    #expect(try daemon.ask("machine resumed") == "OK")
    #expect(try client.ask("version report 1.0").last?.contains("unchanged") == true)
  }

  @Test func `a damaged record is set aside, and sessions get other identifiers`() throws {
    #expect(try daemon.ask("machine resumed") == "OK")
    let before = try found(try daemon.client())
    daemon.end()
    let file = daemon.state.appending(path: "resumed")
    var content = try Data(contentsOf: file)
    content[30] ^= 1
    try content.write(to: file)
    try daemon.start()
    let after = try found(try daemon.client())
    #expect(Set(after.ofSession).isDisjoint(with: before.ofSession) && after.lasting == before.lasting)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: daemon.state.path)
        .contains { $0.hasPrefix("resumed.damaged-") })
    daemon.end()
    try daemon.start()
    #expect(try found(try daemon.client()) == after)
  }

  @Test func `a record that cannot be read makes only sessions unavailable`() throws {
    #expect(try daemon.ask("machine resumed") == "OK")
    daemon.end()
    let file = daemon.state.appending(path: "resumed")
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
    try daemon.start()
    for request in ["get session", "get key a", "version report 1.0"] {
      #expect(try daemon.ask(request).hasPrefix("ERR unavailable "), "\(request)")
    }
    for request in ["get boot", "get device"] { #expect(try daemon.ask(request).hasPrefix("OK ")) }
  }

  @Test func `sessions change beside a damaged store, too`() throws {
    daemon.end()
    try Data("damaged".utf8).write(to: daemon.state.appending(path: "identityd.db"))
    try daemon.start()
    let before = try daemon.uuid("get session")
    #expect(try daemon.ask("get device").hasPrefix("ERR "))
    #expect(try daemon.ask("machine resumed") == "OK")
    let after = try daemon.uuid("get session")
    #expect(after != before)
    daemon.end()
    try daemon.start()
    #expect(try daemon.uuid("get session") == after)
  }

  @Test func `a record of another boot does not count`() throws {
    let before = try found(try daemon.client())
    #expect(try daemon.ask("machine resumed") == "OK")
    daemon.end()
    // A boot that no machine had: only the proof of the line is missing, and the store's key makes that.
    let boot = "mount --bind \(try bootFile()) /proc/sys/kernel/random/boot_id"
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", "\(boot) && exec \"$@\"", "-"])
    let other = try found(try daemon.client())
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state.appending(path: "resumed"))
    try daemon.start(through: ["unshare", "--mount", "sh", "-c", "\(boot) && exec \"$@\"", "-"])
    #expect(try found(try daemon.client()) == other)
    #expect(Set(other.ofSession).isDisjoint(with: before.ofSession))
  }

  private func bootFile() throws -> String {
    let file = daemon.folder.appending(path: "boot")
    try Data("11111111-2222-4333-8444-555555555555\n".utf8).write(to: file)
    return file.path
  }

  @Test func `a seal ends it, and only an admin can report it`() throws {
    #expect(try daemon.ask("machine resumed") == "OK")
    #expect(try OtherUser(65_534, of: daemon).ask("machine resumed").hasPrefix("ERR denied "))
    #expect(try daemon.ask("seal") == "OK")
    // A sealed store has no further event, but serves sessions.
    let session = try daemon.uuid("get session")
    #expect(try daemon.ask("machine resumed") == "OK")
    #expect(try daemon.uuid("get session") != session)
    daemon.end()
    try daemon.start()
    #expect(!FileManager.default.fileExists(atPath: daemon.state.appending(path: "resumed").path))
  }
}
