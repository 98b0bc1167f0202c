import IdentityCore
import TestSupport
import Testing

/// Returns the record of a device.
private func record(
  _ device: UUID, _ generation: UInt32, _ counter: UInt64, suspect: Bool = false, message: Text = "AAAA"
) -> FleetRecord {
  FleetRecord(
    device: device, generation: generation, counter: counter, isGone: false, isSuspect: suspect, message: message)
}

/// Returns the tombstone of a device.
private func tombstone(_ device: UUID, _ generation: UInt32, _ counter: UInt64, message: Text = "BAAA") -> FleetRecord {
  FleetRecord(device: device, generation: generation, counter: counter, isGone: true, message: message)
}

/// The records and tombstones that the fleet's service keeps in the daemon.
struct FleetRecordTests {
  private static let conflict = Refusal.conflict("the stored message about the device outranks this one")

  @discardableResult
  private func put(
    _ record: FleetRecord, name: Text? = nil, replaces: UUID? = nil, _ life: inout Life
  ) throws -> String {
    try life.ask(.putRecord(record, name: name, seen: nil, replaces: replaces), as: root).joined()
  }

  // MARK: Order

  /// Messages about one device, in ascending order. The digest of a test is the message itself.
  private static let ascending = [
    record(given(1), 1, 1), record(given(1), 1, 2), record(given(1), 1, 2, message: "ABAA"),
    record(given(1), 1, .max), tombstone(given(1), 1, 0), tombstone(given(1), 1, 0, message: "CAAA"),
    tombstone(given(1), 1, 1 << 63), record(given(1), 2, 0), tombstone(given(1), 2, 0), record(given(1), .max, 0),
    // The first epoch, the second one, and one whose number fills three bytes.
    record(given(1), 1, 2, message: "aUYBAQAAAAEA"), record(given(1), 1, 3, message: "aUYBAQAAAAEA"),
    tombstone(given(1), 1, 1, message: "aUYBAgAAAAEA"), record(given(1), 1, 1, message: "aUYBAQAAAAIA"),
    // The version of the envelope makes no difference, also if it is a later one.
    record(given(1), 1, 2, message: "aUYCAQAAAAIA"), record(given(1), 1, 3, message: "aUYBAQAAAAIA"),
    record(given(1), 1, 4, message: "aUY+AQAAAAIA"),
    record(given(1), 1, 0, message: "aUYBAQABqoH/"),
  ]

  @Test(arguments: ascending.indices, ascending.indices)
  func `a message is stored only if it outranks the known one`(first: Int, second: Int) throws {
    var life = Life()
    let (known, new) = (Self.ascending[first], Self.ascending[second])
    let commands = [known, new].map {
      $0.isGone ? RegistryCommand.putTombstone($0) : .putRecord($0, name: "a", seen: nil)
    }
    try life.ask(commands[0], as: root)
    let before = life.registry
    if second < first {
      #expect(life.refusal(of: commands[1], as: root) == Self.conflict)
    } else if second == first {
      #expect(try life.ask(commands[1], as: root) == [new.isGone ? "OK" : "OK same"])
      #expect(life.registry == before)
    } else {
      try life.ask(commands[1], as: root)
      #expect(life.registry.records[given(1)] == new)
      #expect((life.registry.devices[given(1)] != nil) == !new.isGone)
    }
    #expect(
      life.registry.records.count == 1
        && life.registry.records.tombstones == (life.registry.records[given(1)]?.isGone == true ? 1 : 0))
  }

  @Test func `the loop answers what needs no digest, and leaves the rest to the writer`() throws {
    var life = Life()
    try put(record(given(1), 1, 5), &life)
    func answer(_ record: FleetRecord) throws(Refusal) -> [String]? {
      try life.registry.answer(.putRecord(record, name: nil, seen: nil), for: root).map(life.lines)
    }
    #expect(try answer(record(given(1), 1, 5)) == ["OK same"])
    #expect(throws: Self.conflict) { try answer(record(given(1), 1, 4)) }
    #expect(try answer(record(given(1), 1, 5, message: "ABAA")) == nil)
    #expect(try answer(record(given(1), 1, 6)) == nil)
    #expect(try answer(record(given(2), 1, 1)) == nil)
  }

  // MARK: List

  @Test func `a record, its device and their event belong to one decision`() throws {
    var life = Life()
    #expect(try put(record(given(1), 1, 1), name: "phone", &life) == "OK added")
    #expect(try put(record(given(1), 1, 2), name: "phone", &life) == "OK changed")
    #expect(life.told() == ["1 devices added value=g1 > sharing"])
    #expect(try put(record(given(1), 1, 3), name: "desk", &life) == "OK changed")
    #expect(try life.ask(.devices, as: alice) == ["* g1 self=no name=desk added=t1", "OK 1"])
    #expect(try life.ask(.putTombstone(tombstone(given(1), 1, 4)), as: root) == ["OK"])
    // A device that is not listed has a tombstone without an event.
    #expect(try life.ask(.putTombstone(tombstone(given(2), 3, 9)), as: root) == ["OK"])
    #expect(try put(record(given(1), 2, 5), &life) == "OK added")
    #expect(
      life.told(from: 2) == [
        "2 devices changed value=g1 name=desk > sharing", "3 devices removed value=g1 > sharing",
        "4 devices added value=g1 > sharing",
      ])
    #expect(
      life.answer("fleet records", as: root) == [
        "* \(given(1)) generation=2 counter=5 gone=no record=AAAA",
        "* \(given(2)) generation=3 counter=9 gone=yes record=BAAA", "OK 2",
      ])
  }

  @Test func `a device that is suspect is marked in the list, with an event for each change`() throws {
    var life = Life()
    try put(record(given(1), 1, 1, suspect: true), &life)
    #expect(try life.ask(.devices, as: alice) == ["* g1 self=no added=t1 suspect=yes", "OK 1"])
    try put(record(given(1), 1, 2, suspect: true), &life)
    try put(record(given(1), 1, 3), &life)
    #expect(
      life.told() == [
        "1 devices added value=g1 > sharing", "2 devices changed value=g1 suspect=yes > sharing",
        "3 devices changed value=g1 suspect=no > sharing",
      ])
    #expect(try life.ask(.devices, as: alice) == ["* g1 self=no added=t1", "OK 1"])
  }

  @Test func `a renewed device takes its place with one event`() throws {
    var life = Life()
    try put(record(given(1), 1, 1), name: "phone", &life)
    try put(record(given(2), 1, 1), &life)
    #expect(try put(record(given(3), 1, 2), name: "phone", replaces: given(1), &life) == "OK changed")
    #expect(
      try life.ask(.devices, as: alice).dropLast() == ["* g3 self=no name=phone added=t1", "* g2 self=no added=t2"])
    #expect(life.told(from: 3) == ["3 devices replaced value=g3 previous=g1 > sharing"])
    #expect(try life.ask(.putTombstone(tombstone(given(1), 1, 3)), as: root) == ["OK"])
    // Both are listed, as after the record came first.
    #expect(try put(record(given(3), 1, 3), replaces: given(2), &life) == "OK changed")
    #expect(life.told(from: 4) == ["4 devices removed value=g2 > sharing"])
    // The former identifier is unknown here.
    #expect(try put(record(given(4), 1, 3), replaces: given(9), &life) == "OK added")
    try life.ask(.get(.device, app: nil), as: alice)
    let own = try #require(life.registry[.device]?.value)
    let command = RegistryCommand.putRecord(record(given(5), 1, 1), name: nil, seen: nil, replaces: own)
    #expect(life.refusal(of: command, as: root) == .conflict("this device is in the list under its present identifier"))
  }

  @Test func `this device stays in its list, keeps its name, and remembers its generation`() throws {
    var life = Life()
    try life.ask(.nameDevice("desk"), as: root)
    let own = try #require(life.registry[.device]?.value)
    #expect(try put(record(own, 3, 1), name: "old", &life) == "OK changed")
    #expect(life.registry.devices[own]?.name == "desk")
    #expect(life.registry.fleet == FleetStanding(counter: 0, generation: 3))
    let opened = life.answer("fleet open run=40414243444546474849\(String(repeating: "0", count: 12))", as: root)
    #expect(opened.last?.contains(" generation=3 counter=0 ") == true)
    #expect(try life.ask(.putTombstone(tombstone(own, 4, 2)), as: root) == ["OK"])
    #expect(life.registry.devices[own] != nil && life.registry.fleet?.generation == 4)
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.setAccount(nil), as: root)
    // The message is sealed for the account that this device has left. The generation outlasts it.
    #expect(life.registry.records.count == 0 && life.registry.fleet?.generation == 4)
  }

  @Test func `the first account keeps the messages, and another account or none ends them`() throws {
    for (next, isKept) in [("alice", true), ("bob", false), (nil, false)] as [(Text?, Bool)] {
      var life = Life()
      try put(record(given(1), 1, 1), &life)
      try life.ask(.setAccount("alice"), as: root)
      try life.ask(.putTombstone(tombstone(given(2), 1, 1)), as: root)
      try life.ask(.setAccount(next), as: root)
      #expect(life.registry.records.count == (isKept ? 2 : 0))
      #expect(life.registry.records.tombstones == (isKept ? 1 : 0))
    }
  }

  @Test func `a device that an admin forgot keeps its record, so that the service learns of the removal`() throws {
    var life = Life()
    try put(record(given(1), 1, 1), &life)
    try life.ask(.forgetDevice(given(1)), as: root)
    #expect(life.registry.devices[given(1)] == nil && life.registry.records[given(1)] == record(given(1), 1, 1))
    #expect(try put(record(given(1), 1, 1), &life) == "OK same")
    #expect(life.registry.devices[given(1)] == nil)
  }

  // MARK: Bounds

  @Test func `records and tombstones are limited, but not for known devices and this one`() throws {
    var life = Life()
    try life.ask(.get(.device, app: nil), as: alice)
    let own = try #require(life.registry[.device]?.value)
    let most = UInt64(Bound.devices)
    life.take(
      (1...most).flatMap { number in
        [
          .fleetRecorded(record(given(number), 1, 1)),
          .fleetRecorded(tombstone(UUID(high: 1, low: number), 1, 1)),
        ]
      })
    let full = Refusal.limit("16384 records or 32768 messages of the fleet are kept, which is the limit")
    #expect(life.refusal(of: .putRecord(record(given(60_000), 1, 1), name: nil, seen: nil), as: root) == full)
    let kept = Refusal.limit("16384 tombstones or 32768 messages of the fleet are kept, which is the limit")
    #expect(life.refusal(of: .putTombstone(tombstone(given(60_000), 1, 1)), as: root) == kept)
    #expect(try life.ask(.putTombstone(tombstone(given(1), 1, 1)), as: root) == ["OK"])
    #expect(life.registry.records.tombstones == Bound.devices + 1)
    // A tombstone more, so a record less.
    #expect(life.refusal(of: .putRecord(record(given(60_000), 1, 1), name: nil, seen: nil), as: root) == full)
    #expect(try put(record(own, 1, 1), &life) == "OK changed")
    #expect(life.registry.records.count == 2 * Bound.devices + 1)
  }

  @Test func `pages have the order of the identifiers, and none is left out or shown twice`() throws {
    var life = Life()
    for number in [7, 3, 200, 1, 9] as [UInt64] { try put(record(given(number), 1, 1), &life) }
    var shown: [UUID] = []
    while true {
      let reply = try #require(try life.registry.answer(.records(after: shown.last, limit: 2), for: root))
      let page = try reply.allParts().compactMap { if case .word(.uuid(let device)) = $0 { device } else { nil } }
      if page.isEmpty { break }
      #expect(page.count <= 2)
      shown += page
    }
    #expect(shown == [1, 3, 7, 9, 200].map { given($0) })
  }

  // MARK: Backup

  @Test func `a restored message never goes below a stored one, and the list follows`() throws {
    var life = Life()
    for number in 1...4 as ClosedRange<UInt64> { try put(record(given(number), 1, 5), &life) }
    try life.ask(.putTombstone(tombstone(given(4), 1, 6)), as: root)
    let backup = life.backup()
    try put(record(given(1), 1, 6), &life)
    try life.ask(.putTombstone(tombstone(given(2), 1, 6)), as: root)
    try life.ask(.setAccount("alice"), as: root)
    try life.ask(.setAccount(nil), as: root)
    try put(record(given(1), 1, 6), &life)
    try life.ask(.putTombstone(tombstone(given(2), 1, 6)), as: root)
    try put(record(given(4), 1, 5), &life)
    #expect(
      try life.restore(backup) == [
        "* device unknown", "* devices added value=g3", "* devices removed value=g4", "OK 3",
      ])
    let records = life.registry.records
    #expect(records[given(1)]?.counter == 6 && records[given(2)]?.isGone == true)
    #expect(records[given(3)] == record(given(3), 1, 5) && records[given(4)]?.isGone == true)
    #expect(life.registry.devices.map(\.value) == [given(1), given(3)])
    var other = Life()
    try other.ask(.setAccount("bob"), as: root)
    var foreign = backup
    foreign.account = "alice"
    try other.restore(foreign)
    #expect(other.registry.account == "alice" && other.registry.records.count == 4)
    foreign.isFromHere = false
    var stranger = Life()
    try stranger.ask(.setAccount("bob"), as: root)
    try stranger.restore(foreign)
    #expect(stranger.registry.account == "bob" && stranger.registry.records.count == 0)
  }

  @Test func `a device that joined again in the backup comes back over a tombstone`() throws {
    var life = Life()
    try put(record(given(1), 2, 5), name: "phone", &life)
    let backup = life.backup()
    var other = Life()
    try other.ask(.putTombstone(tombstone(given(1), 1, 9)), as: root)
    try other.restore(backup)
    #expect(other.registry.devices[given(1)]?.name == "phone" && other.registry.records[given(1)]?.generation == 2)
  }

  @Test func `a restore does not undo a removal whose tombstone is not written yet`() throws {
    var life = Life()
    try put(record(given(1), 1, 5), &life)
    let backup = life.backup()
    try life.ask(.forgetDevice(given(1)), as: root)
    try life.restore(backup)
    #expect(life.registry.devices[given(1)] == nil)
    #expect(life.registry.records[given(1)] == record(given(1), 1, 5))
  }

  // MARK: Requests

  @Test(arguments: [
    "generation=1 counter=1", "record=AAAA", "generation=1 record=AAAA", "counter=1 record=AAAA", "suspect=yes",
    "replaces=55555555-5555-4555-8555-000000000002", "generation=4294967296 counter=1 record=AAAA",
    "generation=-1 counter=1 record=AAAA", "generation=1 counter=18446744073709551616 record=AAAA",
    "generation=1 counter=x record=AAAA", "generation=1 counter=1 record=AAA", "generation=1 counter=1 record=\"\"",
    "generation=1 counter=1 record=AB==", "generation=1 counter=1 record=AAB=", "generation=1 counter=1 record=A===",
    "generation=1 counter=1 record=AA=A", "generation=1 counter=1 record=AA-A",
    "generation=1 counter=1 record=AAAA suspect=perhaps",
    "generation=1 counter=1 record=AAAA replaces=55555555-5555-4555-8555-000000000001",
  ])
  func `a wrong message is a bad argument, and changes nothing`(attributes: String) {
    var life = Life()
    let answer = life.answer("devices put 55555555-5555-4555-8555-000000000001 \(attributes)", as: root)
    #expect(answer[0].hasPrefix("ERR bad-argument "), "\(answer)")
    #expect(life.registry == Registry())
  }

  @Test func `a message has at most 4,016 bytes, and a counter 64 bits`() throws {
    var life = Life()
    let line = "devices put \(given(1)) generation=4294967295 counter=18446744073709551615 record="
    let longest = String(repeating: "AAAA", count: 1_338) + "AAA="
    #expect(life.answer(line + longest.dropLast(4) + "AAAA", as: root) == ["ERR limit a record has at most 4016 bytes"])
    #expect(life.answer(line + longest, as: root) == ["OK added"])
    #expect(life.answer("fleet records", as: root)[0].contains(" counter=18446744073709551615 gone=no record=AAAA"))
    #expect(life.answer("fleet records after=\(given(1))", as: root) == ["OK 0"])
    #expect(life.answer("fleet records after=x", as: root)[0].hasPrefix("ERR invalid-uuid "))
    #expect(life.answer("fleet records limit=0", as: root)[0].hasPrefix("ERR bad-argument "))
  }
}
