import FleetCore
import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

/// Readers outside of the account, at a real daemon, a real service and a real broker.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons"), .tags(.slow)) struct ReaderTests {
  /// A sender of push messages, which reads and writes with the clients of Mosquitto.
  private final class SenderUnderTest {
    let keys: DeviceKeys
    let broker: BrokerUnderTest
    private(set) var ledger = TokenLedger()

    init(at broker: BrokerUnderTest) throws {
      keys = try #require(SecretKey.random().flatMap { DeviceKeys(seed: $0) })
      self.broker = broker
    }

    var id: ReaderID { ReaderID(of: keys.boxKey) }
    var setting: String { "Sender=push \(Data(keys.boxKey.bytes + keys.signingKey.bytes).base64EncodedString())" }

    /// Reads all messages for this sender. Returns the tags of the devices that have to be told again.
    @discardableResult func read() throws -> [DeviceTag] {
      try messages("identityd/v1/sender/\(id)/+/+").compactMap { topic, bytes in
        guard let tag = topic.tag else { return nil }
        return try ledger.take(try keys.openBox(bytes, on: topic), at: tag) ? tag : nil
      }
    }

    /// Returns the retained messages of a filter.
    func messages(_ filter: String) throws -> [(MessageTopic, [UInt8])] {
      try broker.messages(filter).map { topic, bytes in (try #require(MessageTopic(parsing: topic)), bytes) }
    }

    /// Tells a device which of its tokens are invalid.
    func tell(_ tag: DeviceTag, as author: DeviceKeys? = nil) throws {
      let (draft, boxKey) = try #require(ledger.feedback(at: tag, signingKey: (author ?? keys).signingKey))
      guard case .exactly(let counter) = draft.counter else { throw Failure("a feedback has a counter") }
      let topic = MessageTopic.feedback(id, tag)
      let body = Body(
        subject: draft.subject, generation: draft.generation, counter: counter, run: Run(high: 1, low: 1),
        time: Timestamp(milliseconds: 1), author: UUID(high: 1, low: 1), fields: draft.fields)
      let message = try #require((author ?? keys).box(.feedback, body, to: boxKey, on: topic))
      try broker.publish(message.bytes, to: topic.text)
    }

    /// Notes that a token is invalid.
    func invalidate(_ token: CarriedToken, at tag: DeviceTag) -> Bool { ledger.invalidate(token, at: tag) }

    /// The values of the tokens of all devices, sorted.
    func values() throws -> [String] {
      try read()
      return try messages("identityd/v1/sender/\(id)/+/+").flatMap { topic, _ in
        topic.tag.map { ledger.tokens(at: $0).map { "\($0.value)" } } ?? []
      }.sorted()
    }
  }

  private func settings(_ broker: BrokerUnderTest, _ more: String...) -> String {
    (["Broker=mqtt://127.0.0.1:\(broker.port)", "Spread=0"] + more).joined(separator: "\n")
  }

  private func member(_ broker: BrokerUnderTest, _ more: String...) throws -> FleetUnderTest {
    let device = try FleetUnderTest(settings(broker) + "\n" + more.joined(separator: "\n"))
    #expect(try device.daemon.ask("devices name desk") == "OK")
    #expect(try device.ask("account create alice") == ["OK"])
    return device
  }

  @Test func `a sender gets the tokens whenever one changes, and ends one that is invalid`() throws {
    let broker = try BrokerUnderTest()
    let sender = try SenderUnderTest(at: broker)
    let device = try member(broker, sender.setting)
    try device.wait("the empty list is there") { try sender.messages("identityd/v1/sender/+/+/+").count == 1 }
    #expect(try sender.values() == [])
    #expect(try device.daemon.ask("token put fcm first topic=news").hasPrefix("OK created "))
    #expect(try device.daemon.ask("token put apns other").hasPrefix("OK created "))
    try device.wait("the sender has both") { try sender.values() == ["first", "other"] }
    let tag = try #require(try sender.messages("identityd/v1/sender/+/+/+").first?.0.tag)
    let token = try #require(sender.ledger.tokens(at: tag).first { $0.value == "first" })
    #expect(token.topic == "news" && token.place.provider == "fcm")
    // Nothing readable is at the broker.
    #expect(try !broker.retained("identityd/#").contains { $0.contains("6669727374") }, "first in hexadecimal digits")
    // The feedback of somebody else changes nothing.
    let stranger = try #require(SecretKey.random().flatMap { DeviceKeys(seed: $0) })
    #expect(sender.invalidate(token, at: tag))
    try sender.tell(tag, as: stranger)
    try device.wait("the feedback is dropped") {
      try device.ask("fleet status").contains { $0.hasPrefix("* dropped=") }
    }
    #expect(try device.daemon.ask("token get fcm").contains("state=valid"))
    try sender.tell(tag)
    try device.wait("the token is invalid") { try device.daemon.ask("token get fcm").contains("state=invalid") }
    try device.wait("the sender has the rest") { try sender.values() == ["other"] }
    try device.wait("the feedback is gone") { try sender.messages("identityd/v1/feedback/+/+/+").isEmpty }
    // A token that has changed meanwhile is another one.
    let kept = try #require(sender.ledger.tokens(at: tag).first)
    #expect(sender.invalidate(kept, at: tag))
    device.end(with: SIGKILL)
    try sender.tell(tag)
    #expect(try device.daemon.ask("token put apns newer").hasPrefix("OK replaced "))
    try device.start()
    try device.wait("the sender has the newer one") { try sender.values() == ["newer"] }
    try device.wait("the feedback is gone") { try sender.messages("identityd/v1/feedback/+/+/+").isEmpty }
    #expect(try device.daemon.ask("token get apns").contains("state=valid"))
    // Without the setting, the tokens leave the broker.
    try device.reload(settings(broker))
    try device.wait("the topic is empty") { try sender.messages("identityd/v1/sender/+/+/+").isEmpty }
  }

  @Test func `row 31b: the tokens that a sender finds invalid together are logged together`() throws {
    let broker = try BrokerUnderTest()
    let sender = try SenderUnderTest(at: broker)
    let device = try member(broker, sender.setting)
    for number in 1...5 { #expect(try device.daemon.ask("token put p\(number) t\(number)").hasPrefix("OK created ")) }
    try device.wait("the sender has the tokens") { try sender.values().count == 5 }
    let tag = try #require(try sender.messages("identityd/v1/sender/+/+/+").first?.0.tag)
    for token in sender.ledger.tokens(at: tag) { #expect(sender.invalidate(token, at: tag)) }
    try sender.tell(tag)
    try device.wait("the log has an entry") { device.log.contains(" invalid, and further tokens: 4") }
    #expect(device.log.components(separatedBy: "a sender has found the push token").count == 2)
  }

  @Test func `a service with the right fleet alone tells tokens and a report`() throws {
    let broker = try BrokerUnderTest()
    let (sender, site) = try (SenderUnderTest(at: broker), SenderUnderTest(at: broker))
    let key = Data(site.keys.boxKey.bytes).base64EncodedString()
    let device = try FleetUnderTest(settings(broker, sender.setting, "SiteKey=\(key)"), as: "games")
    #expect(try device.daemon.ask("devices name desk") == "OK")
    #expect(try device.daemon.ask("version report 1.4.2").hasPrefix("OK installed "))
    #expect(try device.ask("account create alice") == ["OK"])
    #expect(try device.daemon.ask("token put fcm first").hasPrefix("OK created "))
    try device.wait("the sender has the token") { try sender.values() == ["first"] }
    let (topic, _) = try #require(try sender.messages("identityd/v1/sender/+/+/+").first)
    let tag = try #require(topic.tag)
    let token = try #require(sender.ledger.tokens(at: tag).first)
    #expect(sender.invalidate(token, at: tag))
    try sender.tell(tag)
    try device.wait("the token is invalid") { try device.daemon.ask("token get fcm").contains("state=invalid") }
    let (place, bytes) = try #require(try site.messages("identityd/v1/site/\(site.id)/+/+").first)
    let report = try site.keys.openBox(bytes, on: place).body
    #expect(try report.subject.description == device.daemon.uuid("get device"))
    #expect(report.fields[.name] == Array("desk".utf8) && report.fields[.status] == Array("ok".utf8))
    #expect(report.fields.apps?.map(\.version) == ["1.4.2"])
    // An app with a device identifier of its own must not be found under the shared one.
    let apps = device.daemon.folder.appending(path: "apps.d")
    try Data("[App]\nUser=daemon\nDeviceIdentifier=app\n".utf8).write(to: apps.appending(path: "own.app"))
    func asDaemon(_ words: String...) throws -> String {
      try run(
        ["setpriv", "--reuid=1", "--regid=1", "--clear-groups"]
          + [DaemonUnderTest.binaries.appending(path: "identityctl").path] + words,
        environment: ["IDENTITYD_SOCKET": device.daemon.socket]
      ).output
    }
    try device.wait("the app is installed") { try asDaemon("whoami").hasPrefix("own") }
    #expect(try asDaemon("token", "put", "fcm", "hidden").hasPrefix("created"))
    #expect(try device.daemon.ask("token put apns second").hasPrefix("OK created "))
    try device.wait("the sender has the other token") { try sender.values() == ["second"] }
  }

  @Test func `a site with more reports than the service holds is read whole`() throws {
    let broker = try BrokerUnderTest()
    let device = try FleetUnderTest(settings(broker))
    let path = device.daemon.folder.appending(path: "key").path
    let made = try device.identityctl("fleet", "keygen", "site", "--file=\(path)")
    let text = made.output.trimmingCharacters(in: .newlines).replacing("SiteKey=", with: "")
    let key = try #require(Data(base64Encoded: text).flatMap { PublicKey(Array($0)) }, "\(made)")
    let author = try #require(SecretKey.random().flatMap { DeviceKeys(seed: $0) })
    var fields = Fields()
    fields[.name] = Array("one of many".utf8)
    fields[.signingKey] = author.signingKey.bytes
    // With a length that no mailbox has room for, all together.
    fields.set(
      (1...40).map { ReportedApp(app: Text("app\($0)"), version: Text(String(repeating: "1", count: 600)), build: "") })
    let reports = try (1...80 as ClosedRange<UInt64>).map { number in
      let uuid = UUID(high: number, low: number)
      let topic = MessageTopic.report(ReaderID(of: key), DeviceTag(high: number, low: number))
      let body = Body(
        subject: uuid, generation: 1, counter: 1, run: Run(high: 1, low: 1), time: Timestamp(milliseconds: 1),
        author: uuid, fields: fields)
      let message = try #require(author.box(.report, body, to: key, on: topic))
      return (topic: topic.text, payload: message.bytes)
    }
    try broker.publish(all: reports)
    // A message that is no report, and one that was moved to another topic.
    try broker.publish(
      "nonsense".utf8, to: "identityd/v1/site/\(ReaderID(of: key))/0/\(String(repeating: "0", count: 32))")
    let shown = try device.identityctl("fleet", "status", "--key=\(path)", "--json")
    #expect(shown.status == 0 && shown.errors.contains("1 messages"), "\(shown.errors)")
    #expect(shown.output.matches(of: /"uuid":/).count == 80)
    #expect(shown.output.contains("\"app40\":\"111"))
  }

  @Test func `the tokens of a device come along to another identifier`() throws {
    let broker = try BrokerUnderTest()
    let sender = try SenderUnderTest(at: broker)
    let device = try member(broker, sender.setting)
    #expect(try device.daemon.ask("token put fcm shared").hasPrefix("OK created "))
    try device.wait("the sender has it") { try sender.values() == ["shared"] }
    let former = try device.daemon.uuid("get device")
    let renewed = try device.daemon.uuid("renew device")
    #expect(former != renewed)
    // The token comes along to the other identifier, and the former topic is emptied.
    try device.wait("the sender has it under the other identifier") {
      try sender.read()
      let messages = try sender.messages("identityd/v1/sender/+/+/+")
      return try messages.count == 1
        && sender.keys.openBox(messages[0].1, on: messages[0].0).body.subject.description == renewed
    }
  }
}
