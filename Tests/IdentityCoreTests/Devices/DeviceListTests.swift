import IdentityCore
import Testing

struct DeviceListTests {
  @Test func `listing makes no identifier, and this device is listed once it has one`() throws {
    var life = Life()
    let empty = life.registry
    #expect(try life.ask(.devices, as: alice) == ["OK 0"])
    #expect(life.registry == empty)
    life.now = 0
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.ask(.devices, as: alice) == ["* m.device self=yes added=t1", "OK 1"])
    #expect(
      life.told() == [
        "1 device created value=m.device cause=first-use > sharing", "2 devices added value=m.device > sharing",
      ])
    let before = life.registry
    #expect(try life.ask(.devices, as: alice).count == 2)
    #expect(life.registry == before)
  }

  @Test func `devices are listed in the order of their addition, with their details`() throws {
    var life = Life()
    try life.ask(.putDevice(given(1), name: "phone", seen: Timestamp(milliseconds: 99)), as: root)
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.putDevice(given(2), name: nil, seen: nil), as: root)
    #expect(
      try life.ask(.devices, as: alice) == [
        "* g1 self=no name=phone seen=t99 added=t1", "* m.device self=yes added=t2", "* g2 self=no added=t3", "OK 3",
      ])
  }

  @Test func `devices that were not heard of for so many days leave the list, 512 at once, and never this one`() throws
  {
    let day: Int64 = 86_400_000
    var life = Life()
    life.now = 0
    try life.ask(.get(.device, app: nil), as: alice)
    // The time without news counts, else that of the addition.
    for number in 1...600 as ClosedRange<UInt64> {
      try life.ask(.putDevice(given(number), name: nil, seen: nil), as: root)
    }
    try life.ask(.putDevice(given(601), name: nil, seen: Timestamp(milliseconds: 5 * day)), as: root)
    life.now = 7 * day
    #expect(try life.ask(.devices(unused: 8), as: root) == ["OK 0 left=0"])
    let listed = try life.ask(.devices(unused: 3), as: root)
    #expect(listed.count == 513 && listed.last == "OK 512 left=88" && life.registry.devices.count == 602)
    #expect(try life.ask(.forgetDevices(unused: 3), as: root) == listed)
    #expect(try life.ask(.forgetDevices(unused: 3), as: root).last == "OK 88 left=0")
    #expect(try life.ask(.forgetDevices(unused: 3), as: root) == ["OK 0 left=0"])
    #expect(life.registry.devices.map(\.value) == [try #require(life.registry[.device]?.value), given(601)])
    let last = life.registry.lastEvent
    #expect(life.told(from: last) == ["\(last) devices removed value=g600 > sharing"])
  }

  @Test func `an update of a listed device changes only the given details, without an event`() throws {
    var life = Life()
    for number in [1, 2] as [UInt64] { try life.ask(.putDevice(given(number), name: "a", seen: nil), as: root) }
    let last = life.registry.lastEvent
    try life.ask(.putDevice(given(1), name: nil, seen: Timestamp(milliseconds: 5)), as: root)
    try life.ask(.putDevice(given(1), name: "b", seen: nil), as: root)
    #expect(
      life.registry.devices[given(1)]
        == ListedDevice(
          value: given(1), name: "b", seen: Timestamp(milliseconds: 5), added: Timestamp(milliseconds: 1)))
    #expect(life.told(from: last + 1) == ["\(last + 1) devices changed value=g1 name=b > sharing"])
  }

  @Test(
    arguments: [(nil, nil), ("phone", nil), (nil, 9), ("phone", 9)] as [(Text?, Int64?)])
  func `an update with the stored details is no change`(name: Text?, seen: Int64?) throws {
    var life = Life()
    try life.ask(.putDevice(given(1), name: "phone", seen: Timestamp(milliseconds: 9)), as: root)
    let command = RegistryCommand.putDevice(given(1), name: name, seen: seen.map(Timestamp.init(milliseconds:)))
    #expect(try life.registry.answer(command, for: root).map(life.lines) == ["OK"])
  }

  @Test func `this device can be named like any other and is listed once`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let own = try #require(life.registry[.device]?.value)
    try life.ask(.putDevice(own, name: "desk", seen: nil), as: root)
    #expect(try life.ask(.devices, as: alice) == ["* m.device self=yes name=desk added=t1", "OK 1"])
  }

  @Test func `a device that was listed before its identifier was made keeps its place`() throws {
    var life = Life()
    let coming = try #require(try life.context(root).machine(.device))
    try life.ask(.putDevice(coming, name: "desk", seen: nil), as: root)
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(try life.ask(.devices, as: alice) == ["* m.device self=yes name=desk added=t1", "OK 1"])
  }

  @Test func `devices name names this device and makes its identifier`() throws {
    var life = Life()
    #expect(try life.ask(.nameDevice("desk"), as: root) == ["OK"])
    #expect(try life.ask(.devices, as: alice) == ["* m.device self=yes name=desk added=t1", "OK 1"])
    #expect(life.told().last == "3 devices changed value=m.device name=desk > sharing")
    let last = life.registry.lastEvent
    #expect(try life.ask(.nameDevice("desk"), as: root) == ["OK"])
    #expect(life.registry.lastEvent == last)
    #expect(try life.ask(.nameDevice("lap"), as: root) == ["OK"])
    try life.ask(.renew(.device, app: nil, dryRun: false), as: root)
    #expect(try life.ask(.devices, as: alice).first?.contains("name=lap") == true)
  }

  @Test(arguments: [UUID.zero, .ones])
  func `the nil and max UUIDs are refused as devices`(value: UUID) {
    let refusal = Refusal.invalidUUID(Text("\(value)"))
    #expect(Life().refusal(of: .putDevice(value, name: nil, seen: nil), as: root) == refusal)
  }

  @Test func `the number of devices is limited, but this device is always listed`() throws {
    var life = Life()
    for number in 1...UInt64(Bound.devices) { try life.ask(.putDevice(given(number), name: nil, seen: nil), as: root) }
    let refusal = Refusal.limit("an account has at most 16384 devices; forget a device first")
    #expect(life.refusal(of: .putDevice(given(60_000), name: nil, seen: nil), as: root) == refusal)
    #expect(life.refusal(of: .putDevice(given(1), name: "known", seen: nil), as: root) == nil)
    try life.ask(.get(.device, app: nil), as: alice)
    #expect(life.registry.devices.count == Bound.devices + 1)
  }

  @Test func `removing a device is an event, and removing an unlisted one is not found`() throws {
    var life = Life()
    try life.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    #expect(try life.ask(.removeDevice(given(1)), as: root) == ["OK"])
    #expect(life.told() == ["1 devices added value=g1 > sharing", "2 devices removed value=g1 > sharing"])
    #expect(life.refusal(of: .removeDevice(given(1)), as: root) == .notFound("the device is not in the list"))
  }

  @Test func `this device cannot be removed from the list`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let own = try #require(life.registry[.device]?.value)
    #expect(
      life.refusal(of: .removeDevice(own), as: root) == .conflict("this device cannot be removed from its own list"))
  }

  @Test func `no device is listed twice when this device takes the identifier of a listed one`() throws {
    var life = Life()
    try life.start("m", "h")
    try life.ask(.get(.device, app: nil), as: alice)
    // The disk image is moved to a machine that the account already knows.
    life.machine = "n"
    let known = try #require(try life.context(root).machine(.device))
    try life.ask(.putDevice(known, name: "desk", seen: nil), as: root)
    try life.start("n", "i")
    #expect(life.spoken(.device) == "n.device")
    #expect(Set(life.registry.devices.map(\.value)).count == life.registry.devices.count)
    #expect(try life.ask(.devices, as: alice).filter { $0.contains("self=yes") }.count == 1)
  }
}

struct AccountTests {
  @Test func `an admin can set and clear the account`() throws {
    var life = Life()
    #expect(try life.ask(.account, as: alice) == ["OK \"\""])
    #expect(try life.ask(.setAccount("alice@example.org"), as: root) == ["OK"])
    #expect(try life.ask(.account, as: alice) == ["OK alice@example.org"])
    try life.ask(.setAccount(nil), as: root)
    #expect(try life.ask(.account, as: alice) == ["OK \"\""])
    #expect(
      life.told() == ["1 account changed value=alice@example.org > sharing", "2 account changed value=\"\" > sharing"])
  }

  @Test(arguments: [nil, "alice"] as [Text?])
  func `setting the same account again is no change`(name: Text?) throws {
    var life = Life()
    if let name { try life.ask(.setAccount(name), as: root) }
    #expect(try life.registry.answer(.setAccount(name), for: root).map(life.lines) == ["OK"])
  }

  @Test func `a dry run lists the devices that would leave the list, and the account, and changes nothing`() throws {
    var life = Life()
    try life.ask(.putDevice(given(1), name: "laptop", seen: nil), as: root)
    #expect(try life.ask(.setAccount("alice", dryRun: true), as: root) == ["OK 0"])
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.get(.device, app: nil), as: alice)
    let before = try life.ask(.devices, as: alice)
    #expect(try life.ask(.setAccount("alice", dryRun: true), as: root) == ["OK 0"])
    for name in ["bob", nil] as [Text?] {
      #expect(
        try life.ask(.setAccount(name, dryRun: true), as: root)
          == ["* g1 self=no name=laptop added=t1", "OK 1 previous=alice"])
    }
    #expect(try life.ask(.devices, as: alice) == before)
    #expect(try life.ask(.account, as: alice) == ["OK alice"])
  }

  @Test func `the first account keeps the listed devices`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    try life.ask(.putDevice(given(1), name: nil, seen: nil), as: root)
    try life.ask(.setAccount("alice"), as: root)
    #expect(try life.ask(.devices, as: alice).last == "OK 2")
  }

  @Test(arguments: ["bob", nil] as [Text?])
  func `a change or removal of the account removes the listed devices`(name: Text?) throws {
    var life = Life()
    try life.ask(.setAccount("alice"), as: root)
    for number in [1, 2] as [UInt64] { try life.ask(.putDevice(given(number), name: nil, seen: nil), as: root) }
    try life.ask(.get(.device, app: nil), as: alice)
    let last = life.registry.lastEvent
    try life.ask(.setAccount(name), as: root)
    #expect(try life.ask(.devices, as: alice) == ["* m.device self=yes added=t4", "OK 1"])
    #expect(
      life.told(from: last + 1) == [
        "\(last + 1) account changed value=\(name ?? "\"\"") > sharing",
        "\(last + 2) devices removed value=g2 > sharing",
        "\(last + 3) devices removed value=g1 > sharing",
      ])
  }

  @Test func `row 40b: names are compared by bytes`() throws {
    var life = Life()
    try life.ask(.setAccount("K"), as: root)
    #expect(try life.registry.answer(.setAccount("\u{212A}"), for: root) == nil)
  }
}
