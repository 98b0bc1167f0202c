import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import Testing

/// Transcripts of messages that are believed or not, and of removals.
struct BeliefTests {
  @Test func `the order is generation, removal, counter`() throws {
    let talk = try Conversation()
    let ordered = [
      try talk.record(1, 1), try talk.record(1, 9), try talk.tombstone(1, 2, by: 2), try talk.tombstone(1, 3, by: 2),
      try talk.record(1, 1, generation: 2), try talk.tombstone(1, 1, generation: 2, by: 1),
    ].map(Precedence.init)
    #expect(ordered == ordered.sorted())
    let first = Precedence(try talk.record(1, 1, run: 1))
    let second = Precedence(try talk.record(1, 1, run: 2))
    #expect((first < second) != (second < first))
  }

  @Test func `a record is stored if it outranks the known one`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 2)])
    #expect(try talk.hear(talk.record(1, 3)) == ["store 1 record 3"])
    #expect(try talk.hear(talk.record(1, 3)).isEmpty)
    #expect(try talk.hear(talk.record(2, 1)) == ["store 2 record 1"])
  }

  @Test func `no device speaks for another one`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 2)])
    #expect(try talk.hear(talk.record(1, 3, by: 2)) == ["dropped author", "wake posting 1 0...5000"])
    #expect(try talk.hear(talk.record(0, 11, by: 2)) == ["dropped author", "wake posting 0 0...200"])
  }

  @Test func `a device cannot change its key without joining again`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 2)])
    var body = try talk.record(1, 3).body
    body.fields = talk.description(2, "thief").fields
    let forged = try #require(
      talk.account.firstEpoch.seal(.record, body, on: talk.topic(1), by: talk.speakers[2].keys))
    #expect(try talk.hear(forged) == ["dropped author", "wake posting 1 0...5000"])
    body.generation = 2
    let joined = try #require(
      talk.account.firstEpoch.seal(.record, body, on: talk.topic(1), by: talk.speakers[2].keys))
    #expect(try talk.hear(joined).last == "store 1 record 3")
  }

  @Test func `a removal at this device becomes a tombstone above the known record`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 7)])
    #expect(talk.tell(.forgotten(talk.speakers[1].tag)) == ["write 1 tombstone exactly(8)"])
    #expect(talk.tell(.forgotten(talk.speakers[1].tag)).isEmpty)
    let tombstone = try talk.tombstone(1, 8, by: 0)
    #expect(
      talk.tell(.wrote(talk.speakers[1].tag, tombstone)) == ["publish 1 tombstone 8", "wake posting 1 500...500"])
    // A record that the device has published meanwhile is replaced.
    #expect(try talk.show(talk.record(1, 9)) == ["wake posting 1 0...5000"])
    #expect(talk.tell(.forgotten(talk.speakers[2].tag)).isEmpty)
  }

  @Test func `a tombstone that could not be stored is written again`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 7)])
    guard case .write(let draft)? = talk.fleet.take(.forgotten(talk.speakers[1].tag)).last else {
      Issue.record("nothing is written")
      return
    }
    #expect(talk.tell(.notWritten(draft)) == ["wake removal 1 1000...5000"])
    #expect(talk.tell(.woke(.removal(talk.speakers[1].tag))) == ["write 1 tombstone exactly(8)"])
  }

  @Test func `a removed device stops, and stays silent`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    _ = try talk.show(talk.record(2, 1))
    let actions = try talk.hear(talk.tombstone(0, 11, by: 2))
    #expect(actions.first == "store 0 tombstone 11")
    #expect(actions.suffix(2) == ["disconnect", "ended removed by 2"])
    #expect(talk.fleet.phase == .ended)
    #expect(talk.tell(.woke(.heartbeat)).isEmpty)
    #expect(talk.tell(.described(talk.description(0, "x"))).isEmpty)
  }

  @Test func `a removal that another member has signed is carried out, and does not prove its author`() throws {
    for (author, removal, end) in [
      (2, Removal(.removed), "ended removed by 2, unproven"), (0, Removal(.left), "ended left by 0, unproven"),
      // Only the device itself can leave.
      (1, Removal(.left), "ended removed by 1"),
    ] {
      var talk = try Conversation()
      _ = try talk.settle()
      _ = try talk.show(talk.record(1, 1))
      _ = try talk.show(talk.record(2, 1))
      #expect(try talk.hear(talk.tombstone(0, 11, by: author, signer: 1, removal)).last == end)
    }
  }

  @Test func `a device that was away hears of its removal before it publishes`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster([talk.speakers[0].tag: try talk.record(0, 1)]))))
    talk.tell(.woke(.connect))
    talk.tell(.connected)
    let actions = try talk.show(talk.tombstone(0, 2, by: 1))
    #expect(actions.last == "ended removed by 1, unproven", "it does not know that device")
    #expect(!actions.contains { $0.hasPrefix("publish") || $0.hasPrefix("write") })
  }

  @Test func `a device that has joined again is not removed by an earlier tombstone`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(generation: 2), Roster())))
    talk.tell(.woke(.connect))
    talk.tell(.connected)
    #expect(try talk.show(talk.tombstone(0, 2, by: 1)).last == "store 0 tombstone 2")
    #expect(try talk.show(talk.tombstone(0, 2, by: 1)).isEmpty)
    #expect(talk.fleet.phase == .reading(attempt: 0))
  }

  @Test func `another key of a device is named, unless the device was removed, or this one was away`() throws {
    func record(_ talk: Conversation, _ counter: UInt64, generation: UInt32) throws -> SignedMessage {
      try talk.message(
        .record, 1, counter, 1, signer: 2, talk.description(2, "name").fields, generation: generation)
    }
    for (readings, isLive) in [(2, true), (3, true), (3, false)] {
      var talk = try Conversation()
      let known = try talk.record(1, 1)
      _ = try talk.settle([known])
      for _ in 1..<readings {
        talk.tell(.woke(.reread))
        talk.tell(.subscribed(.roster(talk.account.id)))
        try talk.show(talk.record(0, 10), known)
        talk.tell(.woke(.quiet))
      }
      let other = try record(talk, 1, generation: 2)
      let actions = isLive ? try talk.hear(other) : try talk.show(other)
      #expect(actions.contains("store 1 record 1"))
      let isNamed = isLive && readings == 3
      #expect(actions.contains { $0.hasPrefix("rekeyed") } == isNamed, "\(actions)")
      #expect(talk.fleet.otherKeys == (isNamed ? [other] : []))
      // It has this key from now on, and is named once.
      let next = try record(talk, 2, generation: 2)
      #expect(try !talk.hear(next).contains { $0.hasPrefix("rekeyed") })
      #expect(talk.fleet.otherKeys == (isNamed ? [next] : []))
      // A removal ends that, and the device joins anew.
      _ = try talk.hear(talk.tombstone(1, 3, generation: 2, by: 2))
      #expect(talk.fleet.otherKeys == [])
      #expect(try !talk.hear(talk.record(1, 1, generation: 3)).contains { $0.hasPrefix("rekeyed") })
      #expect(talk.fleet.otherKeys == [])
    }
  }

  @Test func `a removed device that was killed before it stopped stops at its next start`() throws {
    var talk = try Conversation()
    let tombstone = try talk.tombstone(0, 2, by: 1)
    #expect(try talk.becomeLive([tombstone]).last == "wake reread 15000...15000")
    // The broker has lost the tombstone, so the device puts it back first.
    #expect(talk.tell(talk.posting(0)).contains("publish 0 tombstone 2"))
    #expect(try talk.show(tombstone).last == "ended removed by 1, unproven")
  }

  @Test func `a removed device that was killed before it stopped ends also without a broker`() throws {
    for removal in [Removal(.removed), Removal(.left)] {
      var talk = try Conversation()
      let tombstone = try talk.tombstone(0, 2, by: removal.reason == .left ? 0 : 1, removal)
      #expect(
        talk.tell(.started(.member(talk.membership(), Roster([talk.speakers[0].tag: tombstone])))) == [
          "wake connect 0...5000", "wake leaving 75000...75000",
        ])
      talk.tell(.woke(.connect))
      #expect(
        talk.tell(.woke(.leaving)).suffix(2) == [
          "disconnect", removal.reason == .left ? "ended left by 0" : "ended removed by 1, unproven",
        ])
      #expect(talk.tell(.connected).isEmpty)
    }
  }

  @Test func `a tombstone of 400 days may be absent from the broker, and is removed there a month later`() throws {
    let day: Int64 = 86_400_000
    var talk = try Conversation()
    let tombstone = try talk.tombstone(1, 2, by: 2)
    _ = try talk.settle([tombstone])
    for (days, isAbsent) in [(400, false), (401, true), (429, true)] {
      talk.tell(.dated(Timestamp(milliseconds: Int64(days) * day + 1)))
      let actions = talk.tell(.heard(talk.speakers[1].tag, .nothing, isRetained: false))
      #expect(actions.isEmpty == isAbsent, "\(days)")
      #expect(try !talk.show(tombstone).contains("clear 1"), "\(days)")
    }
    talk.tell(.dated(Timestamp(milliseconds: 431 * day)))
    #expect(try talk.hear(tombstone).isEmpty)
    #expect(try talk.show(tombstone).last == "clear 1")
    talk.tell(.woke(.reread))
    talk.tell(.subscribed(.roster(talk.account.id)))
    #expect(!talk.tell(.woke(.quiet)).contains { $0.contains("posting 1") })
    // The device keeps it, so that a record of the removed device is put right.
    #expect(try talk.show(talk.record(1, 1)).contains("wake posting 1 0...5000"))
  }

  @Test func `a tombstone of any time is as old as its author says`() throws {
    var talk = try Conversation()
    var body = try talk.tombstone(1, 2, by: 2).body
    body.time = Timestamp(milliseconds: .min)
    let old = try #require(
      talk.account.firstEpoch.seal(.tombstone, body, on: talk.topic(1), by: talk.speakers[2].keys))
    body.time = Timestamp(milliseconds: .max)
    let young = try #require(
      talk.account.firstEpoch.seal(.tombstone, body, on: talk.topic(1), by: talk.speakers[2].keys))
    for (tombstone, isOld) in [(old, true), (young, false)] {
      talk = try Conversation()
      _ = try talk.settle([tombstone])
      talk.tell(.dated(Timestamp(milliseconds: 1)))
      #expect(try talk.show(tombstone).contains("clear 1") == isOld)
    }
  }

  @Test func `a machine in whose name another one has joined again ends`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    #expect(try talk.hear(talk.record(0, 1, generation: 2)).last == "ended(FleetCore.Ending.superseded)")
  }

  @Test func `a device that leaves waits until the broker shows its tombstone`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    #expect(talk.tell(.leave) == ["write 0 tombstone exactly(11)"])
    let tombstone = try talk.tombstone(0, 11, by: 0, Removal(.left))
    #expect(
      talk.tell(.wrote(talk.speakers[0].tag, tombstone)) == [
        "wake leaving 75000...75000", "publish 0 tombstone 11", "wake posting 0 500...500",
      ])
    #expect(talk.tell(.woke(.heartbeat)) == ["wake change 200...200"])
    #expect(talk.tell(.woke(.change)).isEmpty)
    #expect(try talk.hear(tombstone).isEmpty)
    #expect(try talk.show(tombstone).last == "ended left by 0")
  }

  @Test func `a device that leaves ends without a broker, too`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    talk.tell(.leave)
    talk.tell(.wrote(talk.speakers[0].tag, try talk.tombstone(0, 11, by: 0, Removal(.left))))
    #expect(talk.tell(.woke(.leaving)).last == "ended left by 0")
  }

  @Test func `a device that has published nothing leaves at once`() throws {
    var talk = try Conversation()
    _ = try talk.becomeLive()
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 0)")
    #expect(talk.tell(.leave).suffix(2) == ["disconnect", "ended left by 0"])
    #expect(talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 1))).isEmpty)

    // The tombstone of an earlier membership is no message of this one.
    var second = try Conversation()
    second.tell(
      .started(
        .member(
          second.membership(generation: 2), Roster([second.speakers[0].tag: try second.tombstone(0, 2, by: 1)]))))
    #expect(second.tell(.leave).last == "ended left by 0")
  }

  @Test func `a device that joined again and leaves before its record is written removes the earlier one`() throws {
    var talk = try Conversation()
    talk.tell(
      .started(.member(talk.membership(generation: 2), Roster([talk.speakers[0].tag: try talk.record(0, 4)]))))
    let drafts = talk.fleet.take(.leave).compactMap { action -> Draft? in
      if case .write(let draft) = action { draft } else { nil }
    }
    #expect(drafts.map(\.kind) == [.tombstone] && drafts.map(\.generation) == [2])
    talk.tell(
      .wrote(talk.speakers[0].tag, try talk.tombstone(0, 5, generation: 2, by: 0, Removal(.left))))
    #expect(talk.tell(.woke(.leaving)).last == "ended left by 0")
  }

  @Test func `a renewed identifier is a new record, and a tombstone that names it`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let next = talk.membership(1)
    #expect(
      talk.tell(.renewed(next)) == [
        "wake change 0...0", "wake changeRest 200...200", "write 0 tombstone exactly(11)",
      ])
    #expect(talk.tell(.woke(.change)).last == "write 1 record next(above: 0)")
    let tombstone = try talk.tombstone(0, 11, by: 1, Removal(.replaced, successor: talk.speakers[1].device))
    talk.tell(.wrote(talk.speakers[0].tag, tombstone))
    #expect(try talk.show(tombstone) == ["cancel posting 0"])
    #expect(talk.fleet.phase == .live)
  }

  @Test func `the tombstone of an earlier identifier is published before the record of the later one`() throws {
    var talk = try Conversation()
    let tombstone = try talk.tombstone(1, 6, by: 0, Removal(.replaced, successor: talk.speakers[0].device))
    let actions = try talk.becomeLive([tombstone], shown: [try talk.record(1, 5)])
    let places = ["publish 1 tombstone 6", "wake change 0...0"].map { actions.firstIndex(of: $0) }
    #expect(try #require(places[0]) < #require(places[1]), "\(actions)")
    // Nothing is published that the broker has.
    var other = try Conversation()
    #expect(try !other.becomeLive([tombstone], shown: [tombstone]).contains { $0.hasPrefix("publish ") })
  }

  @Test func `the roster has a bound, which never concerns known devices`() throws {
    let talk = try Conversation(others: 1)
    let record = try talk.record(1, 1)
    var full: [DeviceTag: SignedMessage] = [talk.speakers[1].tag: record]
    for number in 1..<UInt64(Roster.most) { full[DeviceTag(high: 0, low: number)] = record }
    let roster = Roster(full)
    #expect(roster.verdict(on: try talk.record(0, 1), at: talk.speakers[0].tag) == .beyondBound)
    #expect(roster.verdict(on: try talk.record(1, 2), at: talk.speakers[1].tag) == .higher)
    #expect(roster.verdict(on: try talk.tombstone(0, 2, by: 1), at: talk.speakers[0].tag) == .higher)

    // A member that adds and removes devices in turn leaves nothing but tombstones.
    let tombstone = try talk.tombstone(1, 1, by: 1)
    for number in 0..<UInt64(2 * Roster.most - 1) { full[DeviceTag(high: 0, low: number)] = tombstone }
    let removed = Roster(full)
    #expect(removed.devices == 1)
    #expect(removed.verdict(on: try talk.record(0, 1), at: talk.speakers[0].tag) == .beyondBound)
    #expect(removed.verdict(on: try talk.tombstone(0, 2, by: 1), at: talk.speakers[0].tag) == .beyondBound)
    #expect(removed.verdict(on: try talk.tombstone(1, 2, by: 0), at: talk.speakers[1].tag) == .higher)
  }
}
