import IdentityCore
import Testing

@testable import FleetWire

struct MessageTopicTests {
  private let account = AccountID(high: 0x7ef5_b1f0_0fbb_c099, low: 0xd18e_604d_ef9e_140e)
  private let tag = DeviceTag(high: 0x6bda_e793_b9bc_58f4, low: 0x0d1d_e923_4e37_1dcd)
  private let rendezvous = Rendezvous(high: 0, low: 0xab)
  private let reader = ReaderID(high: 0, low: 0xcd)
  private let prefix = "identityd/v1/7ef5b1f00fbbc099d18e604def9e140e"

  @Test func `topics have their published texts, and are read again`() {
    let topics: [(MessageTopic, String)] = [
      (.device(account, tag), "\(prefix)/d/6/6bdae793b9bc58f40d1de9234e371dcd"),
      (.grant(account, tag), "\(prefix)/k/6/6bdae793b9bc58f40d1de9234e371dcd"),
      (.presence(account, tag), "\(prefix)/p/6/6bdae793b9bc58f40d1de9234e371dcd"),
      (.who(account), "\(prefix)/w"),
      (.invitation(rendezvous), "identityd/v1/join/000000000000000000000000000000ab/i"),
      (.answer(rendezvous), "identityd/v1/join/000000000000000000000000000000ab/a"),
      (.report(reader, tag), "identityd/v1/site/000000000000000000000000000000cd/6/6bdae793b9bc58f40d1de9234e371dcd"),
      (.tokens(reader, tag), "identityd/v1/sender/000000000000000000000000000000cd/6/6bdae793b9bc58f40d1de9234e371dcd"),
      (
        .feedback(reader, tag),
        "identityd/v1/feedback/000000000000000000000000000000cd/6/6bdae793b9bc58f40d1de9234e371dcd"
      ),
    ]
    for (topic, text) in topics {
      #expect(topic.text == text)
      #expect(MessageTopic(parsing: text) == topic)
    }
  }

  @Test func `other texts are no topics`() {
    let device = "\(prefix)/d/6/6bdae793b9bc58f40d1de9234e371dcd"
    for text in [
      "", "/", prefix, "\(prefix)/x", "\(prefix)/d/7/6bdae793b9bc58f40d1de9234e371dcd", device + "/", device + "0",
      device.uppercased(), "\(prefix)/d/6/6BDAE793b9bc58f40d1de9234e371dcd", "\(prefix)/d/+/+",
      "identityd/v1/join/000000000000000000000000000000ab/x", device.replacing("v1", with: "v2"),
      "identityd/v1/feedback/000000000000000000000000000000cd/7/6bdae793b9bc58f40d1de9234e371dcd",
      "identityd/v1/feedback/6/6bdae793b9bc58f40d1de9234e371dcd", "identityd/v1/feedback/6",
      "identityd/v1/site/cd/6/6bdae793b9bc58f40d1de9234e371dcd",
      "identityd/v1/sender/000000000000000000000000000000cd/7/6bdae793b9bc58f40d1de9234e371dcd",
      device.replacing("/d/", with: "/q/"), device.replacing("7ef5", with: "zef5"),
    ] { #expect(MessageTopic(parsing: text) == nil, "\(text)") }
  }

  @Test func `filters cover the topics of an account`() {
    #expect(TopicFilter.roster(account).text == "\(prefix)/d/+/+")
    #expect(TopicFilter.bucket(account, 10).text == "\(prefix)/d/a/+")
    #expect(TopicFilter.presences(account).text == "\(prefix)/p/+/+")
    #expect(
      TopicFilter.reports(reader, 11).text == "identityd/v1/site/000000000000000000000000000000cd/b/+")
    #expect(
      TopicFilter.tokens(reader, 0).text == "identityd/v1/sender/000000000000000000000000000000cd/0/+")
    #expect(TopicFilter.only(.device(account, tag)).text == MessageTopic.device(account, tag).text)
  }

  @Test func `a topic admits one kind, and that of a device also tombstones`() {
    let admitted = MessageKind.allCases.map { kind in
      [
        .device(account, tag), .grant(account, tag), .presence(account, tag), .who(account), .digest(account),
        .invitation(rendezvous),
        .answer(rendezvous), .report(reader, tag), .tokens(reader, tag), .feedback(reader, tag),
      ].filter { (topic: MessageTopic) in topic.admits(kind) }.count
    }
    #expect(admitted == [Int](repeating: 1, count: 11))
    #expect(MessageTopic.device(account, tag).admits(.record) && MessageTopic.device(account, tag).admits(.tombstone))
    #expect(!MessageTopic.device(account, tag).admits(.grant))
  }
}
