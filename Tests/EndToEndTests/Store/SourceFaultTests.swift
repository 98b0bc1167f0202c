import Foundation
import TestSupport
import Testing

/// Faults of the machine-id and of the kernel's random numbers.
@Suite(.enabled(if: isRoot, "a machine-id of one's own needs a mount"), .serialized, .tags(.plain))
struct SourceFaultTests {
  @Test(arguments: [
    ("rm /etc/machine-id", "random"), ("rm /etc/machine-id; mkdir /etc/machine-id", "random"),
    ("rm /etc/machine-id; ln -s nowhere /etc/machine-id", "random"), (": > /etc/machine-id", "random"),
    ("echo 0123456789abcdef0123456789abcde > /etc/machine-id", "random"),
    ("echo 01234567-89ab-cdef-0123-456789abcdef > /etc/machine-id", "random"),
    ("echo 0123456789abcdef0123456789abcdefa > /etc/machine-id", "random"),
    ("echo 0123456789abcdeg0123456789abcdef > /etc/machine-id", "random"),
    ("printf '0123456789abcdef0123456789abcdef\\nmore\\n' > /etc/machine-id", "random"),
    ("printf 0123456789abcdef0123456789abcdef > /etc/machine-id", "machine"),
    ("echo 0123456789abcdef0123456789abcdef > /etc/machine-id", "machine"),
  ])
  func `row 41: a device identifier comes from a valid machine-id or from none, and stays`(
    script: String, origin: String
  ) throws {
    let daemon = try DaemonUnderTest()
    try daemon.start(through: daemon.privateEtc(script))
    let answer = try daemon.ask("get device")
    #expect(answer.hasSuffix("origin=\(origin)"), "\(answer) \(daemon.log)")
    let device = try daemon.uuid("get device")
    daemon.end()
    try daemon.start(through: daemon.privateEtc(script))
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.client().statusValue("store") == "ok")
    daemon.end()
    // The machine-id never reaches a client or the disk.
    #expect(try run(["grep", "--recursive", "--text", "0123456789abcde", daemon.state.path]).status == 1)
  }

  @Test func `row 41: an unreadable machine-id is logged, and the device identifier is random`() throws {
    let daemon = try DaemonUnderTest()
    try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: daemon.folder.path)
    let script = "chmod 0000 /etc/machine-id"
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    try daemon.start(through: daemon.privateEtc(script) + user)
    #expect(try daemon.ask("get device").hasSuffix("origin=random"))
    try daemon.waitForLog("Permission denied")
  }

  @Test(arguments: ["ENOSYS", "EAGAIN", "EIO"])
  func `row 41e: without random numbers there is no start, and nothing is created`(error: String) throws {
    let daemon = try DaemonUnderTest()
    // The first call belongs to the Swift runtime.
    try daemon.launch(through: [
      "strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=getrandom", "-e", "inject=getrandom:error=\(error):when=2+",
    ])
    #expect(daemon.exitStatus() == 1)
    #expect(daemon.log.contains("getrandom: "), "\(daemon.log)")
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path)
    #expect(names == ["lock"])
    try daemon.start()
    #expect(try daemon.ask("get device").hasPrefix("OK "))
  }

  @Test func `row 41e: a start waits for random numbers that come late`() throws {
    let daemon = try DaemonUnderTest()
    try daemon.launch(through: [
      "strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=getrandom", "-e",
      "inject=getrandom:error=EINTR:when=2..2000",
    ])
    let deadline = Date(timeIntervalSinceNow: patience)
    while daemon.process.isRunning, (try? daemon.ask("ping")) != "OK", Date() < deadline { usleep(5_000) }
    #expect(try daemon.ask("get device").hasPrefix("OK "))
  }

  @Test func `row 41e: if random numbers fail later, no identifier is made up and stored ones are served`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject("getrandom:error=EIO", into: daemon) { () throws in
      let client = try daemon.client()
      // Exhausts the page of random numbers that the daemon has in reserve.
      var answer = ""
      for _ in 0..<20 { answer = try client.ask("get uuid count=1000").last ?? "" }
      #expect(answer.hasPrefix("ERR internal "), "\(answer)")
      #expect(try daemon.uuid("get device") == device)
      let fresh = try client.ask("get installation").last ?? ""
      #expect(fresh.hasPrefix("ERR ") || fresh.hasPrefix("OK "), "\(fresh)")
    }
    #expect(try daemon.client().ask("get uuid count=1000").last == "OK 1000")
  }
}
