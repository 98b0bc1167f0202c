import Foundation
import TestSupport
import Testing

/// The verbs of the fleet's service, with a real daemon (identityd-protocol(7), section "The fleet").
@Suite(.enabled(if: isRoot, "the verbs are for admins")) struct FleetTests {
  private func open(_ digit: Int) -> String { "fleet open run=\(String(repeating: "\(digit)", count: 32))" }

  @Test func `one connection at a time has the fleet open`() throws {
    let daemon = try DaemonUnderTest().start()
    let stranger = try PeerConnection(8, of: daemon)
    #expect(try stranger.ask(open(1))[0].hasPrefix("ERR denied "))
    let first = try daemon.client()
    let second = try daemon.client()
    #expect(try first.ask(open(2)).last?.hasPrefix("OK ") == true)
    let conflict = ["ERR conflict another connection has the fleet open; stop the other program first"]
    #expect(try second.ask(open(3)) == conflict)
    // The answer to a request in one packet with a change keeps its place.
    try second.send("devices name desk\n\(open(3))\nping\n")
    #expect(try [second.answer(), second.answer(), second.answer()] == [["OK"], conflict, ["OK"]])
    #expect(try first.ask(open(4)).first == "* run \(String(repeating: "2", count: 32))")
    #expect(try first.ask("quit") == ["OK"])
    let deadline = Date(timeIntervalSinceNow: patience)
    while try second.ask(open(3)) == conflict, Date() < deadline { usleep(5_000) }
    #expect(try second.ask(open(3)).dropLast() == [4, 2].map { "* run \(String(repeating: "\($0)", count: 32))" })
  }

  @Test func `a connection whose opening was refused does not have the fleet open`() throws {
    let daemon = try DaemonUnderTest().start()
    let (first, second) = (try daemon.client(), try daemon.client())
    #expect(try first.ask(open(1)).last?.hasPrefix("OK ") == true)
    #expect(try first.ask("seal") == ["OK"])
    // The earlier opening still holds.
    #expect(try first.ask(open(2))[0].hasPrefix("ERR unavailable "))
    #expect(try second.ask(open(3))[0].hasPrefix("ERR conflict "))
    #expect(try first.ask("quit") == ["OK"])
    let deadline = Date(timeIntervalSinceNow: patience)
    while try second.ask(open(3))[0].hasPrefix("ERR conflict "), Date() < deadline { usleep(5_000) }
    #expect(try second.ask(open(3))[0].hasPrefix("ERR unavailable "))
    #expect(try daemon.ask(open(4)).hasPrefix("ERR unavailable "))
  }

  @Test func `no counter is given out twice, however the daemon ends`() throws {
    let daemon = try DaemonUnderTest().start()
    var last = 0
    for _ in 1...4 {
      let client = try daemon.client()
      #expect(try client.ask(open(1)).last?.contains(" counter=\(last) ") == true)
      for _ in 1...5 {
        let counter = try #require(try client.ask("fleet next").last.flatMap { Int($0.dropFirst("OK ".count)) })
        #expect(counter == last + 1)
        last = counter
      }
      daemon.end(with: SIGKILL)
      try daemon.start()
    }
    #expect(try daemon.ask("fleet next above=1000") == "OK 1001")
    daemon.end()
    try daemon.start()
    #expect(try daemon.ask("fleet next") == "OK 1002")
    for wrong in [
      "fleet next above=9223372036854775807", "fleet next above=-1", "fleet open",
      "fleet open run=\(String(repeating: "g", count: 32))", "fleet open run=557e5958-d390-4cbf-b928-2a2b19a1399a",
    ] {
      #expect(try daemon.ask(wrong).hasPrefix("ERR bad-argument "), "\(wrong)")
    }
  }
}
