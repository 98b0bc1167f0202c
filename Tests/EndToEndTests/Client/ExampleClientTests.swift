import Foundation
import LinuxSystem
import TestSupport
import Testing

/// The complete clients in `packaging/examples`, run as a reader would run them.
@Suite(.tags(.slow, .plain)) struct ExampleClientTests {
  private static let folder = Document.root.appending(path: "packaging/examples")

  static let names = ["client.sh", "client.py", "client.c"]

  /// Returns the command that runs a client. Compiles the C client first.
  private func command(_ name: String, _ daemon: DaemonUnderTest) throws -> [String] {
    let source = Self.folder.appending(path: name).path
    guard name == "client.c" else { return [source] }
    let program = daemon.folder.appending(path: "client").path
    if !FileManager.default.fileExists(atPath: program) {
      let library = Self.folder.deletingLastPathComponent().appending(path: "c").path
      let sources = ["identity.c", "connection.c", "words.c"].map { "\(library)/\($0)" }
      let compiled = try run(
        ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-I\(library)", source] + sources + ["-o", program])
      try #require(compiled.status == 0, "\(compiled.errors)")
    }
    return [program]
  }

  private func client(_ name: String, _ daemon: DaemonUnderTest, _ words: String...) throws -> (
    status: Int32, output: String, errors: String
  ) {
    try run(["timeout", "60"] + command(name, daemon) + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
  }

  @Test(arguments: names)
  func `the example client prints the OK value and all rows before it`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let device = try client(name, daemon, "get", "device")
    #expect(device.status == 0 && device.errors == "")
    #expect(device.output == "\(try #require(try daemon.client().ask("get device").first).dropFirst(3))\n")
    let many = try client(name, daemon, "get", "uuid", "count=1000")
    let lines = many.output.split(separator: "\n")
    #expect(many.status == 0 && lines.count == 1_001 && lines.last == "1000")
    #expect(lines.dropLast().allSatisfy { UUID(uuidString: String($0)) != nil })
    let silent = try client(name, daemon, "ping")
    #expect((silent.status, silent.output, silent.errors) == (0, "", ""))
  }

  @Test(arguments: names)
  func `refusals and a missing daemon have different exit statuses`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    for (words, code) in [(["get", "frob"], "bad-argument"), (["frob"], "unknown-verb")] {
      let refused = try run(command(name, daemon) + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect(refused.status == 1 && refused.output == "")
      #expect(refused.errors.hasPrefix("client") && refused.errors.contains(": \(code) "), "\(refused.errors)")
    }
    daemon.end()
    for words in [["ping"], ["follow"]] {
      let missing = try run(
        ["timeout", "60"] + command(name, daemon) + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
      #expect(missing.status == 3 && missing.output == "", "\(missing)")
      #expect(missing.errors.hasPrefix("client") && missing.errors.split(separator: "\n").count == 1, "\(missing)")
    }
  }

  @Test(arguments: names)
  func `the example client passes every argument unchanged`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    for word in ["two words", "a\"b\\c", "$(touch x)", "é ü 😀", "*", "", "=", "_x=1", "a=b", "%s%n", "-N", "'"] {
      let service = word.isEmpty ? "none" : word
      let put = try client(name, daemon, "item", "put", "service=\(service)", "account=a", "label=\(word)", "data=eA==")
      #expect((put.status, put.output) == (0, "created\n"), "\(word): \(put.errors)")
    }
    let found = try run(
      [DaemonUnderTest.binaries.appending(path: "identityctl").path, "--json", "item", "find"],
      environment: ["IDENTITYD_SOCKET": daemon.socket])
    let rows = try #require(try JSONSerialization.jsonObject(with: Data(found.output.utf8)) as? [[String: Any]])
      .map { $0.compactMapValues { $0 as? String } }
    #expect(rows.count == 12)
    for row in rows { #expect(row["service"] == "none" || row["service"] == row["label"], "\(row)") }
    // Operands arrive unchanged too. The clients send an operand that looks like an attribute as an attribute, as the
    // daemon would read it.
    #expect(try client(name, daemon, "check", "557E5958-d390-4cbf-b928-2a2b19a1399a").output.hasPrefix("valid "))
    #expect(try client(name, daemon, "check", "two words").output == "invalid\n")
    #expect(!FileManager.default.fileExists(atPath: "x"))
  }

  @Test(arguments: names)
  func `the example client follows events across restarts without loss or repetition`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    let file = daemon.folder.appending(path: "events")
    try Data().write(to: file)
    let follower = Process()
    let command = try command(name, daemon)
    follower.executableURL = URL(filePath: command[0])
    follower.arguments = ["follow", "1"]
    follower.environment = ProcessInfo.processInfo.environment.merging(["IDENTITYD_SOCKET": daemon.socket]) { $1 }
    follower.standardOutput = try FileHandle(forWritingTo: file)
    follower.standardError = FileHandle.nullDevice
    try follower.runUnmasked()
    defer {
      follower.terminate()
      follower.waitUntilExit()
    }
    func waitForEvents(upTo last: Int) throws {
      let deadline = Date(timeIntervalSinceNow: patience)
      var lines: [Substring] = []
      while Date() < deadline {
        lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        if lines.last?.hasPrefix("EVENT \(last) ") == true {
          #expect(lines.compactMap { Int($0.split(separator: " ")[1]) } == Array(2...last))
          return
        }
        usleep(20_000)
      }
      throw Failure("event \(last) did not come: \(lines)")
    }
    func lastEvent() throws -> Int { try #require(Int(try daemon.client().statusValue("last-event") ?? "")) }
    for round in 0..<2 {
      for item in 0..<3 { _ = try daemon.ask("item put service=s\(round) account=a\(item) data=eA==") }
      try waitForEvents(upTo: try lastEvent())
      daemon.end()
      try daemon.start()
    }
    _ = try daemon.ask("item delete service=s0")
    try waitForEvents(upTo: try lastEvent())
  }

  @Test(arguments: names)
  func `the example client notices another store, and continues from its current values`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    for account in ["a", "b", "c"] { _ = try daemon.ask("item put service=s account=\(account) data=eA==") }
    let epoch = try #require(try daemon.client().statusValue("epoch"))
    daemon.end()
    try FileManager.default.removeItem(at: daemon.state)
    try daemon.start()
    let device = try daemon.uuid("get device")
    let (output, errors) = (daemon.folder.appending(path: "output"), daemon.folder.appending(path: "errors"))
    for file in [output, errors] { try Data().write(to: file) }
    let follower = Process()
    let command = try command(name, daemon)
    follower.executableURL = URL(filePath: command[0])
    // The new store has reached this number, too.
    follower.arguments = ["follow", "1", epoch]
    follower.environment = ProcessInfo.processInfo.environment.merging(["IDENTITYD_SOCKET": daemon.socket]) { $1 }
    follower.standardOutput = try FileHandle(forWritingTo: output)
    follower.standardError = try FileHandle(forWritingTo: errors)
    try follower.runUnmasked()
    defer {
      follower.terminate()
      follower.waitUntilExit()
    }
    func waitFor(_ text: String) throws -> String {
      let deadline = Date(timeIntervalSinceNow: patience)
      var read = ""
      while Date() < deadline {
        read = try String(contentsOf: output, encoding: .utf8)
        if read.contains(text) { return read }
        usleep(20_000)
      }
      throw Failure("'\(text)' did not come: \(read)")
    }
    let values = try waitFor(device)
    #expect(!values.contains("EVENT "), "\(values)")
    #expect(try String(contentsOf: errors, encoding: .utf8).contains(": gone "))
    _ = try daemon.ask("item put service=later account=a data=eA==")
    #expect(try waitFor("service=later").contains("\nEVENT "))
  }

  @Test(arguments: names)
  func `following from a sequence number that was never reached is refused at once`(name: String) throws {
    let daemon = try DaemonUnderTest().start()
    let refused = try client(name, daemon, "follow", "1000000")
    #expect(refused.status == 1 && refused.output == "", "\(refused)")
    #expect(refused.errors.contains("bad-argument"))
  }

  @Test(arguments: names)
  func `an answer that breaks off is an error`(name: String) throws {
    let daemon = try PlayedDaemon { _ in .lastLines("* first\n* sec") }
    let folder = try DaemonUnderTest()
    let broken = try run(
      ["timeout", "60"] + command(name, folder) + ["devices"], environment: ["IDENTITYD_SOCKET": daemon.socket])
    #expect(broken.status == 3, "\(broken)")
  }
}
