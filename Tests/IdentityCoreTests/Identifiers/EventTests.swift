import IdentityCore
import TestSupport
import Testing

private func identifier(_ scope: Scope, _ number: UInt64, cause: Cause = .firstUse) -> Change {
  .identifierMade(
    Identifier(
      scope: scope, value: given(number), created: Timestamp(milliseconds: 5), origin: .random, cause: cause,
      author: nil))
}

private func ended(_ scope: Scope, _ cause: Cause = .uninstalled) -> Change {
  .identifierEnded(scope, .init(time: Timestamp(milliseconds: 6), cause: cause))
}

private let app = App(installed: Timestamp(milliseconds: 1), manifest: Manifest("org.v"))
private let phone = ListedDevice(value: given(8), name: "phone", added: Timestamp(milliseconds: 1))
private let machine = MachineRecord(fingerprint: .init(machine: "m", hardware: nil))

struct EventTests {
  @Test(
    arguments: [
      // The changes before, the tested change, and its event.
      ([], .appInstalled("org.a", app), "app installed app=org.a vendor=org.v > vendor org.v"),
      (
        [], .appInstalled("user:7", App(installed: Timestamp(milliseconds: 1))),
        "app installed app=user:7 vendor=user:7 > vendor user:7"
      ),
      (
        [.appInstalled("org.a", app)], .appUninstalled("org.a"),
        "app uninstalled app=org.a vendor=org.v > vendor org.v"
      ),
      ([], identifier(.device, 1), "device created value=g1 cause=first-use > sharing"),
      (
        [identifier(.device, 1)], identifier(.device, 2, cause: .machineChanged),
        "device changed value=g2 previous=g1 cause=machine-changed > sharing"
      ),
      ([identifier(.device, 1)], ended(.device, .sealed), "device ended value=g1 cause=sealed > sharing"),
      (
        [identifier(.device, 1)], .deviceSuspected(.device, .hardwareChanged),
        "device suspect value=g1 cause=hardware-changed > sharing"
      ),
      (
        [identifier(.device, 1)], .deviceAcknowledged(.device, .hardwareChanged),
        "device acknowledged value=g1 cause=hardware-changed > sharing"
      ),
      (
        [identifier(.device, 1), ended(.device)], identifier(.device, 2, cause: .restored),
        "device created value=g2 cause=restored > sharing"
      ),
      (
        [], identifier(.deviceOfApp("org.a"), 1, cause: .migrated),
        "device created value=g1 cause=migrated app=org.a > app org.a"
      ),
      (
        [.appInstalled("org.a", app), identifier(.installation("org.a"), 1)],
        identifier(.installation("org.a"), 2, cause: .renewed),
        "installation changed value=g2 previous=g1 cause=renewed app=org.a vendor=org.v > app org.a"
      ),
      (
        [.appInstalled("org.a", app), identifier(.installation("org.a"), 1)], ended(.installation("org.a")),
        "installation ended value=g1 cause=uninstalled app=org.a vendor=org.v > app org.a"
      ),
      ([], identifier(.vendor("org.v"), 1), "vendor created value=g1 cause=first-use vendor=org.v > vendor org.v"),
      (
        [identifier(.vendor("org.v"), 1)], ended(.vendor("org.v")),
        "vendor ended value=g1 cause=uninstalled vendor=org.v > vendor org.v"
      ),
      ([], .accountSet("alice"), "account changed value=alice > sharing"),
      ([.accountSet("alice")], .accountSet(nil), "account changed value=\"\" > sharing"),
      ([], .deviceListed(phone), "devices added value=g8 > sharing"),
      (
        [.deviceListed(phone)], .deviceReplaced(previous: given(8), ListedDevice(value: given(9), added: phone.added)),
        "devices replaced value=g9 previous=g8 > sharing"
      ),
      ([.deviceListed(phone)], .deviceUnlisted(given(8)), "devices removed value=g8 > sharing"),
    ] as [([Change], Change, String)])
  func `each change causes the event with these words and audience`(before: [Change], change: Change, told: String) {
    var life = Life()
    life.take(before)
    let number = life.registry.lastEvent + 1
    life.take([change])
    #expect(life.told(from: number) == ["\(number) \(told)"])
  }

  @Test(
    arguments: [
      .appUpdated("org.a", app), .deviceDescribed(ListedDevice(value: phone.value, added: phone.added)),
      .machineRecorded(machine), .sealed, ended(.device),
      .deviceSuspected(.device, .machineChanged), .deviceAcknowledged(.device, .machineChanged),
    ] as [Change])
  func `changes without an audience or without an effect cause no event`(change: Change) {
    let recorded = Registry().record(change, at: Timestamp(milliseconds: 0))
    #expect(recorded == RecordedChange(change, event: nil))
  }

  @Test func `sequence numbers have no gap, and each event has the time of its change`() throws {
    var life = Life()
    try life.start("m", "h")
    life.install(["org.a": Manifest("org.v", device: .app)])
    for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer("org.a")) }
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.get(.device, app: nil), as: alice)
    life.install(["org.a": Manifest("org.w")])
    try life.start("n", "h")
    life.install([:])
    #expect(life.events.map(\.sequence) == Array(1...Int64(life.events.count)))
    #expect(life.registry.lastEvent == Int64(life.events.count))
    #expect(life.events.map(\.time) == life.events.map(\.time).sorted())
    #expect(life.events.last?.time == Timestamp(milliseconds: life.now))
  }

  @Test func `refused changes and dry runs take no sequence number`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let last = life.registry.lastEvent
    _ = life.refusal(of: .migrate(.device, given(1), app: nil, commits: true, forces: false), as: alice)
    try life.ask(.migrate(.device, given(1), app: nil, commits: false, forces: true), as: root)
    try life.ask(.renew(.device, app: nil, dryRun: true), as: root)
    #expect(life.registry.lastEvent == last)
  }
}

struct SnapshotTests {
  private func life() throws(Refusal) -> Life {
    var life = Life()
    life.install(["org.a": Manifest("org.v", device: .app), "org.b": Manifest("org.v")])
    for peer in [alice, peer("org.a")] {
      for level in Level.allCases { try life.ask(.get(level, app: nil), as: peer) }
    }
    try life.ask(.renew(.installation, app: "org.a", dryRun: false), as: root)
    try life.ask(.putDevice(given(1), name: "phone", seen: nil), as: root)
    return life
  }

  private func rows(_ topics: [Topic], for peer: Peer) throws(Refusal) -> [String] {
    let life = try life()
    return life.lines(life.registry.snapshot(of: Set(topics), for: peer))
  }

  @Test func `an admin's snapshot has a row for every current value`() throws {
    #expect(
      try rows(Topic.allCases, for: root) == [
        "* installation value=r1 cause=first-use app=user:1000 vendor=user:1000",
        "* vendor value=r2 cause=first-use vendor=user:1000", "* device value=m.device cause=first-use",
        "* vendor value=r4 cause=first-use vendor=org.v", "* device value=m.device.org.a cause=first-use app=org.a",
        "* installation value=r5 cause=renewed app=org.a vendor=org.v", "* app app=org.a vendor=org.v",
        "* app app=org.b vendor=org.v", "* app app=user:1000 vendor=user:1000", "* devices value=m.device",
        "* devices value=g1", "* account value=\"\"",
      ])
  }

  @Test func `an app's snapshot has the rows that the app may read`() throws {
    #expect(
      try rows(Topic.allCases, for: peer("org.a")) == [
        "* vendor value=r4 cause=first-use vendor=org.v", "* device value=m.device.org.a cause=first-use app=org.a",
        "* installation value=r5 cause=renewed app=org.a vendor=org.v", "* app app=org.a vendor=org.v",
        "* app app=org.b vendor=org.v",
      ])
  }

  @Test(
    arguments: [
      (.device, ["* device value=m.device cause=first-use"]),
      (.devices, ["* devices value=m.device", "* devices value=g1"]),
      (.account, ["* account value=\"\""]), (.app, ["* app app=user:1000 vendor=user:1000"]),
      (.installation, ["* installation value=r1 cause=first-use app=user:1000 vendor=user:1000"]),
      (.vendor, ["* vendor value=r2 cause=first-use vendor=user:1000"]), (.item, []), (.version, []), (.token, []),
    ] as [(Topic, [String])])
  func `a snapshot has only the requested topics`(topic: Topic, expected: [String]) throws {
    #expect(try rows([topic], for: alice) == expected)
  }

  @Test func `a row has the attributes of the event about its value`() throws {
    let life = try life()
    for scope in life.registry.scopes {
      let value = try #require(life.registry[scope]?.value)
      let event = try #require(
        life.events.last { $0.topic.rawValue == scope.level.rawValue && $0.attributes.first?.value == Text("\(value)") }
      )
      let told = event.attributes.filter { $0.name != "previous" }.map { "\($0.name)=\($0.value)" }
      let all = try life.registry.snapshot(of: [event.topic], for: root).allParts()
      let pieces = all.split(separator: .row).map { row in
        row.compactMap { part in
          if case .attribute(let name, .text(let value)) = part { return "\(name)=\(value)" }
          return nil
        }
      }
      #expect(pieces.contains(told))
    }
  }
}
