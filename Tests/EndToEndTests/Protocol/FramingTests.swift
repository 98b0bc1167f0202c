import Foundation
import IdentityCore
import TestSupport
import Testing

/// Request lines and replies of a daemon (identityd-protocol(7), section "Transport"). ConnectionServiceTests has the
/// rules of a single connection.
struct FramingTests {
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

  @Test func `row 25e: a client that sends byte by byte is served, and so are others meanwhile`() throws {
    let slow = try daemon.client()
    for byte in Array("get device\r\nping\n".utf8) {
      try slow.send([byte])
      #expect(try daemon.ask("ping") == "OK")
    }
    #expect(try slow.answer().last?.contains("level=device") == true)
    #expect(try slow.answer() == ["OK"])
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
