import IdentityCore
import Testing

@testable import IdentityServer

/// Request lines and replies of one connection (identityd-protocol(7), section "Transport"), without a daemon.
struct ConnectionServiceTests {
  private let served: ServedConnection

  init() throws { served = try ServedConnection() }

  @Test func `replies come in the order of the requests, and the connection stays open`() throws {
    let lines = try served.send("ping\nhello\nfrob\nping\n")
    #expect(
      lines.map { $0.split(separator: " ").prefix(2).joined(separator: " ") } == [
        "OK", "OK identityd", "ERR unknown-verb", "OK",
      ])
    #expect(!served.hasEnded && served.waitingInput == 0)
  }

  @Test func `row 25e: a request is answered once its line is complete, however its bytes arrive`() throws {
    for byte in Array("check x\r".utf8) { #expect(try served.send([byte]).isEmpty) }
    #expect(served.waitingInput == 8)
    #expect(try served.send("\n") == ["OK invalid"])
  }

  @Test func `row 25c: a client that shuts down its sending side gets every reply before the end`() throws {
    #expect(try served.send("ping\nping\npin") == ["OK", "OK"])
    // The last line has no end, so it is never executed.
    #expect(try served.endSending().isEmpty && served.hasEnded)
  }

  @Test func `the next run closes a connection that has the fleet open, and no other one`() throws {
    #expect(served.connection.shape == .plain)
    #expect(try #require(HandoverRecord(served.connection)).isClosing == false)
    served.connection.hasFleetOpen = true
    // A record of another shape is written anew, so that a killed daemon leaves it up to date.
    #expect(served.connection.shape != .plain && !served.connection.isKeptAsItIs)
    #expect(try #require(HandoverRecord(served.connection)).isClosing)
    served.connection.hasFleetOpen = false
    #expect(served.connection.shape == .plain)
  }

  @Test func `row 23: empty lines are ignored, and CR LF ends a line`() throws {
    #expect(try served.send("\n\r\n\n\r\nping\r\n\nhello\n").count == 2)
  }

  @Test(arguments: [
    "a\tb", "\u{1}", "ping\u{0}", "\"ping", "pi\"ng", "pi\\ng", "\"a\"b", "x=", "\"\\u0000\"", "ping \u{85}", "a\rb",
    " ",
  ])
  func `rows 23 and 24: a line that does not parse gets a syntax error and the connection goes on`(line: String) throws
  {
    let lines = try served.send(line + "\nping\n")
    #expect(lines.count == 2 && lines[0].hasPrefix("ERR syntax ") && lines[1] == "OK", "\(lines)")
  }

  @Test func `row 24: invalid UTF-8 gets a syntax error and the connection goes on`() throws {
    let lines = try served.send([0x70, 0xff, 0x0a] + Array("ping\n".utf8))
    #expect(lines.count == 2 && lines[0].hasPrefix("ERR syntax ") && lines[1] == "OK", "\(lines)")
  }

  @Test func `a line of the maximum length is answered`() throws {
    #expect(
      try served.send("check " + String(repeating: "a", count: Bound.lineLength - 7) + "\nping\n") == [
        "OK invalid", "OK",
      ])
  }

  @Test(arguments: [0, 1, 1_000, 1_000_000])
  func `row 21: a longer line is refused after the replies before it, and the connection ends`(more: Int) throws {
    let lines = try served.send(
      "ping\ncheck " + String(repeating: "a", count: Bound.lineLength - 6 + more) + "\nping\n")
    #expect(lines.count == 2 && lines[0] == "OK" && lines[1].hasPrefix("ERR too-long "), "\(lines)")
    #expect(served.hasEnded)
  }

  @Test func `row 21: an unterminated line is refused once it is too long`() throws {
    #expect(try served.send(String(repeating: "a", count: Bound.lineLength - 1)).isEmpty && !served.hasEnded)
    let lines = try served.send("a")
    #expect(lines.count == 1 && lines[0].hasPrefix("ERR too-long ") && served.hasEnded, "\(lines)")
  }

  @Test func `quit answers, ends the connection and discards the requests behind it`() throws {
    #expect(try served.send("ping\nquit\nping\n") == ["OK", "OK"])
    #expect(served.hasEnded)
  }

  @Test func `the rows of a long answer come whole and in order, and the next answer behind them`() throws {
    let lines = try served.send("get uuid count=10000\nping\n")
    #expect(lines.count == 10_002 && lines[10_000] == "OK 10000" && lines[10_001] == "OK")
    #expect(Set(lines.prefix(10_000)).count == 10_000)
  }
}
