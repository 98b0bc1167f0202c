import Foundation
import IdentityCore
import TestSupport
import Testing

/// Request lines and replies over a real socket (identityd-protocol(7), section "Transport").
@Suite struct FramingTests {
  let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest().start() }

  @Test func `row 25b: replies come in the order of the requests, for changes and queries alike`() throws {
    let client = try daemon.client()
    try client.send("get installation\nping\nget device\nhello\nfrob\nget installation\nwhoami\n")
    let answers = try (0..<7).map { _ in try client.answer().last ?? "" }
    #expect(answers.map { String($0.prefix(2)) } == ["OK", "OK", "OK", "OK", "ER", "OK", "OK"])
    #expect(answers[0].contains("level=installation"))
    #expect(answers[1] == "OK")
    #expect(answers[2].contains("level=device"))
    #expect(answers[3].contains("identityd"))
    #expect(answers[5] == answers[0])
    #expect(answers[6].contains("uid="))
  }

  @Test func `row 25c: a client that shuts down its sending side still gets every reply`() throws {
    let client = try daemon.client()
    try client.send("get device\nget installation\nping\n")
    try client.endWriting()
    let lines = try client.rest()
    #expect(lines.count == 3)
    #expect(lines.allSatisfy { $0.hasPrefix("OK") })
  }

  @Test func `an unterminated last line is never executed`() throws {
    let client = try daemon.client()
    try client.send("ping\nget installation")
    try client.endWriting()
    #expect(try client.rest() == ["OK"])
    #expect(try daemon.client().statusValue("installations") == "0")
  }

  @Test func `row 23: empty lines are ignored, and CR LF ends a line`() throws {
    let client = try daemon.client()
    try client.send("\n\r\n\n\r\nping\r\n\nhello\n")
    try client.endWriting()
    #expect(try client.rest() == ["OK", "OK identityd \(Version.program) protocol=1"])
  }

  @Test(arguments: [
    "a\tb", "\u{1}", "ping\u{0}", "\"ping", "pi\"ng", "pi\\ng", "\"a\"b", "x=", "\"\\u0000\"", "ping \u{85}", "a\rb",
    " ",
  ])
  func `rows 23 and 24: a line that does not parse gets a syntax error and the connection goes on`(line: String) throws
  {
    let client = try daemon.client()
    #expect(try client.ask(line).last?.hasPrefix("ERR syntax ") == true)
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test func `row 24: invalid UTF-8 gets a syntax error and the connection goes on`() throws {
    let client = try daemon.client()
    try client.send([0x70, 0xff, 0x0a])
    #expect(try client.answer().last?.hasPrefix("ERR syntax ") == true)
    #expect(try client.ask("ping") == ["OK"])
  }

  @Test func `a line of the maximum length is answered`() throws {
    let client = try daemon.client()
    try client.send("check " + String(repeating: "a", count: Bound.lineLength - 7) + "\nping\n")
    #expect(try client.answer() == ["OK invalid"])
    #expect(try client.answer() == ["OK"])
  }

  @Test(arguments: [0, 1, 1_000, 1_000_000])
  func `row 21: a longer line is refused after the replies before it, and the connection closes`(more: Int) throws {
    let client = try daemon.client()
    let line = "check " + String(repeating: "a", count: Bound.lineLength - 6 + more)
    try? client.send("get installation\nping\n" + line + "\nping\n")
    let lines = try client.rest()
    #expect(lines.count == 3, "\(lines)")
    #expect(lines.first?.contains("level=installation") == true)
    #expect(lines.last?.hasPrefix("ERR too-long ") == true)
    #expect(try daemon.ask("ping") == "OK")
  }

  @Test func `row 21: an unterminated line is refused once it is too long`() throws {
    let client = try daemon.client()
    try client.send([UInt8](repeating: 0x61, count: Bound.lineLength))
    #expect(try client.rest().first?.hasPrefix("ERR too-long ") == true)
  }

  @Test func `row 25e: a client that sends byte by byte is served, and so are others meanwhile`() throws {
    let slow = try daemon.client()
    for byte in Array("get device\r\nping\n".utf8) {
      try slow.send([byte])
      #expect(try daemon.ask("ping") == "OK")
    }
    #expect(try slow.answer().last?.contains("level=device") == true)
    #expect(try slow.answer() == ["OK"])
  }

  @Test func `quit answers, closes the connection and discards the requests behind it`() throws {
    let client = try daemon.client()
    try client.send("ping\nquit\nget installation\n")
    #expect(try client.rest() == ["OK", "OK"])
    #expect(try daemon.client().statusValue("installations") == "0")
  }

  @Test func `row 25b: a client that sends far ahead of its reads gets every answer in order`() throws {
    let client = try daemon.client()
    let rounds = 30_000
    // Sends from a separate thread, because this one reads.
    let request = String(repeating: "get device\ncheck x\nget installation\n", count: rounds) + "hello\n"
    let sender = Sender(client, request)
    sender.start()
    for _ in 0..<rounds {
      #expect(try client.answer().last?.contains("level=device") == true)
      #expect(try client.answer() == ["OK invalid"])
      #expect(try client.answer().last?.contains("level=installation") == true)
    }
    #expect(try client.answer().last?.hasPrefix("OK identityd") == true)
    sender.wait()
  }

  @Test func `row 29: a client that never reads neither delays others nor uses much memory`() throws {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start()
    let deaf = try daemon.client()
    let sender = Sender(deaf, String(repeating: "get uuid count=10000\n", count: 1_000))
    sender.start()
    for _ in 0..<200 { #expect(try daemon.ask("ping") == "OK") }
    // The requests ask for 390 MB. At most the bound on unread output and one more answer are held.
    #expect(try daemon.peakMemory() < 60_000_000)
    daemon.end(with: SIGKILL)
    sender.wait()
  }

  @Test func `row 25d: clients that vanish in the middle of requests do the daemon no harm`() throws {
    for count in 0..<200 {
      let client = try daemon.client()
      try client.send(String("get installation\nget uuid count=10000\nget dev".prefix(1 + count % 44)))
    }
    #expect(try daemon.ask("ping") == "OK")
    try daemon.waitForStatus("connections", "1")
  }
}
