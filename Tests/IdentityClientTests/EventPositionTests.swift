import IdentityCore
import IdentityWire
import Testing

@testable import IdentityClient

struct EventPositionTests {
  private func answer(_ line: String) throws -> DaemonConnection.Answer {
    DaemonConnection.Answer(final: try #require(ReplyLine(Array(line.utf8))))
  }

  private func event(_ line: String) throws -> ReceivedEvent {
    guard case .event(let sequence, let content)? = ReplyLine(Array(line.utf8)) else {
      return try #require(nil, "\(line)")
    }
    return ReceivedEvent(sequence: sequence, content: content)
  }

  private func request(_ position: EventPosition) -> String { String(decoding: position.request.head, as: UTF8.self) }

  @Test func `the first answer sets the position`() throws {
    var position = EventPosition([], since: nil)
    #expect(request(position) == "subscribe")
    #expect(try position.interpret(answer("OK 41")) == .following)
    #expect(request(position) == "subscribe since=41")
  }

  @Test func `each event is new once, and the next request follows it`() throws {
    var position = EventPosition(["device", "token"], since: 5)
    #expect(request(position) == "subscribe device token since=5")
    #expect(try position.interpret(answer("OK 5")) == .following)
    #expect(try position.interpret(event("EVENT 5 token made")) == .known)
    #expect(try position.interpret(event("EVENT 8 token made")) == .new)
    #expect(try position.interpret(event("EVENT 8 token made")) == .known)
    #expect(try position.interpret(event("EVENT 7 token made")) == .known)
    #expect(request(position) == "subscribe device token since=8")
  }

  @Test func `an answer beyond since= skips no event`() throws {
    var position = EventPosition([], since: 5)
    #expect(try position.interpret(answer("OK 90")) == .following)
    #expect(try position.interpret(event("EVENT 6 token made")) == .new)
  }

  @Test func `events before the first answer count if since= was given`() throws {
    var position = EventPosition([], since: 5)
    #expect(try position.interpret(event("EVENT 6 token made")) == .new)
    #expect(try position.interpret(answer("OK 6")) == .following)
    #expect(request(position) == "subscribe since=6")
  }

  @Test(arguments: [
    ("EVENT 30 lag missed=9 from=12", 12), ("EVENT 30 lag missed=9 from=3", 10), ("EVENT 30 lag", 10),
    ("EVENT 30 lag missed=9 from=x", 10),
  ])
  func `events that were left out are requested from the start of the lag`(line: String, last: Int64) throws {
    var position = EventPosition([], since: 10)
    #expect(try position.interpret(answer("OK 10")) == .following)
    #expect(try position.interpret(event(line)) == .behind)
    #expect(request(position) == "subscribe since=\(last)")
  }

  @Test func `events that are gone are missed, and new ones follow`() throws {
    var position = EventPosition(["token"], since: 3)
    #expect(try position.interpret(answer("ERR gone long ago")) == .missed(.notKept("long ago")))
    #expect(request(position) == "subscribe token")
    #expect(try position.interpret(answer("OK 99")) == .following)
    #expect(try position.interpret(event("EVENT 99 token made")) == .known)
    #expect(try position.interpret(event("EVENT 100 token made")) == .new)
  }

  @Test func `a store with new sequence numbers is detected by an unknown one`() throws {
    var position = EventPosition([], since: 50)
    #expect(try position.interpret(answer("ERR bad-argument x")) == .refused(code: "bad-argument", text: "x"))
    #expect(try position.interpret(answer("OK 50")) == .following)
    #expect(try position.interpret(answer("ERR bad-argument x")) == .missed(.numberedAnew(after: 50)))
    #expect(request(position) == "subscribe")
    #expect(try position.interpret(answer("ERR bad-argument x")) == .refused(code: "bad-argument", text: "x"))
    #expect(try position.interpret(answer("OK 2")) == .following)
    #expect(try position.interpret(event("EVENT 3 token made")) == .new)
  }

  @Test func `busy can be retried, other refusals cannot`() throws {
    var position = EventPosition([], since: nil)
    #expect(try position.interpret(answer("ERR busy full")) == .busy("full"))
    #expect(try position.interpret(answer("ERR gone x")) == .refused(code: "gone", text: "x"))
    #expect(try position.interpret(answer("ERR denied no")) == .refused(code: "denied", text: "no"))
    #expect(try position.interpret(answer("OK")) == .malformed)
    #expect(try position.interpret(answer("OK soon")) == .malformed)
  }
}

struct ReconnectPauseTests {
  @Test func `row 50: the pause doubles up to a maximum, is random in its upper half, and can be reset`() {
    var generator = SystemRandomNumberGenerator()
    var pause = ReconnectPause()
    for _ in 0..<2 {
      var whole = ReconnectPause.shortest
      for _ in 0..<20 {
        #expect((whole / 2...whole).contains(pause.next(using: &generator)))
        whole = min(whole * 2, ReconnectPause.longest)
      }
      pause.reset()
    }
  }
}
