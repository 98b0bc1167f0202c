import Foundation
import TestSupport
import Testing

/// Searches and lists among many items, which the daemon makes in pieces, and changes of many items, which it makes in
/// steps.
@Suite(.enabled(if: isRoot, "acting as other users needs root")) struct SearchFairnessTests {
  private static let user = 65_534
  private static let attributes = (10..<74).map { "attr.a\($0)=1" }

  /// Returns a daemon with as many items of a user, each with as many attributes as an item may have.
  private func daemon(items: Int) throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start()
    let hostile = try OtherUser(Self.user, of: daemon)
    let described = Self.attributes.joined(separator: " ")
    for number in 0..<items { try hostile.send("item put service=q account=a\(number) data=QUFB \(described)") }
    let answers = try hostile.quit().split(separator: "\n")
    #expect(answers.count == items + 1 && answers.dropLast().allSatisfy { $0 == "OK created" })
    return daemon
  }

  /// A client of the user that sends requests and reads the answers at the same time, in a process of its own.
  private struct Flood {
    private let process = Process()
    private let output: URL

    /// Starts the client.
    ///
    /// - Parameter rows: whether the rows of answers are kept, too.
    init(_ requests: [String], rows: Bool = false, of daemon: DaemonUnderTest) throws {
      let script = """
        import socket, sys, threading
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(\(patience))
        requests = sys.stdin.buffer.read()
        threading.Thread(target=lambda: s.sendall(requests), daemon=True).start()
        for line in s.makefile("rb"):
            if \(rows ? "True" : "not line.startswith(b'*')"): sys.stdout.buffer.write(line)
        """
      let input = daemon.folder.appending(path: UUID().uuidString)
      output = daemon.folder.appending(path: UUID().uuidString)
      try Data((requests + ["quit"]).joined(separator: "\n").appending("\n").utf8).write(to: input)
      try Data().write(to: output)
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [
        "setpriv", "--reuid=\(SearchFairnessTests.user)", "--regid=\(SearchFairnessTests.user)", "--clear-groups",
        "/usr/bin/python3", "-c", script, daemon.socket,
      ]
      process.standardInput = try FileHandle(forReadingFrom: input)
      process.standardOutput = try FileHandle(forWritingTo: output)
      try process.runUnmasked()
    }

    /// Waits for the last answer, and returns the lines.
    func lines() throws -> [String] {
      process.waitUntilExit()
      #expect(process.terminationStatus == 0)
      return try String(contentsOf: output, encoding: .utf8).split(separator: "\n").map(String.init)
    }
  }

  @Test(arguments: [
    "item find \((attributes.dropFirst(2) + ["attr.z=1"]).joined(separator: " "))", "item find attr.z=1",
    "item delete attr.z=1", "item find service=q limit=all", "item find service=q attr.z=1",
    "subscribe item snapshot=yes",
  ])
  func `row 32b: searches among many items of one user delay no other user`(request: String) throws {
    let daemon = try daemon(items: 1_000)
    let client = try daemon.client()
    let before = try client.ask("get device")
    let flood = try Flood(Array(repeating: request, count: 150) + ["token put fcm last"], of: daemon)
    // The flood has begun once the user's app has a second connection's request at work.
    try wait("the flood", until: { try client.ask("stats apps=yes").contains { $0.contains("user:\(Self.user)") } })
    for _ in 0..<10 { #expect(try client.ask("get device") == before) }
    // A daemon that serves several searches, or all of one, in a turn has served all of them by now.
    #expect(try client.ask("token list app=*") == ["OK 0"])
    let answers = try flood.lines().filter { !$0.hasPrefix("EVENT") }
    #expect(answers.count == 152 && answers[150].hasPrefix("OK created"), "\(answers.suffix(3))")
    #expect(try client.ask("token list app=*").last == "OK 1")
  }

  @Test func `row 32b: another user's changes come between the steps of a long deletion`() throws {
    let daemon = try daemon(items: 1_000)
    let follower = try daemon.client()
    _ = try follower.ask("subscribe item token")
    let client = try daemon.client()
    // Both are at the writer before it has deleted all items.
    let hostile = try OtherUser(Self.user, of: daemon)
    try hostile.send("item delete service=q")
    #expect(try follower.line()?.contains(" item deleted ") == true)
    #expect(try client.ask("token put fcm between").last?.hasPrefix("OK created") == true)
    #expect(try hostile.quit() == "OK 1000\nOK\n")
    var topics: [String] = ["item"]
    while topics.count < 1_001, let line = try follower.line() {
      topics.append(String(line.split(separator: " ")[2]))
    }
    #expect(topics.filter { $0 == "item" }.count == 1_000)
    #expect(topics.last == "item", "the token came after all deletions")
  }

  @Test func `row 32b: a list shows the state in which it began, each row whole and once`() throws {
    let daemon = try daemon(items: 1_000)
    let lists = try Flood(Array(repeating: "item find service=q", count: 20), rows: true, of: daemon)
    let changes = try Flood((0..<500).map { "item delete service=q account=a\($0 * 2)" }, of: daemon)
    var rows: [String] = []
    var counts: [Int] = []
    for line in try lists.lines().dropLast() {
      guard line.hasPrefix("OK "), let count = Int(line.dropFirst(3)) else {
        rows.append(line)
        continue
      }
      #expect(rows.count == count && Set(rows).count == count)
      #expect(rows.allSatisfy { row in Self.attributes.allSatisfy(row.contains) && row.hasSuffix("Z") })
      counts.append(count)
      rows = []
    }
    #expect(counts.count == 20 && counts == counts.sorted(by: >) && counts.allSatisfy { (500...1_000).contains($0) })
    #expect(try changes.lines().count == 501)
  }
}
