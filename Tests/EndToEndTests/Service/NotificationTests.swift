import Foundation
import IdentityCore
import TestSupport
import Testing

/// Notifications to the service manager, and their timing.
@Suite(.tags(.threads)) struct NotificationTests {
  @Test(arguments: [
    "/nowhere/at/all", "/etc/passwd", "@abstract-and-nobody-there", "relative", "vsock:9:9", "/", "@",
    "/" + String(repeating: "a", count: 300),
  ])
  func `row 47: a notification socket that does not work does not keep the daemon from serving`(socket: String) throws {
    let daemon = try DaemonUnderTest()
    try daemon.start(through: ["env", "NOTIFY_SOCKET=\(socket)", "WATCHDOG_USEC=300000"])
    try daemon.waitForLog("The service manager could not be notified that identityd is ready: sd_notify: ")
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(daemon.end() == 0)
  }

  @Test(.enabled(if: isRoot, "attaching to the daemon needs root"))
  func `rows 7 and 48: watchdog notifications continue on a hanging disk, but not in a hanging daemon`() throws {
    let daemon = try DaemonUnderTest()
    let manager = try PlayedManager(in: daemon.folder)
    try daemon.start(through: ["env", "NOTIFY_SOCKET=\(manager.path)", "WATCHDOG_USEC=100000"])
    let device = try daemon.uuid("get device")
    try Fault.inject("fdatasync:delay_enter=1000000", into: daemon) { () throws in
      let waiting = try daemon.client()
      try waiting.send("get installation\n")
      let before = manager.count("WATCHDOG=1")
      try manager.wait(for: "WATCHDOG=1", times: before + 4)
      #expect(try daemon.uuid("get device") == device)
      #expect(try daemon.client().statusValue("installations") == "0")
      #expect(try waiting.answer().last?.contains("level=installation") == true)
    }
    kill(daemon.process.processIdentifier, SIGSTOP)
    let deadline = Date(timeIntervalSinceNow: patience)
    while try !daemon.kernelFile("status").contains("State:\tT"), Date() < deadline { usleep(1_000) }
    // Lets the notifications from before the stop arrive. Then none may come within the time of six.
    usleep(50_000)
    let before = manager.count("WATCHDOG=1")
    usleep(300_000)
    #expect(manager.count("WATCHDOG=1") == before)
    kill(daemon.process.processIdentifier, SIGCONT)
    try manager.wait(for: "WATCHDOG=1", times: before + 1)
  }

  @Test(.enabled(if: isRoot, "tracing the daemon needs root"))
  func `row 49: READY=1 is sent only after the store is verified and the socket listens`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("item put service=s account=a data=eA==") == "OK created")
    daemon.end()
    let manager = try PlayedManager(in: daemon.folder)
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(through: [
      "strace", "-D", "-f", "-s", "200", "-o", trace.path, "-e",
      "trace=openat,listen,pread64,clone3,clone,sendmsg,sendto,fdatasync,epoll_wait", "-E",
      "NOTIFY_SOCKET=\(manager.path)",
    ])
    try manager.wait(for: "READY=1")
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let ready = try #require(lines.firstIndex { $0.contains("READY=1") })
    func last(_ text: String) throws -> Int { try #require(lines[..<ready].lastIndex { $0.contains(text) }, "\(text)") }
    let listening = try last("listen(")
    #expect(try last("identityd.db\"") < ready && last("witness") < ready && listening < ready)
    // The daemon reads the whole database before it is ready: the header of the file is not proof enough.
    #expect(lines[..<ready].contains { $0.contains("pread64") })
    #expect(!lines[..<ready].contains { $0.contains("WATCHDOG=1") })
    #expect(manager.count("READY=1") == 1)
  }

  @Test func `a start with many missing manifests asks for more time after each commit`() throws {
    let daemon = try DaemonUnderTest()
    let apps = 1_100
    try daemon.storeApps(apps)
    let manager = try PlayedManager(in: daemon.folder)
    try daemon.start(through: ["env", "NOTIFY_SOCKET=\(manager.path)"])
    try manager.wait(for: "READY=1")
    let early = manager.told.components(separatedBy: "READY=1")[0]
    // Each app has one change: it is suspended.
    let commits = (apps + Bound.changesPerSurveyCommit - 1) / Bound.changesPerSurveyCommit
    let request = "EXTEND_TIMEOUT_USEC=\(Bound.startExtensionMicroseconds)"
    #expect(early.components(separatedBy: request).count - 1 == commits)
    #expect(try daemon.client().ask("app list").count { $0.contains(" suspended=") } == apps)
  }

  @Test(arguments: ["open-directory", "bad-configuration", "later-version"])
  func `row 49: a start that fails sends the reason and never READY=1`(fault: String) throws {
    let daemon = try DaemonUnderTest().start()
    daemon.end()
    let manager = try PlayedManager(in: daemon.folder)
    let file = daemon.state.appending(path: "identityd.db").path
    switch fault {
    case "open-directory":
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: daemon.state.path)
    case "bad-configuration": try daemon.configure("[Limits]\nConnections=none\n")
    default: #expect(try run(["sqlite3", file, "PRAGMA user_version = 99"]).status == 0)
    }
    try daemon.launch(through: ["env", "NOTIFY_SOCKET=\(manager.path)"])
    #expect([73, 76, 78].contains(daemon.exitStatus()))
    try manager.wait(for: "STATUS=")
    #expect(manager.count("READY=1") == 0)
  }
}
