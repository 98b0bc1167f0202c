import Foundation
import TestSupport
import Testing

/// Long answers, which are made in pieces so that other connections are served in between.
///
/// The tests connect as two users: turns are short and pieces are small only while several users are connected.
@Suite(.enabled(if: isRoot, "acting as other users needs root"), .tags(.seldomThreads)) struct AnswerPieceTests {
  /// Raises the quota of an app above the number of items in the longest list.
  private static let limits = "[Limits]\nItemsPerApp=3000\n"

  @Test func `row 29: rows of a long answer are neither interleaved with events, lost nor duplicated`() throws {
    let daemon = try DaemonUnderTest().start()
    let another = try PeerConnection(65_533, of: daemon)
    #expect(try another.ask("ping") == ["OK"])
    let reader = try PeerConnection(65_534, of: daemon)
    #expect(try reader.subscribe("item").first?.hasPrefix("OK ") == true)
    try reader.send(["get uuid count=10000", "get uuid count=10000 version=7", "get uuid count=1", "ping"])
    let writer = try PeerConnection(65_534, of: daemon)
    for number in 0..<20 {
      #expect(try writer.ask("item put service=s account=a\(number) data=QUFB") == ["OK created"])
    }
    var events = 0
    for count in [10_000, 10_000, 1] {
      var rows = try reader.rows { events += 1 }
      #expect(rows.popLast() == "OK \(count)")
      #expect(rows.count == count)
      #expect(Set(rows).count == count)
      #expect(rows.allSatisfy { $0.hasPrefix("* ") && $0.utf8.count == 38 })
    }
    #expect(try reader.rows { events += 1 } == ["OK"])
    while events < 20, let line = try reader.line() {
      #expect(line.hasPrefix("EVENT "))
      events += 1
    }
    #expect(events == 20)
  }

  @Test func `row 29: a list requested behind pipelined changes reflects them, however long it is`() throws {
    let daemon = try DaemonUnderTest().start(configuration: Self.limits)
    let another = try PeerConnection(65_533, of: daemon)
    #expect(try another.ask("ping") == ["OK"])
    let client = try PeerConnection(65_534, of: daemon)
    let label = String(repeating: "l", count: 200)
    let changes = (0..<2_000).map { "item put service=s account=a\($0) label=\(label) data=QUFB" }
    try client.send(changes + ["item find service=s", "ping", "item delete service=s", "item find service=s"])
    for _ in changes { #expect(try client.answer() == ["OK created"]) }
    let list = try client.answer() ?? []
    #expect(list.last == "OK 2000")
    #expect(list.count == 2_001)
    #expect(try client.answer() == ["OK"])
    #expect(try client.answer() == ["OK 2000"])
    #expect(try client.answer()?.first?.hasPrefix("ERR not-found ") == true)
  }

  /// With six lists, some have to wait for others to end, which must not delay the user's other requests.
  @Test(arguments: [1, 6])
  func `row 29: requests of the user's other connections are served between pieces of long lists`(lists: Int) throws {
    let daemon = try DaemonUnderTest().start(configuration: Self.limits)
    let another = try PeerConnection(65_533, of: daemon)
    #expect(try another.ask("ping") == ["OK"])
    let filler = try daemon.client()
    let label = String(repeating: "l", count: 200)
    for number in 0..<2_500 { try filler.send("item put service=s account=a\(number) label=\(label) data=QUFB\n") }
    for _ in 0..<2_500 { #expect(try filler.answer() == ["OK created"]) }
    // A list has half a megabyte.
    #expect(try pings(of: daemon, during: "item find service=s", rows: 2_500, on: lists) > 3)
  }

  @Test(arguments: [1, 6])
  func `row 29: requests of the user's other connections are served while secrets are encoded`(lists: Int) throws {
    let daemon = try DaemonUnderTest().start()
    let another = try PeerConnection(65_533, of: daemon)
    #expect(try another.ask("ping") == ["OK"])
    let client = try daemon.client()
    let secret = Data(repeating: 7, count: 4_000).base64EncodedString()
    for number in 0..<64 {
      #expect(try client.ask("item put service=s account=a\(number) data=\(secret)") == ["OK created"])
    }
    #expect(try pings(of: daemon, during: "item find service=s data=yes", rows: 64, on: lists) > 3)
  }

  /// Returns the most pings that are answered while none of several long answers is complete. The number is one if each
  /// ping waits for a whole answer.
  private func pings(of daemon: DaemonUnderTest, during request: String, rows: Int, on connections: Int) throws -> Int {
    let script = """
      import select, socket, sys
      def connect():
          s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); return s
      most = 0
      for attempt in range(50):
          listers, other = [connect() for _ in range(int(sys.argv[2]))], connect()
          other.sendall(b"ping\\n"); assert other.recv(100) == b"OK\\n"
          for s in listers: s.sendall(sys.argv[3].encode() + b"\\n")
          other.sendall(b"ping\\n")
          answered, ends = 0, {s: b"" for s in listers}
          while ends:
              for s in select.select([other, *ends], [], [])[0]:
                  if s is other:
                      assert s.recv(100) == b"OK\\n"
                      if len(ends) == len(listers): answered += 1
                      s.sendall(b"ping\\n")
                      continue
                  ends[s] = (ends[s] + s.recv(65536))[-100:]
                  if ends[s].endswith(b"\\nOK %s\\n" % sys.argv[4].encode()): del ends[s]
          most = max(most, answered)
          if most > 3: break
      print(most)
      """
    let result = try run(["python3", "-c", script, daemon.socket, "\(connections)", request, "\(rows)"])
    return try #require(Int(result.output.dropLast()), "\(result)")
  }

  @Test func `a client that disconnects while secrets are encoded does not affect other clients`() throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let secret = Data(repeating: 7, count: 60_000).base64EncodedString()
    for number in 0..<4 {
      #expect(try client.ask("item put service=s account=a\(number) data=\(secret)") == ["OK created"])
    }
    for _ in 0..<50 { try daemon.client().send("item find data=yes\n") }
    try daemon.waitForStatus("connections", "2")
    #expect(try client.ask("item find data=yes").last == "OK 4")
  }

  @Test func `a client that disconnects during a long answer does not affect other clients`() throws {
    let daemon = try DaemonUnderTest().start()
    for _ in 0..<20 {
      let leaver = try PeerConnection(65_534, of: daemon)
      try leaver.send(Array(repeating: "get uuid count=10000", count: 20))
      #expect(try leaver.line()?.hasPrefix("* ") == true)
    }
    try daemon.waitForStatus("connections", "1")
    #expect(try daemon.ask("ping") == "OK")
  }
}

extension PeerConnection {
  /// Returns the lines of the next answer. Events may come before the answer, but not within it.
  fileprivate func rows(event: () -> Void) throws -> [String] {
    var lines: [String] = []
    while let line = try line() {
      if line.hasPrefix("EVENT "), lines.isEmpty {
        event()
        continue
      }
      lines.append(line)
      if !line.hasPrefix("* ") { break }
    }
    return lines
  }
}
