import Foundation
import Mosquitto
import TestSupport
import Testing

/// Connections to a real Mosquitto.
struct BrokerConnectionTests {
  @Test func `a retained message is read back, by this client and by another one`() throws {
    let broker = try BrokerUnderTest()
    let caller = try Caller(at: broker.port)
    try caller.subscribe(to: "a/b")
    caller.publish("one", to: "a/b")
    #expect(try caller.message().text == "a/b one")
    try caller.subscribe(to: "a/b")
    #expect(try caller.message().text == "a/b one (retained)")
    #expect(try broker.retained("a/#") == ["a/b 6f6e65"])
    // An empty message deletes the retained one.
    caller.publish("", to: "a/b")
    #expect(try caller.message().text == "a/b ")
    #expect(try broker.retained("a/#").isEmpty)
  }

  @Test func `a plus sign stands for one level`() throws {
    let broker = try BrokerUnderTest()
    for topic in ["d/0/x", "d/1/y", "d/1/y/z", "e/0/x"] { try broker.publish(topic.utf8, to: topic) }
    let caller = try Caller(at: broker.port)
    try caller.subscribe(to: "d/+/+")
    #expect(
      try Set([caller.message().text, caller.message().text]) == ["d/0/x d/0/x (retained)", "d/1/y d/1/y (retained)"])
    caller.publish("live", to: "d/2/z", isRetained: false)
    #expect(try caller.message().text == "d/2/z live")
    #expect(try broker.retained("d/2/z").isEmpty)
  }

  @Test func `wrong credentials are refused`() throws {
    let broker = try BrokerUnderTest("allow_anonymous false")
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    access.user = BrokerAccess.User(name: "device", password: "wrong")
    let report = try Caller(access).next()
    guard case .refused(let reason) = report else { throw Failure("\(report)") }
    #expect(reason.contains("not authori"))
  }

  @Test func `a right password is accepted`() throws {
    let passwords = try TemporaryFolder()
    try passwords.write("passwords", "")
    #expect(try run(["mosquitto_passwd", "-b", passwords["passwords"], "device", "right"]).status == 0)
    let broker = try BrokerUnderTest("allow_anonymous false\npassword_file \(passwords["passwords"])")
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    access.user = BrokerAccess.User(name: "device", password: "right")
    try Caller(access).wait(for: .connected)
  }

  @Test func `the broker publishes the will when the connection ends, and does not keep it`() throws {
    let broker = try BrokerUnderTest()
    let other = try Caller(at: broker.port)
    try other.subscribe(to: "will")
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    access.will = Publication(topic: "will", payload: Array("gone".utf8), isRetained: false)
    var caller: Caller? = try Caller(access)
    try caller?.wait(for: .connected)
    caller = nil
    #expect(try other.message().text == "will gone")
    #expect(try broker.retained("will").isEmpty)
  }

  @Test func `a subscription that the broker denies is reported`() throws {
    // Mosquitto grants each subscription, and then sends nothing.
    let broker = try PlayedBroker { packet in
      switch packet[0] >> 4 {
      case 1: [0x20, 2, 0, 0]
      case 8: [0x90, 3, packet[2], packet[3], 0x80]
      default: []
      }
    }
    let caller = try Caller(BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none))
    try caller.wait(for: .connected)
    caller.ask(for: "a")
    try caller.wait(for: .denied("a"))
  }

  @Test func `a killed broker ends the connection, and the next one works once it is back`() throws {
    let broker = try BrokerUnderTest(persists: true)
    let caller = try Caller(at: broker.port)
    broker.kill()
    #expect(try caller.end() == "the connection was lost")
    let early = try Caller(BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none))
    #expect(try early.end() == "Connection refused")
    try broker.start()
    let late = try Caller(at: broker.port)
    try late.subscribe(to: "a")
    late.publish("back", to: "a")
    #expect(try late.message().text == "a back")
  }

  @Test func `a broker that stays silent ends the attempt`() throws {
    let broker = try PlayedBroker { _ in [] }
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    access.answerPatience = 300
    #expect(try Caller(access).end() == "the broker does not answer")
  }

  @Test func `a broker that becomes silent ends the connection`() throws {
    let asked = DispatchSemaphore(value: 0)
    let broker = try PlayedBroker { packet in
      // PINGREQ is packet type 12 (MQTT 3.1.1, section 3.12).
      if packet[0] >> 4 == 12 { asked.signal() }
      return packet[0] >> 4 == 1 ? [0x20, 2, 0, 0] : []
    }
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    // The shortest that the library allows.
    access.keepAlive = 5
    let caller = try Caller(access)
    try caller.wait(for: .connected)
    #expect(try caller.end() == "the broker does not answer")
    #expect(asked.wait(timeout: .now()) == .success)
  }

  @Test func `a broker that speaks another protocol ends the attempt`() throws {
    let broker = try PlayedBroker { _ in Array("SSH-2.0-x\r\n".utf8) }
    var access = BrokerAccess(host: "127.0.0.1", port: broker.port, protection: .none)
    access.answerPatience = 300
    #expect(try Caller(access).end() == "the broker does not answer")
  }

  @Test func `messages wait at the broker while nobody takes them`() throws {
    let broker = try BrokerUnderTest("allow_anonymous true\nmax_queued_messages 0\nset_tcp_nodelay true")
    let writer = try Caller(at: broker.port)
    let content = String(repeating: "x", count: 30_000)
    // More than the mailbox, the kernel's buffers and the thread hold together.
    let count = 400
    try writer.subscribe(to: "+")
    for number in 0..<count {
      writer.publish(content, to: "\(number)")
      // The mailbox of the writer has room for some of them only.
      _ = try writer.message()
    }
    let reader = try Caller(at: broker.port)
    reader.ask(for: "+")
    // Another client reads them all meanwhile, which takes a second.
    #expect(try broker.retained("+", count: count).count == count)
    // The mailbox, and the message that filled it.
    #expect((1...1 << 20 + content.utf8.count).contains(reader.waitingBytes()))
    try reader.wait(for: .subscribed("+"))
    var topics: Set<String> = []
    for _ in 0..<count { topics.insert(try reader.message().topic) }
    #expect(topics.count == count)
  }

  @Test func `a payload that no device writes is cut`() throws {
    let broker = try BrokerUnderTest()
    try broker.publish(Array(repeating: UInt8(ascii: "x"), count: 100_000), to: "a")
    let caller = try Caller(at: broker.port)
    try caller.subscribe(to: "a")
    #expect(try caller.message().payload.count == Delivery.longestPayload)
  }
}
