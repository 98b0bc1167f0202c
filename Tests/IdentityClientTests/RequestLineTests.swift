import IdentityWire
import Testing

@testable import IdentityClient

struct RequestLineTests {
  private func sent<Answer>(_ request: IdentityRequest<Answer>) -> String {
    String(decoding: request.line.bytes(), as: UTF8.self)
  }

  @Test func `each request is one line, quoted where necessary`() {
    let key = ItemPrimaryKey(service: "a b", account: "x=y", group: "org.example")
    let metadata = ItemMetadata(
      label: "", attributes: ["b": "2", "a": "1"], isThisDeviceOnly: true, endsWithInstallation: true)
    #expect(sent(.identifier(.device, app: "unit:a b")) == "get device app=\"unit:a b\"\n")
    #expect(sent(.key("a=b")) == "get key \"a=b\"\n")
    #expect(
      sent(.putItem(key, secret: Secret("hunter2"), metadata))
        == "item put service=\"a b\" account=x=y group=org.example label=\"\" attr.a=1 attr.b=2 this-device-only=yes"
        + " lifetime=installation data=aHVudGVyMg==\n")
    #expect(sent(.addItem(ItemPrimaryKey(service: "a", account: "b"), secret: Secret(""))).hasSuffix(" data=\"\"\n"))
    #expect(sent(.findItems(ItemQuery(in: .all), limit: 3)) == "item find group=* limit=3\n")
    #expect(sent(.words("get", "device", "a\nb")) == "get device \"a\\nb\"\n")
    #expect(sent(.versionState(of: .system)) == "version state of=os\n")
  }

  @Test func `only requests that change nothing are queries`() throws {
    let key = ItemPrimaryKey(service: "a", account: "b")
    #expect(IdentityRequest.readItem(key).line.isQuestion)
    #expect(IdentityRequest.previewVersion("1").line.isQuestion)
    #expect(!IdentityRequest.claim("x").line.isQuestion)
    #expect(!IdentityRequest.reportVersion("1").line.isQuestion)
    #expect(!IdentityRequest.deleteItems(ItemQuery(key)).line.isQuestion)
    #expect(!IdentityRequest.words("get", "device").line.isQuestion)
  }

  @Test func `every code of the protocol has a constant`() {
    let named: [IdentityError.Code] = [
      .syntax, .tooLong, .unknownVerb, .badArgument, .invalidUUID, .denied, .notFound, .exists, .conflict, .limit,
      .gone, .busy, .noSpace, .readOnly, .unavailable, .internal, .unknown,
    ]
    #expect(named.map(\.rawValue) == ErrorCode.allCases.map(\.rawValue))
  }

  @Test func `every topic of the protocol has a constant`() throws {
    let named: [EventTopic] = [.device, .installation, .vendor, .app, .devices, .account, .item, .version, .token]
    for topic in named { #expect(EventTopic(rawValue: topic.description) == topic) }
    #expect(Set(named).count == 9)
  }

  @Test(arguments: [(1, "1970-01-01T00:00:00.001Z"), (1_795_336_752_345, "2026-11-22T08:39:12.345Z")])
  func `a time is read as it is written`(milliseconds: Int64, text: String) {
    #expect(IdentityTime(millisecondsSince1970: milliseconds).description == text)
    #expect(IdentityTime(text)?.millisecondsSince1970 == milliseconds)
    #expect(IdentityTime("yesterday") == nil)
  }

  @Test func `a duration is converted to microseconds within 0 and the maximum`() {
    #expect(Duration.seconds(-1).microseconds == 0)
    #expect(Duration.milliseconds(1_500).microseconds == 1_500_000)
    #expect(Duration.seconds(Int64.max).microseconds == .max)
  }
}
