import Foundation
import TestSupport
import Testing

/// `identityctl monitor` and `identityctl wait` (identityctl(1), section "EVENTS").
@Suite(.tags(.plain, .seldomThreads)) struct MonitorTests {
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  private let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  // MARK: monitor

  @Test func `monitor prints changes by other clients as they happen`() throws {
    let daemon = try DaemonUnderTest().start()
    let monitor = try FollowingClient(daemon, "monitor")
    let devices = try FollowingClient(daemon, "monitor", "device", "--json", "--format=upper")
    try daemon.waitForStatus("subscribers", "2")
    #expect(try identityctl(daemon, "migrate", "device", uuid, "commit=yes").status == 0)
    #expect(try identityctl(daemon, "get", "installation").status == 0)
    let lines = try monitor.waitForLines { lines in lines.contains { $0.contains("  installation created  ") } }
    let device = try #require(lines.first { $0.contains("  device created  value=\(uuid) cause=migrated") }, "\(lines)")
    #expect(device.contains(#/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z  \d+  device created  /#), "\(device)")
    #expect(!device.contains("time="))
    let event = try #require(try devices.waitForEvents(1).first)
    #expect((event.topic, event.name) == ("device", "created"))
    #expect(event.value == uuid.uppercased())
    #expect(event.time.count == 24)
    #expect(try devices.lines().count == 1, "the installation is another topic")
    #expect(monitor.end() == 128 + SIGTERM)
    #expect(monitor.errors == "")
  }

  @Test func `monitor --since prints earlier events first`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    _ = try daemon.uuid("get installation")
    let last = try #require(Int64(try daemon.client().statusValue("last-event") ?? ""))
    #expect(last > 1)
    let all = try FollowingClient(daemon, "monitor", "--json", "--since=0")
    let rest = try FollowingClient(daemon, "monitor", "--json", "--since=1")
    #expect(try all.waitForEvents(Int(last)).map(\.sequence).sorted() == Array(1...last))
    #expect(try rest.waitForEvents(Int(last) - 1).map(\.sequence).sorted() == Array(2...last))
  }

  @Test func `monitor ends at once when its reader is gone, with or without new events`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    for reader in ["head --lines=1", "true"] {
      let since = reader == "true" ? "" : "--since=0"
      let script = "timeout 20 \(program) monitor \(since) | \(reader) > /dev/null; echo ${PIPESTATUS[0]}"
      let result = try run(["bash", "-c", script], environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect((result.output, result.errors) == ("5\n", ""))
    }
  }

  @Test func `a terminal gets colours unless NO_COLOR or TERM=dumb is set`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    for (environment, isColoured) in [
      (["TERM": "xterm", "NO_COLOR": ""], true), (["TERM": "xterm", "NO_COLOR": "1"], false),
      (["TERM": "dumb", "NO_COLOR": ""], false),
    ] {
      let result = try run(
        ["script", "--quiet", "--return", "--command", "\(program) wait device --since=0", "/dev/null"],
        environment: environment.merging(["IDENTITYD_SOCKET": daemon.socket]) { $1 })
      #expect(result.output.contains("\u{1b}[") == isColoured, "\(result)")
      #expect(result.output.contains("device created"))
    }
  }

  @Test func `monitor reports once that the daemon is gone and once that it is back`() throws {
    let daemon = try DaemonUnderTest().start()
    let monitor = try FollowingClient(daemon, "monitor", "device")
    let quiet = try FollowingClient(daemon, "monitor", "device", "--quiet")
    try daemon.waitForStatus("subscribers", "2")
    daemon.end()
    try monitor.waitForErrors("the daemon is gone")
    // Waits as long as the longest pause between two attempts to connect: failed attempts are not reported.
    usleep(1_200_000)
    try daemon.start()
    #expect(try daemon.ask("migrate device \(uuid) commit=yes").hasPrefix("OK "))
    _ = try monitor.waitForLines { $0.count == 1 }
    _ = try quiet.waitForLines { $0.count == 1 }
    #expect(monitor.errors.split(separator: "\n").count == 2, "\(monitor.errors)")
    #expect(monitor.errors.contains("the daemon is back"))
    #expect(quiet.errors == "")
  }

  @Test func `monitor reports a new store with new sequence numbers, and follows it`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get installation")
    let monitor = try FollowingClient(daemon, "monitor", "--json", "--since=0")
    _ = try monitor.waitForEvents(2)
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    try monitor.waitForErrors("events may have been missed")
    try daemon.waitForStatus("subscribers", "1")
    let before = try monitor.lines().count
    _ = try daemon.uuid("get installation")
    #expect(try monitor.waitForEvents(before + 1)[before].sequence == 2)
  }

  @Test(.enabled(if: isRoot, "only an admin sees all events, and may list devices"))
  func `row 10: monitor neither loses nor repeats an acknowledged event across kills`() throws {
    let kills = ProcessInfo.processInfo.environment["IDENTITYD_KILLS"].flatMap { Int($0) } ?? 20
    let daemon = try DaemonUnderTest().start()
    let monitor = try FollowingClient(daemon, "monitor", "--json", "--since=0")
    let changers = (0..<3).map { _ in Changer(daemon.socket) }
    for changer in changers { changer.start() }
    for _ in 0..<kills {
      // Waits until the monitor follows again, so that the next kill interrupts it.
      let seen = try monitor.lines().count
      _ = try monitor.waitForLines { $0.count > seen }
      usleep(.random(in: 0...60_000))
      daemon.end(with: SIGKILL)
      try daemon.start()
    }
    let changes = changers.flatMap { $0.stop() }
    let last = try #require(Int(try daemon.client().statusValue("last-event") ?? ""))
    let events = try monitor.waitForEvents(last)
    #expect(events.map(\.sequence) == Array(1...Int64(last)))
    let told = Set(events.map { Change(name: $0.name, value: $0.value ?? "") })
    #expect(changes.count > kills)
    #expect(changes.filter { !told.contains($0) } == [])
    let lines = monitor.errors.split(separator: "\n")
    #expect(lines.count == 2 * lines.count { $0.contains("the daemon is gone") }, "\(monitor.errors)")
    #expect(!monitor.errors.contains("missed"), "\(monitor.errors)")
  }

  @Test(.enabled(if: isRoot, "only an admin may name the account"))
  func `monitor fetches the events that it did not read in time`() throws {
    let daemon = try DaemonUnderTest().start()
    let monitor = try FollowingClient(daemon, "monitor", "--json", "--since=0")
    try daemon.waitForStatus("subscribers", "1")
    monitor.send(SIGSTOP)
    // More bytes than the daemon buffers for a subscriber, and fewer events than it keeps.
    let client = try daemon.client()
    for round in 0..<80 {
      let names = (0..<100).map { String(repeating: "x", count: 240) + String(round * 100 + $0) }
      try client.send(names.map { "account set \($0)\n" }.joined())
      for _ in names { try #require(try client.line() == "OK") }
    }
    monitor.send(SIGCONT)
    #expect(try monitor.waitForEvents(8_001).map(\.sequence) == Array(1...8_001))
    #expect(monitor.errors == "")
  }

  // MARK: wait

  @Test func `wait prints the first event of its topics and ends`() throws {
    let daemon = try DaemonUnderTest().start()
    let wait = try FollowingClient(daemon, "wait", "device", "account", "--timeout=20.5")
    try daemon.waitForStatus("subscribers", "1")
    _ = try daemon.uuid("get installation")
    _ = try daemon.uuid("get device")
    #expect(wait.exitStatus() == 0)
    let lines = try wait.lines()
    #expect(lines.count == 1 && lines[0].contains("  device created  value="), "\(lines)")
    let again = try identityctl(daemon, "wait", "device", "--since=0", "--json")
    #expect(again.status == 0)
    #expect(again.output.contains("\"topic\":\"device\",\"action\":\"created\""))
    let quiet = try identityctl(daemon, "--quiet", "wait", "device", "--since=0")
    #expect((quiet.status, quiet.output) == (0, ""))
  }

  @Test func `wait ends after its timeout with a separate exit status`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    let start = ContinuousClock.now
    let result = try identityctl(daemon, "wait", "device", "--timeout=0.3")
    #expect((result.status, result.output) == (6, ""))
    #expect(ContinuousClock.now - start >= .milliseconds(300))
    #expect(try identityctl(daemon, "wait", "device", "--timeout=0.01", "--quiet").errors == "")
  }

  @Test func `wait misses no event across a restart`() throws {
    let daemon = try DaemonUnderTest().start()
    let wait = try FollowingClient(daemon, "wait", "device", "--timeout=20")
    try daemon.waitForStatus("subscribers", "1")
    daemon.end(with: SIGKILL)
    try daemon.start()
    // The client may or may not have reconnected by now.
    #expect(try daemon.ask("migrate device \(uuid) commit=yes").hasPrefix("OK "))
    #expect(wait.exitStatus() == 0)
    #expect(try wait.lines().joined().contains(uuid))
  }

  @Test func `the timeout of wait elapses while the daemon is gone`() throws {
    let daemon = try DaemonUnderTest().start()
    let wait = try FollowingClient(daemon, "wait", "device", "--timeout=1")
    try daemon.waitForStatus("subscribers", "1")
    daemon.end()
    #expect(wait.exitStatus() == 6)
    #expect(wait.errors.contains("the daemon is gone"))
  }

  @Test func `the timeout of wait elapses while the daemon does not answer`() throws {
    let daemon = try DaemonUnderTest().start()
    kill(daemon.process.processIdentifier, SIGSTOP)
    defer { kill(daemon.process.processIdentifier, SIGCONT) }
    #expect(try identityctl(daemon, "wait", "device", "--timeout=0.3").status == 6)
  }

  // MARK: Command line

  @Test(
    arguments: [
      (["wait"], 2), (["wait", "device", "--timeout=soon"], 2), (["wait", "device", "--timeout=1."], 2),
      (["monitor", "--timeout=1"], 2), (["monitor", "since=0"], 2), (["monitor", "--since=-1"], 2),
      (["get", "device", "--since=0"], 2), (["monitor", "--epoch=a"], 2), (["ping", "--since=0", "--epoch=a"], 2),
      (["monitor", "colour"], 13), (["wait", "colour"], 13),
      (["monitor", "--since=1000000"], 13),
    ] as [([String], Int32)])
  func `invalid topics, numbers and options are refused with a reason`(words: [String], status: Int32) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try run([program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect((result.status, result.output) == (status, ""))
    #expect(!result.errors.isEmpty)
  }

  @Test(arguments: [["monitor"], ["wait", "device", "--timeout=5"]])
  func `monitor and wait fail if there is no daemon at the beginning`(words: [String]) throws {
    let result = try run([program] + words, environment: ["IDENTITYD_SOCKET": "/nonexistent/socket"])
    #expect(result.status == 3)
    #expect(result.errors.contains("/nonexistent/socket"))
  }

  @Test func `help describes monitor, wait and their options`() throws {
    let help = try run([program, "--help", "--all"]).output
    for text in [
      "monitor [TOPIC…]", "wait TOPIC [TOPIC…]", "--since=SEQ", "--epoch=WORD", "--timeout=SECONDS",
      "Options of 'monitor' and 'wait'",
    ] {
      #expect(help.contains(text), "\(help)")
    }
    #expect(try run([program, "--help", "wait"]).output.hasPrefix("identityctl [OPTION…] wait TOPIC [TOPIC…]\n"))
  }
}

/// An `identityctl` that keeps running, with its output in files.
private final class FollowingClient {
  /// One line of the output with `--json`.
  struct Event: Decodable {
    let sequence: Int64
    let topic: String
    let name: String
    let time: String
    let value: String?

    enum CodingKeys: String, CodingKey {
      case sequence, topic, time, value
      case name = "action"
    }
  }

  private let process = Process()
  private let output: URL
  private let errorFile: URL

  init(_ daemon: DaemonUnderTest, _ words: String...) throws {
    let name = UUID().uuidString
    output = daemon.folder.appending(path: "\(name).out")
    errorFile = daemon.folder.appending(path: "\(name).err")
    for file in [output, errorFile] { try Data().write(to: file) }
    process.executableURL = DaemonUnderTest.binaries.appending(path: "identityctl")
    process.arguments = words
    process.environment = ProcessInfo.processInfo.environment.merging(["IDENTITYD_SOCKET": daemon.socket]) { $1 }
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: errorFile)
    process.standardInput = FileHandle.nullDevice
    try process.runUnmasked()
  }

  deinit { if process.isRunning { end() } }

  /// Returns the complete lines of the output so far.
  func lines() throws -> [String] {
    try String(contentsOf: output, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
      .dropLast().map(String.init)
  }

  var errors: String { (try? String(contentsOf: errorFile, encoding: .utf8)) ?? "" }

  func waitForLines(_ isEnough: ([String]) -> Bool) throws -> [String] {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      let lines = try lines()
      if isEnough(lines) { return lines }
      usleep(5_000)
    }
    throw Failure("not enough was written: \(try lines().suffix(20)) \(errors)")
  }

  /// Waits for at least `count` events and returns all events so far, parsed from JSON.
  func waitForEvents(_ count: Int) throws -> [Event] {
    let lines = try waitForLines { $0.count >= count }
    return try lines.map { try JSONDecoder().decode(Event.self, from: Data($0.utf8)) }
  }

  func waitForErrors(_ text: String) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      if errors.contains(text) { return }
      usleep(5_000)
    }
    throw Failure("'\(text)' was not said: \(errors)")
  }

  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Terminates the client.
  ///
  /// - Returns: the exit status, or 128 plus the signal's number.
  @discardableResult
  func end() -> Int32 {
    process.terminate()
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
  }

  /// Waits for the client to exit by itself.
  ///
  /// - Returns: the exit status. Nil if the client does not exit in time.
  func exitStatus() -> Int32? {
    let deadline = Date(timeIntervalSinceNow: patience)
    while process.isRunning, Date() < deadline { usleep(5_000) }
    return process.isRunning ? nil : process.terminationStatus
  }
}

/// A change to the list of devices.
private struct Change: Hashable {
  /// `added` or `removed`, as in the event.
  let name: String
  let value: String
}

/// Adds devices to the list and removes them again, across restarts of the daemon.
private final class Changer: @unchecked Sendable {
  // Sendable: the lock guards `isStopping`. `stop` reads `acknowledged` only after the thread has finished.
  private let socket: String
  private let lock = NSLock()
  private let done = DispatchSemaphore(value: 0)
  private var isStopping = false
  private var acknowledged: [Change] = []

  init(_ socket: String) { self.socket = socket }

  func start() {
    Thread.detachNewThread { [self] in
      while !lock.withLock({ isStopping }) {
        // The daemon is gone. It may or may not have made the change that it did not acknowledge.
        do { try change() } catch { usleep(2_000) }
      }
      done.signal()
    }
  }

  /// Stops the thread and returns the acknowledged changes.
  func stop() -> [Change] {
    lock.withLock { isStopping = true }
    done.wait()
    return acknowledged
  }

  private func change() throws {
    let client = try Client(socket)
    while !lock.withLock({ isStopping }) {
      let value = UUID().uuidString.lowercased()
      try acknowledge("devices put", Change(name: "added", value: value), client)
      try acknowledge("devices remove", Change(name: "removed", value: value), client)
      // Limits the rate. At full speed, reading all the events would take longer than the test.
      usleep(1_000)
    }
  }

  private func acknowledge(_ verb: String, _ change: Change, _ client: Client) throws {
    guard try client.ask("\(verb) \(change.value)") == ["OK"] else { throw Failure("\(verb) was refused") }
    acknowledged.append(change)
  }
}
