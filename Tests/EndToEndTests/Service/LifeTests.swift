import Foundation
import TestSupport
import Testing

/// Start, stop and reload, and the reasons for which a start is refused.
@Suite(.tags(.threads)) struct LifeTests {
  @Test(arguments: [SIGTERM, SIGINT])
  func `row 43: a signal stops the daemon cleanly and removes the socket`(signal: Int32) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    #expect(daemon.end(with: signal) == 0)
    #expect(!FileManager.default.fileExists(atPath: daemon.socket))
    #expect(daemon.log.contains("Stopped."))
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `row 43: requests sent before the stop are answered`() throws {
    for _ in 0..<Trial.rounds(20, long: 20) {
      let daemon = try DaemonUnderTest().start()
      let clients = try (0..<8).map { _ in try daemon.client() }
      for client in clients { try client.send("get installation\nget device\nping\n") }
      kill(daemon.process.processIdentifier, SIGTERM)
      for client in clients {
        let lines = try client.rest()
        #expect(lines.count == 3)
        #expect(lines.allSatisfy { $0.hasPrefix("OK") }, "\(lines)")
      }
      daemon.process.waitUntilExit()
      #expect(daemon.process.terminationStatus == 0)
    }
  }

  @Test func `row 43: a client that does not read cannot prevent the stop`() throws {
    let daemon = try DaemonUnderTest().start()
    let deaf = try daemon.client()
    let sender = Sender(deaf, String(repeating: "get uuid count=10000\n", count: 100))
    sender.start()
    #expect(try daemon.ask("ping") == "OK")
    #expect(daemon.end() == 0)
    sender.wait()
  }

  @Test(.enabled(if: isRoot, "many apps need many users"))
  func `row 10: kill -9 at any moment loses no identifier that was given out`() throws {
    let daemon = try DaemonUnderTest().start()
    var told: [Int: String] = [:]
    for round in 0..<10 {
      // The first request of each user is a change. The kill comes during these changes.
      let script = """
        seq \(20_000 + round * 12) \(20_011 + round * 12) | xargs -P 12 -I{} \
          setpriv --reuid={} --regid=1 --clear-groups sh -c 'echo {} $(\(program) get installation)'
        """
      let users = Process()
      users.executableURL = URL(filePath: "/bin/sh")
      users.arguments = ["-c", script]
      users.environment = ["IDENTITYD_SOCKET": daemon.socket, "PATH": "/usr/bin:/bin"]
      let output = Pipe()
      users.standardOutput = output
      users.standardError = FileHandle.nullDevice
      try users.runUnmasked()
      // Waits until as many users as the round's number have an answer. The requests of the others are in flight.
      var text = ""
      while text.split(separator: "\n").count < round {
        let data = output.fileHandleForReading.availableData
        if data.isEmpty { break }
        text += String(decoding: data, as: UTF8.self)
      }
      daemon.end(with: SIGKILL)
      text += String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      users.waitUntilExit()
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        if words.count == 2, let user = Int(words[0]) { told[user] = String(words[1]) }
      }
      try daemon.start()
    }
    #expect(!told.isEmpty)
    for (user, installation) in told {
      #expect(try daemon.uuid("get installation app=user:\(user)") == installation)
    }
  }

  // The release build, if there is one: it starts 120 times, and the daemon is what a sanitizer has to watch.
  private var program: String { DaemonUnderTest.released.appending(path: "identityctl").path }

  // MARK: Refused starts

  @Test func `row 20b: a second daemon names the holder of the state directory, and the first goes on`() throws {
    let first = try DaemonUnderTest().start()
    let second = try DaemonUnderTest()
    try second.launch(["--state-directory", first.state.path])
    #expect(second.exitStatus() == 75)
    #expect(second.log.contains("pid \(first.process.processIdentifier)"))
    #expect(try first.ask("ping") == "OK")
  }

  @Test func `row 20b: a socket with a listener is never taken over`() throws {
    let first = try DaemonUnderTest().start()
    let second = try DaemonUnderTest()
    try second.launch(["--socket", first.socket])
    #expect(second.exitStatus() == 69)
    #expect(try first.ask("ping") == "OK")
  }

  @Test func `a stale socket is taken over`() throws {
    let daemon = try DaemonUnderTest().start()
    daemon.end(with: SIGKILL)
    #expect(FileManager.default.fileExists(atPath: daemon.socket))
    try daemon.start()
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test func `row 39: a file in the place of the socket that is no socket is left alone`() throws {
    let daemon = try DaemonUnderTest()
    try Data("precious".utf8).write(to: URL(filePath: daemon.socket))
    try daemon.launch()
    #expect(daemon.exitStatus() == 69)
    #expect(try String(contentsOfFile: daemon.socket, encoding: .utf8) == "precious")
  }

  @Test(arguments: [0o755, 0o770, 0o707])
  func `row 19: a state directory that others may enter is refused`(mode: Int) throws {
    let daemon = try DaemonUnderTest()
    try FileManager.default.createDirectory(
      at: daemon.state, withIntermediateDirectories: true, attributes: [.posixPermissions: mode])
    try daemon.launch()
    #expect(daemon.exitStatus() == 73)
    #expect(daemon.log.contains("chmod 0700"))
  }

  @Test(arguments: [
    ("PRAGMA user_version = 99", "schema version 99"),
    ("PRAGMA application_id = 0x49644401", "a development version from before the first release"),
  ])
  func `row 17: a store of another version is refused and left unchanged`(sql: String, text: String) throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    daemon.end()
    let file = daemon.state.appending(path: "identityd.db")
    #expect(try run(["sqlite3", file.path, sql]).status == 0)
    let before = try Data(contentsOf: file)
    try daemon.launch()
    #expect(daemon.exitStatus() == 76)
    #expect(daemon.log.contains(text), "\(daemon.log)")
    #expect(try Data(contentsOf: file) == before)
  }

  @Test(arguments: [["--frob"], ["word"], ["--log-level", "loud"], ["--socket"]])
  func `a wrong command line is a usage error`(options: [String]) throws {
    let daemon = try DaemonUnderTest()
    try daemon.launch(options)
    #expect(daemon.exitStatus() == 64)
    #expect(daemon.log.contains("--help"))
  }

  @Test func `row 20e: a daemon with closed standard descriptors runs and writes no log text to the store`() throws {
    let daemon = try DaemonUnderTest().start(through: ["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "-"])
    let device = try daemon.uuid("get device")
    daemon.end()
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.client().statusValue("store") == "ok")
  }

  // MARK: Configuration

  @Test func `row 44: a reload applies a good configuration and refuses a bad one, naming its line`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnections=100\n")
    try daemon.configure("[Limits]\nConnections=40\nReservedConnections=39\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    try daemon.configure("[Limits]\n\nConnections=many\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    let reason = "identityd.conf:3: [Limits] Connections= cannot be 'many'; allowed: 32 to 1000000"
    try daemon.waitForLog(reason)
    #expect(try daemon.client().statusValue("configuration-reason")?.contains(reason) == true)
    try daemon.configure("[Limits]\nConnections=41\nReservedConnections=39\n")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.", times: 2)
    #expect(try daemon.client().statusValue("configuration-reason") == nil)
    #expect(daemon.end() == 0)
  }

  @Test func `an unknown setting is a warning with file and line`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Device]\nOnMachineChange=keep\nColour=red\n")
    try daemon.waitForLog("identityd.conf:3: unknown setting [Device] Colour=")
  }

  @Test(arguments: [
    ("[Device]\nOnMachineChange=maybe\n", "identityd.conf:2", "renew, keep"),
    ("[Device]\nOnHardwareChange=\n[Log]\nLevel=loud\n", "identityd.conf:4", "err, warning, notice, info, debug"),
    ("[Limits]\nConnectionsPerUser=0\n", "identityd.conf:2", "1 to 1000000"),
    ("[Store]\nCheckpointSize=1T\n", "identityd.conf:2", "64K to 1G"),
    ("[Loop]\nPollMicroseconds=1001\n", "identityd.conf:2", "0 to 1000"),
    ("[Apps]\nDirectories=relative\n", "identityd.conf:2", "absolute paths"),
    ("[Access]\nAdminGroup=no-such-group-here\n", "AdminGroup=no-such-group-here", "no such group"),
    ("[Access]\nMonitorGroup=two words\n", "identityd.conf:2", "the name of a group"),
    ("nonsense\n", "identityd.conf:1", "neither [Section] nor Name=value"),
    ("[Limits]\nConnections=32\nReservedConnections=32\n", "[Limits]", "greater than the 32 reserved"),
  ])
  func `row 45: a bad configuration prevents the start, and the error names place and allowed values`(
    text: String, place: String, allowed: String
  ) throws {
    let daemon = try DaemonUnderTest()
    try daemon.configure(text)
    try daemon.launch()
    #expect(daemon.exitStatus() == 78)
    #expect(daemon.log.contains(place), "\(daemon.log)")
    #expect(daemon.log.contains(allowed), "\(daemon.log)")
    #expect(!FileManager.default.fileExists(atPath: daemon.state.path))
    try daemon.launch(["--check-config"])
    #expect(daemon.exitStatus() == 78)
  }

  @Test func `a daemon that polls answers as usual, sleeps, and stops polling after a reload`() throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(
      through: ["strace", "-D", "-e", "trace=epoll_wait", "-o", trace.path],
      configuration: "[Loop]\nPollMicroseconds=1000\n")
    let client = try daemon.client()
    func looks(_ limit: String, _ found: String) throws -> Int {
      let calls = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
      return calls.count { $0.contains(", \(limit))") && $0.hasSuffix(" = \(found)") }
    }
    #expect(try client.ask("ping") == ["OK"])
    // The trace shows an `epoll_wait` without a timeout only once the call has returned.
    let deadline = Date(timeIntervalSinceNow: patience)
    while try looks("-1", "1") == 0 || looks("0", "0") == 0, Date() < deadline {
      usleep(20_000)
      #expect(try client.ask("ping") == ["OK"])
    }
    try daemon.configure("")
    kill(daemon.process.processIdentifier, SIGHUP)
    try daemon.waitForLog("The configuration was loaded.")
    #expect(try client.ask("ping") == ["OK"])
    let before = try looks("0", "0")
    #expect(try before > 0 && looks("-1", "1") > 0, "it looked, found nothing, and slept")
    let pauses = 10
    for _ in 0..<pauses {
      usleep(10_000)
      #expect(try client.ask("ping") == ["OK"])
    }
    // Now and then the daemon has other work, and polls once after it, but not in each pause.
    #expect(try looks("0", "0") < before + pauses)
  }

  @Test func `--check-config accepts a good configuration and starts nothing`() throws {
    let daemon = try DaemonUnderTest()
    try daemon.configure(
      "[Device]\nOnMachineChange=keep\nOnHardwareChange=renew\n[Store]\nCheckpointSize=1M\n[Log]\nLevel=debug\n")
    try daemon.launch(["--check-config"])
    #expect(daemon.exitStatus() == 0)
    #expect(!FileManager.default.fileExists(atPath: daemon.state.path))
  }
}
