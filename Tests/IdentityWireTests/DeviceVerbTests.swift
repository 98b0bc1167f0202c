import IdentityCore
import IdentityWire
import Testing

private let value = UUID(high: 0x557e_5958_d390_4cbf, low: 0xb928_2a2b_19a1_399a)
private let text = "557e5958-d390-4cbf-b928-2a2b19a1399a"
private let seen = Timestamp(milliseconds: 1_795_250_352_345)

struct DeviceVerbTests {
  @Test(
    arguments: [
      ("account", .account), ("account set alice@example.org", .setAccount("alice@example.org")),
      ("account set \"two words\"", .setAccount("two words")), ("account clear", .setAccount(nil)),
      ("account set clear", .setAccount("clear")), ("devices", .devices),
      ("devices put \(text)", .putDevice(value, name: nil, seen: nil)),
      ("devices put \(text) name=\"my laptop\"", .putDevice(value, name: "my laptop", seen: nil)),
      ("devices put \(text) seen=2026-11-21T08:39:12.345Z", .putDevice(value, name: nil, seen: seen)),
      ("Devices Put \(text) SEEN=2026-11-21T08:39:12.345Z Name=x", .putDevice(value, name: "x", seen: seen)),
      ("devices remove \(text)", .removeDevice(value)), ("devices forget \(text)", .forgetDevice(value)),
      ("devices forget unused=365", .forgetDevices(unused: 365)),
      ("devices forget unused=365 dry-run=yes", .devices(unused: 365)),
    ] as [(String, RegistryCommand)])
  func `requests for the account and its devices are parsed`(line: String, expected: RegistryCommand) throws {
    #expect(try command(line) == .registry(expected))
  }

  @Test(arguments: [
    "devices forget", "devices forget dry-run=yes", "devices forget unused=0", "devices forget \(text) unused=1",
    "devices forget \(text) dry-run=yes",
  ])
  func `devices leave the list by name or by the time without news, and not by both`(line: String) throws {
    #expect(try #require(refused(line)).code == .badArgument)
  }

  @Test(arguments: [
    "now", "1795250352", "2026-11-21", "2026-11-21T08:39:12Z", "2026-11-21T08:39:12.345+00:00",
    "2026-02-30T08:39:12.345Z", "\"\"", "\"2026-11-21 08:39:12.345Z\"",
  ])
  func `a time must have the form that the daemon writes`(time: String) throws {
    let refusal = try #require(refused("devices put \(text) seen=\(time)"))
    #expect(refusal.code == .badArgument)
    #expect(refusal.text.hasSuffix("allowed: a time like 2026-11-21T08:39:12.345Z"))
  }

  @Test(arguments: ["account set", "devices put \(text) name="])
  func `the length of a name is limited`(start: String) {
    let space = start.hasSuffix("=") ? "" : " "
    let longest = String(repeating: "a", count: Bound.nameLength)
    #expect(refused("\(start)\(space)\(longest)") == nil)
    #expect(refused("\(start)\(space)\(longest)a")?.code == .badArgument)
  }
}

struct EventVerbTests {
  private static let all = Set(Topic.allCases)

  @Test(
    arguments: [
      ("subscribe", .subscribe(all, since: nil, snapshot: false)),
      ("subscribe device", .subscribe([.device], since: nil, snapshot: false)),
      ("subscribe devices account devices", .subscribe([.devices, .account], since: nil, snapshot: false)),
      (
        "subscribe \(Topic.allCases.map(\.rawValue).joined(separator: " "))",
        .subscribe(all, since: nil, snapshot: false)
      ),
      ("subscribe since=0", .subscribe(all, since: EventNumber(0), snapshot: false)),
      ("subscribe app SINCE=0044", .subscribe([.app], since: EventNumber(44), snapshot: false)),
      ("subscribe since=9223372036854775807", .subscribe(all, since: EventNumber(.max), snapshot: false)),
      ("subscribe since=4 epoch=w", .subscribe(all, since: EventNumber(4, epoch: "w"), snapshot: false)),
      ("subscribe snapshot=yes", .subscribe(all, since: nil, snapshot: true)),
      ("subscribe vendor snapshot=no since=3", .subscribe([.vendor], since: EventNumber(3), snapshot: false)),
      ("unsubscribe", .unsubscribe(all)), ("unsubscribe item token", .unsubscribe([.item, .token])),
    ] as [(String, LocalCommand)])
  func `subscribe and unsubscribe are parsed to commands`(line: String, expected: LocalCommand) throws {
    #expect(try command(line, by: alice) == .local(expected))
  }

  @Test(arguments: ["subscribe", "unsubscribe"], ["frob", "lag", "\"\"", "to\u{212A}en", "device,app"])
  func `an error about an unknown topic lists the valid ones`(verb: String, topic: String) throws {
    let refusal = try #require(refused("\(verb) \(topic)"))
    #expect(refusal.code == .badArgument)
    let topics = "device, installation, vendor, app, devices, account, item, version, token, proof"
    #expect(refusal.text.hasSuffix("allowed: \(topics)"))
  }

  @Test(arguments: [
    "-1", "+1", "1.0", "x", "\"\"", "9223372036854775808", "99999999999999999999999", "\u{661}", "\" 1\"",
  ])
  func `row 25: a sequence number must be decimal digits`(number: String) {
    #expect(refused("subscribe since=\(number)")?.code == .badArgument)
  }

  @Test(arguments: [
    "subscribe snapshot=1", "subscribe snapshot=\"\"", "subscribe since=1 since=2", "subscribe epoch=w",
    "subscribe topic=device",
    "unsubscribe since=1", "unsubscribe snapshot=yes",
  ])
  func `a wrong argument is refused`(line: String) {
    #expect(refused(line)?.code == .badArgument)
  }
}
