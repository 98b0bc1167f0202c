import Foundation
import TestSupport
import Testing

/// Faults of the disk under a running daemon, which strace injects into the daemon's system calls.
@Suite(.enabled(if: isRoot, "attaching to the daemon needs root"), .serialized, .tags(.threads)) struct StoreFaultTests
{
  @Test(arguments: ["fdatasync:error=EIO", "pwrite64:error=EIO"])
  func `rows 3 and 4: a failed commit is refused, and so are later ones until the store is rewritten`(
    fault: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject(fault, into: daemon) { () throws in
      // The failed commit may be on the disk all the same.
      #expect(try daemon.ask("get installation").hasPrefix("ERR unknown "))
      #expect(try daemon.uuid("get device") == device)
      #expect(try daemon.client().statusValue("store") == "read-only")
      // The fault persists, so that the rewrite fails too.
      #expect(try daemon.ask("get installation").hasPrefix("ERR read-only "))
    }
    let installation = try eventually(daemon, "get installation")
    try daemon.waitForLog("The store was rewritten")
    #expect(try daemon.client().statusValue("store") == "ok")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.uuid("get installation") == installation)
  }

  @Test func `row 1: a full disk is reported, and changes work once there is room`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject("pwrite64:error=ENOSPC", into: daemon) { () throws in
      #expect(try daemon.ask("get installation").hasPrefix("ERR no-space "))
      #expect(try daemon.uuid("get device") == device)
    }
    #expect(try eventually(daemon, "get installation").count == 36)
  }

  @Test func `row 1: a start on a full disk serves stored data`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    try daemon.start(through: Self.fullDisk)
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.ask("get installation").hasPrefix("ERR no-space "))
    #expect(try daemon.client().statusValue("store") == "no-space")
    kill(try #require(Int32(try daemon.client().statusValue("pid") ?? "")), SIGKILL)
    daemon.process.waitUntilExit()
  }

  /// A wrapper under which the disk appears to be full.
  static let fullDisk = [
    "strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", "inject=pwrite64:error=ENOSPC",
  ]

  /// Starts the daemon with a fault in its system calls on the database.
  private func start(_ daemon: DaemonUnderTest, _ fault: String) throws {
    let call = fault.split(separator: ":")[0]
    try daemon.start(
      through: [
        "strace", "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(fault)", "-P",
        daemon.state.appending(path: "identityd.db").path,
      ])
  }

  /// Kills a daemon that runs under strace.
  private func endTraced(_ daemon: DaemonUnderTest) throws {
    kill(try #require(Int32(try daemon.client().statusValue("pid") ?? "")), SIGKILL)
    daemon.process.waitUntilExit()
  }

  @Test func `row 5: a temporary read error during a start only delays it`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    try start(daemon, "pread64:error=EIO:when=1..3")
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try daemon.uuid("get device") == device)
    try endTraced(daemon)
    #expect(try !FileManager.default.contentsOfDirectory(atPath: daemon.state.path).contains { $0.contains("damaged") })
  }

  @Test func `row 5: a lasting read error during a start renames no file and makes up no identifier`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path).sorted()
    try start(daemon, "pread64:error=EIO")
    #expect(try daemon.client().statusValue("store") == "read-error")
    for request in ["get device", "get session", "item put service=s account=a data=eA=="] {
      let answer = try daemon.ask(request)
      #expect(answer.hasPrefix("ERR unavailable "), "\(request): \(answer)")
    }
    try endTraced(daemon)
    #expect(try FileManager.default.contentsOfDirectory(atPath: daemon.state.path).sorted() == names)
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `row 3: a start that learns of a lost write rewrites the store before it takes changes`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    try start(daemon, "fsync:error=EIO:when=1")
    #expect(try daemon.client().statusValue("store") == "read-only")
    #expect(try daemon.uuid("get device") == device)
    _ = try eventually(daemon, "get installation")
    try daemon.waitForLog("The store was rewritten")
    try endTraced(daemon)
  }

  @Test func `row 7: reads are served while a commit waits for a slow disk`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try Fault.inject("fdatasync:delay_enter=2000000", into: daemon) { () throws in
      let waiting = try daemon.client()
      try waiting.send("get installation\nping\n")
      for _ in 0..<100 { #expect(try daemon.uuid("get device") == device) }
      #expect(try daemon.client().statusValue("installations") == "0")
      #expect(try waiting.answer().last?.contains("level=installation") == true)
      #expect(try waiting.answer() == ["OK"])
    }
  }

  @Test func `row 3: a failing checkpoint stops acknowledgements and loses none that were given`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Store]\nCheckpointSize=64K\n")
    var told: [Int: String] = [:]
    try Fault.inject("fdatasync:error=EIO", on: "identityd.db", into: daemon) { () throws in
      // Each installation is a commit of a few pages. After some of them, a checkpoint is due.
      for user in 30_000..<30_060 {
        let answer = try identityctl(daemon, "get", "installation", asUser: user)
        if answer.status == 23 { break }
        told[user] = answer.output.trimmingCharacters(in: .newlines)
      }
      #expect((1..<60).contains(told.count), "\(told.count) were acknowledged")
      #expect(try daemon.client().statusValue("store") == "read-only")
    }
    _ = try eventually(daemon, "get installation")
    daemon.end(with: SIGKILL)
    try daemon.start()
    for (user, installation) in told { #expect(try daemon.uuid("get installation app=user:\(user)") == installation) }
  }

  @Test func `row 14: a deleted database is noticed before the next acknowledgement`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    try FileManager.default.removeItem(at: daemon.state.appending(path: "identityd.db"))
    #expect(try daemon.ask("get installation").hasPrefix("ERR read-only "))
    let installation = try eventually(daemon, "get installation")
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
    #expect(try daemon.uuid("get installation") == installation)
  }

  /// Repeats a request until it succeeds, and returns the UUID. The daemon tries to rewrite its store at most once
  /// a second.
  private func eventually(_ daemon: DaemonUnderTest, _ request: String) throws -> String {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if try daemon.ask(request).hasPrefix("OK ") { return try daemon.uuid(request) }
      usleep(50_000)
    }
    throw Failure("\(request) is still refused: \(try daemon.ask(request))")
  }
}

/// Damage that a start finds.
struct DamageTests {
  private func stopped() throws -> (daemon: DaemonUnderTest, device: String) {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.uuid("get device")
    daemon.end()
    return (daemon, device)
  }

  @Test(arguments: ["empty", "garbage", "truncated"])
  func `rows 12 and 13: a damaged database is set aside and named, and no identifier is made up`(how: String) throws {
    let (daemon, _) = try stopped()
    let file = daemon.state.appending(path: "identityd.db")
    let whole = try Data(contentsOf: file)
    let damaged =
      how == "empty" ? Data() : how == "garbage" ? Data(repeating: 0x55, count: 16_384) : whole.prefix(5_000)
    try damaged.write(to: file)
    try daemon.start()
    for request in ["get device", "get installation"] { #expect(try daemon.ask(request).hasPrefix("ERR internal ")) }
    #expect(try daemon.client().statusValue("store") == "damaged")
    #expect(try daemon.ask("ping") == "OK")
    let names = try FileManager.default.contentsOfDirectory(atPath: daemon.state.path)
    let aside = try #require(names.first { $0.hasPrefix("identityd.db.damaged-") && !$0.hasSuffix("-wal") }, "\(names)")
    #expect(try Data(contentsOf: daemon.state.appending(path: aside)) == damaged)
    try daemon.waitForLog(aside)
    // The damage is logged once, not for each request.
    for _ in 0..<50 { #expect(try daemon.ask("get device").hasPrefix("ERR internal ")) }
    #expect(daemon.log.components(separatedBy: "only proven records are served").count == 2)
    daemon.end()
    // The next start makes up no identifier either.
    try daemon.start()
    #expect(try daemon.ask("get device").hasPrefix("ERR internal "))
  }

  @Test func `a damaged file that is replaced with a good copy is served again`() throws {
    let (daemon, device) = try stopped()
    let file = daemon.state.appending(path: "identityd.db")
    let whole = try Data(contentsOf: file)
    try Data().write(to: file)
    try daemon.start()
    daemon.end()
    try whole.write(to: file)
    try daemon.start()
    #expect(try daemon.uuid("get device") == device)
  }

  @Test func `row 12: an edited row is named and not served, and nothing is made up in its place`() throws {
    let (daemon, _) = try stopped()
    let file = daemon.state.appending(path: "identityd.db").path
    let sql = "UPDATE identifier SET value = '11111111-1111-4111-8111-111111111111' WHERE level = 'device'"
    #expect(try run(["sqlite3", file, sql]).status == 0)
    try daemon.start()
    #expect(try daemon.ask("get device").hasPrefix("ERR internal "))
    try daemon.waitForLog("a row of identifier (1 device) is not authentic")
  }

  @Test func `row 9: after a kill at any sync of the first start, the next start works`() throws {
    var cuts = 0
    for sync in 1...40 {
      let daemon = try DaemonUnderTest()
      try daemon.launch(through: [
        "strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e",
        "inject=fsync,fdatasync:signal=SIGKILL:when=\(sync)",
      ])
      while daemon.process.isRunning, (try? daemon.ask("ping")) != "OK" { usleep(1_000) }
      // After the last sync of a start there is no cut, and the daemon serves.
      if daemon.process.isRunning {
        let number = try #require(Int32(try daemon.client().statusValue("pid") ?? ""))
        kill(number, SIGKILL)
        daemon.process.waitUntilExit()
        break
      }
      cuts += 1
      try daemon.start()
      #expect(try daemon.ask("get device").hasPrefix("OK "), "cut at sync \(sync)")
      #expect(try daemon.client().statusValue("store") == "ok")
    }
    #expect(cuts > 5)
  }

  @Test func `sqlite3 can read the stored data`() throws {
    let (daemon, device) = try stopped()
    let file = daemon.state.appending(path: "identityd.db").path
    #expect(try run(["sqlite3", file, "SELECT level, value FROM identifier"]).output == "device|\(device)\n")
  }
}
