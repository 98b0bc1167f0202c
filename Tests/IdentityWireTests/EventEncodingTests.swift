import IdentityCore
import IdentityWire
import Testing

private let time = Timestamp(milliseconds: 1_795_250_352_345)

private func line(_ event: Event) -> String {
  var bytes: [UInt8] = []
  event.append(to: &bytes)
  return String(decoding: bytes, as: UTF8.self)
}

struct EventEncodingTests {
  @Test func `an event has its number, topic, name and attributes, and the time last`() {
    let event = Event(
      sequence: 44, time: time, topic: .token, name: "replaced",
      attributes: [
        .init("app", "org.example.player"), .init("provider", "fcm"),
        .init("device", "557e5958-d390-4cbf-b928-2a2b19a1399a"),
      ], audience: .app("org.example.player"))
    #expect(
      line(event)
        == "EVENT 44 token replaced app=org.example.player provider=fcm device=557e5958-d390-4cbf-b928-2a2b19a1399a time=2026-11-21T08:39:12.345Z\n"
    )
  }

  @Test(
    arguments: [
      ("", "value=\"\""), ("two words", "value=\"two words\""), ("a=b", "value=a=b"), ("é", "value=é"),
      ("a\"b\\c", "value=\"a\\\"b\\\\c\""), ("a\nEVENT 1 x", "value=\"a\\nEVENT 1 x\""),
      ("\u{1b}[2J\u{85}\r", "value=\"\\u001b[2J\\u0085\\r\""),
    ] as [(Text, String)])
  func `a value is quoted if necessary and cannot begin another line`(value: Text, written: String) throws {
    let event = Event(
      sequence: 1, time: time, topic: .account, name: "changed", attributes: [.init("value", value)], audience: .sharing
    )
    let text = line(event)
    #expect(text == "EVENT 1 account changed \(written) time=2026-11-21T08:39:12.345Z\n")
    guard case .event(1, let content)? = ReplyLine(Array(text.utf8.dropLast())) else {
      Issue.record("\(text) was not read as event 1")
      return
    }
    #expect(content.attributes.first?.value == value)
  }

  @Test(arguments: Topic.allCases)
  func `every topic is a bare word that subscribe accepts`(topic: Topic) throws {
    let event = Event(sequence: .max, time: time, topic: topic, name: "x", attributes: [], audience: .sharing)
    #expect(line(event) == "EVENT 9223372036854775807 \(topic.rawValue) x time=2026-11-21T08:39:12.345Z\n")
    #expect(
      try command("subscribe \(topic.rawValue)") == .local(.subscribe([topic], since: nil, snapshot: false)))
  }

  @Test func `a lag line tells how many events were missed and where to continue`() throws {
    var bytes: [UInt8] = []
    Event.appendLag(sequence: 1_234, missed: 17, from: 1_200, to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == "EVENT 1234 lag missed=17 from=1200\n")
    guard case .event(1_234, let content)? = ReplyLine(bytes.dropLast()) else {
      Issue.record("it was not read as event 1234")
      return
    }
    #expect(content.words == ["lag"])
    #expect(content.attributes.map(\.value) == ["17", "1200"])
  }

  @Test func `a client reads a snapshot as rows followed by the sequence number`() throws {
    var registry = Registry()
    registry.apply(.accountSet("a b"))
    registry.apply(.deviceListed(ListedDevice(value: UUID(high: 1, low: 2), added: time)))
    var reply = registry.snapshot(of: [.account, .devices], for: alice)
    reply.ok()
    reply.word(.number(2))
    var bytes: [UInt8] = []
    reply.append(to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == "* devices value=00000000-0000-0001-0000-000000000002\n* account value=\"a b\"\nOK 2\n")
  }
}
