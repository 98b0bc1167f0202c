import Foundation
import TestSupport
import Testing

/// Faults that strace(1) injects into the system calls of a running daemon.
enum Fault {
  /// Makes system calls fail, or kill the daemon, while the body runs.
  ///
  /// - Parameters:
  ///   - fault: the fault, in the syntax of strace's `inject=`.
  ///   - file: the name of the file in the state directory to which the faulty calls refer. Nil for calls on any file.
  ///   - record: a further system call, and the file for a record of these calls.
  static func inject(
    _ fault: String, on file: String? = nil, into daemon: DaemonUnderTest,
    recording record: (call: String, file: URL)? = nil, _ body: () throws -> Void
  ) throws {
    let calls = String(fault.prefix { $0 != ":" }) + (record.map { ",\($0.call)" } ?? "")

    let tracer = Process()
    tracer.executableURL = URL(filePath: "/usr/bin/env")
    // A call names the file by its full path or by its name in the folder.
    let path = file.map { ["-P", daemon.state.appending(path: $0).path, "-P", $0] } ?? []
    tracer.arguments =
      ["strace", "-f", "-p", "\(daemon.process.processIdentifier)"] + path
      + ["-e", "trace=\(calls)", "-e", "inject=\(fault)"] + (record.map { ["-o", $0.file.path] } ?? [])
    let said = Pipe()
    tracer.standardError = said
    try tracer.runUnmasked()
    var text = ""
    while !text.contains("attached") {
      let data = said.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failure("strace could not attach: \(text)") }
      text += String(decoding: data, as: UTF8.self)
    }
    // strace reports each thread as it attaches, and may attach to the last thread a moment later.
    while tracer.isRunning, isUntraced(daemon) { usleep(1_000) }
    said.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    defer {
      // After it has killed the daemon, strace exits by itself. If strace is interrupted before that, it may wait
      // for ever.
      let isKilled = fault.contains("SIGKILL") && (try? daemon.ask("ping")) != "OK"
      if !isKilled { tracer.interrupt() }
      tracer.waitUntilExit()
      said.fileHandleForReading.readabilityHandler = nil
    }
    try body()
  }

  private static func isUntraced(_ daemon: DaemonUnderTest) -> Bool {
    let tasks = "/proc/\(daemon.process.processIdentifier)/task"
    return (try? FileManager.default.contentsOfDirectory(atPath: tasks))?.contains { task in
      (try? String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8))?.contains("TracerPid:\t0\n") == true
    } == true
  }
}

extension DaemonUnderTest {
  /// Repeats a request until it succeeds. The daemon tries to rewrite a failed store at most once a second.
  @discardableResult
  func eventually(_ request: String) throws -> [String] {
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      let answer = try client().ask(request)
      if answer.last?.hasPrefix("OK") == true { return answer }
      usleep(50_000)
    }
    throw Failure("\(request) is still refused: \(try ask(request))")
  }

  /// Kills a daemon that runs under a tracer, and waits for the tracer to exit.
  func killTraced() throws {
    kill(try #require(Int32(try client().statusValue("pid") ?? "")), SIGKILL)
    process.waitUntilExit()
  }

  /// Runs SQL on the store of a stopped daemon.
  func edit(_ sql: String) throws {
    let edited = try run(["sqlite3", state.appending(path: "identityd.db").path, sql])
    try #require(edited.status == 0, "\(edited.errors)")
  }
}

/// Returns a numbered secret as Base64 text. The text has no padding, and is the item's label too.
func pair(_ number: Int) -> String {
  Data("number \(String(repeating: "0", count: 8 - "\(number)".count))\(number)".utf8).base64EncodedString()
}

/// Returns the text of ``pair(_:)`` from an answer to `item read`. The secret and the label must be equal.
func readPair(_ line: String) throws -> String {
  let words = line.split(separator: " ")
  try #require(words.count > 5 && words[0] == "OK" && words[1].hasPrefix("data="), "\(line)")
  let label = words.first { $0.hasPrefix("label=") }?.dropFirst("label=".count)
  try #require(words[1].dropFirst("data=".count) == label, "\(line)")
  return String(label ?? "")
}

/// Items on a failing disk, in a killed daemon, and in an edited store.
@Suite(.serialized, .tags(.seldomThreads)) struct ItemFaultTests {
  // MARK: Failing disk

  @Test(
    .enabled(if: isRoot, "attaching to the daemon needs root"),
    arguments: [
      ("fdatasync:error=EIO", "unknown"), ("pwrite64:error=EIO", "unknown"), ("pwrite64:error=ENOSPC", "no-space"),
    ])
  func `row 3: failed writes are refused, acknowledged items stay, and later changes work`(
    fault: String, code: String
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    for number in [1, 2] {
      #expect(
        try client.ask("item put service=s account=a\(number) data=\(pair(number)) label=\(pair(number))") == [
          "OK created"
        ])
    }
    let found = try client.ask("item find")
    let last = try client.statusValue("last-event")
    func expectUnchanged() throws {
      #expect(try client.ask("item find") == found)
      for number in [1, 2] {
        #expect(try readPair(try client.ask("item read service=s account=a\(number)")[0]) == pair(number))
      }
      #expect(try client.statusValue("items") == "2")
      #expect(try client.statusValue("last-event") == last)
    }
    // After a failed commit the daemon attempts no other, so later changes get `read-only`.
    func expectRefused(_ answer: String) {
      #expect(
        answer.hasPrefix("ERR \(code) ") || code == "unknown" && answer.hasPrefix("ERR read-only "), "\(answer)")
    }
    try Fault.inject(fault, into: daemon) { () throws in
      for request in [
        "item put service=s account=a1 data=\(pair(9)) label=\(pair(9))", "item add service=s account=a3 data=eA==",
        "item update service=s account=a1 label=x", "item update service=s account=a2 data=eA==",
        "item delete service=s",
      ] {
        expectRefused(try client.ask(request)[0])
        try expectUnchanged()
      }
      // A failed commit also refuses the changes that were sent before its refusal.
      try client.send((3..<40).map { "item put service=s account=a\($0) data=eA==\n" }.joined())
      for _ in 3..<40 { expectRefused(try client.answer()[0]) }
      try expectUnchanged()
    }
    try expectUnchanged()
    #expect(try daemon.eventually("item put service=s account=a3 data=\(pair(3)) label=\(pair(3))") == ["OK created"])
    for signal in [SIGKILL, SIGTERM] {
      for number in 1...3 {
        #expect(try readPair(try daemon.ask("item read service=s account=a\(number)")) == pair(number))
      }
      #expect(try daemon.client().statusValue("items") == "3")
      daemon.end(with: signal)
      try daemon.start()
    }
  }

  @Test func `readers do not notice that the store is rewritten`() throws {
    let daemon = try DaemonUnderTest().start()
    let (writer, reader) = (try daemon.client(), try daemon.client())
    let large = Data(repeating: 7, count: 20_000).base64EncodedString()
    for number in 0..<50 { try writer.send("item put service=s account=a\(number) data=\(large)\n") }
    for _ in 0..<50 { #expect(try writer.answer() == ["OK created"]) }
    for round in 1...3 {
      // Removes the store's WAL. The next commit notices the loss, unless the watch of the folder was faster.
      try FileManager.default.removeItem(at: daemon.state.appending(path: "identityd.db-wal"))
      var answer = ""
      while !answer.hasPrefix("OK ") {
        try writer.send("item put service=s account=w data=eA==\n")
        try reader.send((0..<50).map { "item read service=s account=a\($0)\n" }.joined())
        for _ in 0..<50 { #expect(try reader.answer()[0].hasPrefix("OK data=\(large) ")) }
        answer = try writer.answer()[0]
        #expect(answer.hasPrefix("OK ") || answer.hasPrefix("ERR read-only "), "\(answer)")
      }
      try daemon.waitForLog("The store was rewritten", times: round)
      #expect(answer == (round == 1 ? "OK created" : "OK replaced"))
    }
    #expect(daemon.log.components(separatedBy: "The store was rewritten").count == 4)
    daemon.end(with: SIGKILL)
    try daemon.start()
    for number in 0..<50 {
      #expect(try daemon.ask("item read service=s account=a\(number)").hasPrefix("OK data=\(large) "))
    }
  }

  @Test(.enabled(if: isRoot, "attaching to the daemon needs root"))
  func `row 5: an unreadable secret is refused and logged, and is back once the disk recovers`() throws {
    let daemon = try DaemonUnderTest().start()
    let large = Data(repeating: 7, count: 20_000).base64EncodedString()
    #expect(try daemon.ask("item put service=s account=a data=\(large)") == "OK created")
    daemon.end()
    try daemon.start()
    try Fault.inject("pread64:error=EIO", into: daemon) { () throws in
      #expect(try daemon.ask("item read service=s account=a").hasPrefix("ERR internal "))
      #expect(try daemon.ask("item update service=s account=a label=x").hasPrefix("ERR internal "))
      #expect(try daemon.ask("item find") == "OK 1")
    }
    #expect(try daemon.ask("item read service=s account=a").hasPrefix("OK data=\(large) "))
    #expect(try daemon.ask("item update service=s account=a label=x") == "OK")
    // A fault of the daemon is logged (identityd-protocol(7), section "Errors").
    try daemon.waitForLog("the secret cannot be read")
  }

  @Test(.enabled(if: isRoot, "tracing the daemon needs root"))
  func `a start on a full disk serves the stored items`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("item put service=s account=a data=\(pair(1)) label=\(pair(1))") == "OK created")
    daemon.end()
    try daemon.start(through: StoreFaultTests.fullDisk)
    #expect(try readPair(try daemon.ask("item read service=s account=a")) == pair(1))
    #expect(try daemon.ask("item put service=s account=b data=eA==").hasPrefix("ERR no-space "))
    try daemon.killTraced()
    try daemon.start()
    #expect(try readPair(try daemon.ask("item read service=s account=a")) == pair(1))
    #expect(try daemon.ask("item put service=s account=b data=eA==") == "OK created")
  }

  // MARK: Kills

  /// Random puts, updates and deletes of a few items, and the expected items after each of them.
  private struct Storm {
    var requests: [String] = []
    var states: [[String: String]]

    init(round: Int, from before: [String: String]) {
      states = [before]
      for step in 0..<300 {
        let account = "a\(Int.random(in: 0..<6))"
        let said = "data=\(pair(round * 1_000 + step)) label=\(pair(round * 1_000 + step))"
        var state = states[step]
        switch Int.random(in: 0..<4) {
        case 0:
          requests.append("item delete account=\(account)")
          state[account] = nil
        case 1:
          requests.append("item update service=s account=\(account) \(said)")
          if state[account] != nil { state[account] = pair(round * 1_000 + step) }
        default:
          requests.append("item put service=s account=\(account) \(said)")
          state[account] = pair(round * 1_000 + step)
        }
        states.append(state)
      }
    }
  }

  @Test func `row 10: kill -9 at any moment loses no acknowledged change and leaves none half done`() throws {
    let daemon = try DaemonUnderTest().start()
    var state: [String: String] = [:]
    for round in 0..<12 {
      let storm = Storm(round: round, from: state)
      let client = try daemon.client()
      let sender = Sender(client, storm.requests.map { $0 + "\n" }.joined())
      sender.start()
      let acknowledged = Int.random(in: 0..<storm.requests.count)
      for _ in 0..<acknowledged { _ = try client.answer() }
      daemon.end(with: SIGKILL)
      sender.wait()
      try daemon.start()
      state = [:]
      let again = try daemon.client()
      for row in try again.ask("item find service=s") where row.hasPrefix("* ") {
        let account = row.split(separator: " ")[2].dropFirst("account=".count)
        state[String(account)] = try readPair(try again.ask("item read service=s account=\(account)")[0])
      }
      #expect(storm.states[acknowledged...].contains(state), "round \(round), \(acknowledged) acknowledged: \(state)")
      #expect(try again.statusValue("store") == "ok")
    }
  }

  // MARK: An edited store

  /// Edits of the secrets of the first two items, in SQL.
  private static let edits = [
    "two sealed secrets are swapped":
      "CREATE TEMP TABLE t AS SELECT * FROM secret; UPDATE secret SET sealed = (SELECT sealed FROM t WHERE t.n = 3 - secret.n) WHERE n < 3",
    "two rows are swapped": "UPDATE secret SET n = -n WHERE n < 3; UPDATE secret SET n = 3 + n WHERE n < 0",
    "two rows are deleted": "DELETE FROM secret WHERE n < 3",
    "both are of another edition": "UPDATE secret SET edition = (SELECT edition FROM secret WHERE n = 3) WHERE n < 3",
    "both are copies of the third":
      "REPLACE INTO secret SELECT n.value, s.edition, s.sealed FROM secret s, json_each('[1,2]') n WHERE s.n = 3",
    "both are truncated": "UPDATE secret SET sealed = substr(sealed, 1, length(sealed) - 1) WHERE n < 3",
    "both are empty": "UPDATE secret SET sealed = x'' WHERE n < 3",
    "both are edited":
      """
    UPDATE secret SET sealed =
    CAST(iif(substr(sealed, 1, 1) = x'00', x'01', x'00') || substr(sealed, 2) AS BLOB) WHERE n < 3
    """,
  ]

  /// Starts a daemon after an edit of its store. The items a1 and a2 are damaged, a3 is not.
  private func damaged(_ edit: String) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    for number in 1...3 {
      #expect(
        try daemon.ask("item put service=s account=a\(number) data=\(pair(number)) label=\(pair(number))")
          == "OK created")
    }
    daemon.end()
    try daemon.edit(try #require(Self.edits[edit]))
    return try daemon.start()
  }

  private static func refusal(_ number: Int) -> String {
    "the secret of this item is damaged: group=user:\(getuid()) service=s account=a\(number)"
  }

  @Test(arguments: edits.keys.sorted())
  func `a secret that does not belong to its item is refused by name and can be replaced`(edit: String) throws {
    let daemon = try damaged(edit)
    #expect(try daemon.client().statusValue("store") == "ok")
    for _ in 1...2 {
      for number in [1, 2] {
        #expect(try daemon.ask("item read service=s account=a\(number)") == "ERR internal \(Self.refusal(number))")
        #expect(try daemon.ask("item update service=s account=a\(number) label=x").hasPrefix("ERR internal "))
      }
      #expect(try readPair(try daemon.ask("item read service=s account=a3")) == pair(3))
      #expect(try daemon.ask("item find") == "OK 3")
      // No row precedes the error.
      let client = try daemon.client()
      #expect(try client.ask("item find data=yes") == ["ERR internal \(Self.refusal(1))"])
      let whole = try client.ask("item find account=a3 data=yes")
      #expect(whole.count == 2 && whole[0].hasPrefix("* data=\(pair(3)) service=s account=a3 "))
      daemon.end(with: SIGKILL)
      try daemon.start()
    }
    #expect(try daemon.ask("item update service=s account=a1 data=\(pair(4)) label=\(pair(4))") == "OK")
    #expect(try daemon.ask("item delete account=a2") == "OK 1")
    #expect(try daemon.ask("item put service=s account=a2 data=\(pair(5)) label=\(pair(5))") == "OK created")
    for signal in [SIGKILL, SIGTERM] {
      daemon.end(with: signal)
      try daemon.start()
      for (number, expected) in [(1, 4), (2, 5), (3, 3)] {
        #expect(try readPair(try daemon.ask("item read service=s account=a\(number)")) == pair(expected))
      }
    }
  }

  @Test(arguments: edits.keys.sorted())
  func `the log names a damaged secret that a client requested`(edit: String) throws {
    let daemon = try damaged(edit)
    #expect(try daemon.ask("item read service=s account=a1").hasPrefix("ERR internal "))
    daemon.end()
    #expect(daemon.log.contains("err: \(Self.refusal(1))"), "\(daemon.log)")
  }

  @Test(arguments: edits.keys.sorted())
  func `repeated requests for a damaged secret do not fill the log`(edit: String) throws {
    let daemon = try damaged(edit)
    for _ in 0..<20 { #expect(try daemon.ask("item read service=s account=a1").hasPrefix("ERR internal ")) }
    daemon.end()
    #expect(daemon.log.components(separatedBy: Self.refusal(1)).count <= 2)
  }
}
