import FleetCore
import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Transcripts of rotations.
struct RotationTests {
  @Test func `the removals are stored before the key is made, and removed devices get none`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    let number = talk.number(0)
    let removed = talk.speakers[2].tag
    #expect(talk.tell(.rotate(without: [removed])) == ["write 2 tombstone exactly(2)"])
    #expect(talk.tell(.rotate(without: [])) == ["not rotated"])
    #expect(
      talk.tell(.wrote(removed, try talk.tombstone(2, 2, by: 0))) == [
        "publish 2 tombstone 2", "wake posting 2 500...500", "make epoch \(number)",
      ])
    #expect(talk.tell(.rotate(without: [])) == ["not rotated"])
    #expect(
      talk.tell(.entered(Epoch(number: number, former: 1, made: number))) == [
        "wake change 0...0", "wake reread 0...1000", "wake grant 1 0...500",
      ])
    #expect(talk.tell(.woke(.grant(removed))).isEmpty)
    #expect(talk.fleet.rotations == 1)
  }

  @Test func `a key is handed to a device until the device writes with it`() throws {
    var (talk, number) = try Conversation.rotated()
    let tag = talk.speakers[1].tag
    #expect(talk.tell(.woke(.grant(tag))).last == "grant 1 \(number) in 1")
    guard case .arrived(_, .message(let message), _) = try talk.grant(to: 1, number, by: 0) else {
      throw Rejection.kind
    }
    #expect(talk.tell(.wrote(tag, message)) == ["publish grant of 1 grant 0", "wake grant 1 500...500"])
    #expect(talk.tell(.woke(.grant(tag))) == ["wake grant 1 10000...10000", "subscribe grant of 1"])
    let topic = MessageTopic.grant(talk.account.id, tag)
    #expect(talk.tell(.subscribed(.only(topic))) == ["wake grant 1 2000...2000"])
    #expect(talk.tell(.arrived(topic, .nothing, isRetained: true)) == ["wake grant 1 0...5000"])
    #expect(talk.tell(.arrived(topic, .message(message), isRetained: false)) == ["cancel grant 1"])
    #expect(talk.tell(try talk.grant(to: 1, number - 1, by: 2)) == ["wake grant 1 0...5000"])
    // The same key from another member is as good.
    #expect(talk.tell(try talk.grant(to: 1, number, by: 2)) == ["cancel grant 1"])
    #expect(!talk.fleet.isSettled)
    #expect(
      try talk.hear(talk.record(1, 2, epoch: number)) == ["store 1 record 2"])
    #expect(talk.tell(try talk.grant(to: 1, number - 1, by: 2)).isEmpty)
    #expect(talk.tell(.notWritten(try draft(talk))) == ["wake grant 2 1000...2000"])
  }

  @Test func `a key that was outdated while it was sealed is followed by the present one`() throws {
    var (talk, number) = try Conversation.rotated()
    let tag = talk.speakers[1].tag
    #expect(talk.tell(.woke(.grant(tag))).last == "grant 1 \(number) in 1")
    guard case .arrived(_, .message(let message), _) = try talk.grant(to: 1, number, by: 0) else {
      throw Rejection.kind
    }
    let made = try #require(talk.tell(.rotate(without: [])).last?.firstMatch(of: /^make epoch (\d+)$/)).1
    let next = try #require(UInt32(made))
    talk.tell(.entered(Epoch(number: next, former: number, made: next)))
    #expect(talk.tell(.wrote(tag, message)) == ["wake grant 1 1000...2000"])
    #expect(talk.tell(.woke(.grant(tag))).last == "grant 1 \(next) in 1")
  }

  @Test func `the keys of a large account are handed out within ten seconds, to the latest records first`() throws {
    let others = 500
    var talk = try Conversation(others: others)
    let records = try (1...others).map { try talk.record($0, 1, time: Int64($0)) }
    _ = try talk.becomeLive(records, shown: records)
    let number = talk.number(0)
    _ = talk.tell(.rotate(without: []))
    var clock: [DeviceTag: Int] = [:]
    for action in talk.fleet.take(.entered(Epoch(number: number, former: 1, made: number))) {
      if case .wake(.grant(let tag), let delay) = action { clock[tag] = delay.upperBound }
    }
    #expect(clock.count == others)
    let first = Set(talk.speakers.suffix(100).map(\.tag))
    #expect(Set(clock.filter { $0.value < 1_000 }.keys) == first)
    // Each second of the clock, the allowance is filled.
    var (granted, second) = (0, 0)
    while granted < others {
      for (tag, time) in clock.sorted(by: { $0.value < $1.value }) where time < (second + 1) * 1_000 {
        clock[tag] = nil
        for action in talk.fleet.take(.woke(.grant(tag))) {
          if case .grant = action { granted += 1 }
          if case .wake(.grant(tag), let delay) = action { clock[tag] = time + delay.upperBound }
        }
      }
      _ = talk.tell(.woke(.refill(.grant)))
      second += 1
      try #require(second <= 10, "\(granted) of \(others)")
    }
  }

  @Test func `a device whose key takes no box gets none until its record changes`() throws {
    var (talk, number) = try Conversation.rotated()
    let tag = talk.speakers[1].tag
    #expect(talk.tell(.woke(.grant(tag))).last == "grant 1 \(number) in 1")
    #expect(talk.tell(.notSealable(tag)) == ["cancel grant 1"])
    #expect(talk.tell(.woke(.grant(tag))).isEmpty)
    #expect(talk.tell(.arrived(.grant(talk.account.id, tag), .nothing, isRetained: true)).isEmpty)
    // Another record may have another key. The device has left and joined again, in an epoch before this device's.
    try talk.hear(talk.tombstone(1, 2, by: 1, epoch: number))
    try talk.hear(talk.record(1, 1, generation: 2, epoch: number))
    let made = try #require(talk.tell(.rotate(without: [])).last?.firstMatch(of: /^make epoch (\d+)$/)).1
    let next = try #require(UInt32(made))
    #expect(talk.tell(.entered(Epoch(number: next, former: number, made: next))).contains("wake grant 1 0...500"))
    #expect(talk.tell(.woke(.grant(tag))).last == "grant 1 \(next) in \(number)")
  }

  /// Returns the draft of a key for the second device.
  private func draft(_ talk: Conversation) throws -> Draft {
    var talk = talk
    for action in talk.fleet.take(.woke(.grant(talk.speakers[2].tag))) {
      if case .grant(let draft, let boxKey) = action {
        #expect(boxKey == talk.speakers[2].keys.boxKey)
        return draft
      }
    }
    throw Rejection.kind
  }

  @Test func `a device that was killed goes on handing out keys`() throws {
    var talk = try Conversation()
    let number = talk.number(0)
    let known = [try talk.record(1, 1), try talk.record(2, 2, epoch: number)]
    let roster = Roster([talk.speakers[1].tag: known[0], talk.speakers[2].tag: known[1]])
    let membership = Membership(
      account: talk.account.id, device: talk.speakers[0].device, tag: talk.speakers[0].tag, generation: 1,
      run: Run(high: 1, low: 1), pastRuns: [], description: talk.description(0, "name"),
      epoch: Epoch(number: number, former: 1, made: number))
    _ = try talk.becomeLive(as: membership, roster)
    #expect(talk.tell(.woke(.grant(talk.speakers[1].tag))).last == "grant 1 \(number) in 1")
    #expect(talk.tell(.woke(.grant(talk.speakers[2].tag))).isEmpty)
  }

  @Test func `after a rotation, nothing of an earlier epoch is stored`() throws {
    var (talk, number) = try Conversation.rotated(without: 2)
    let other = try talk.record(1, 9)
    #expect(try talk.show(other).isEmpty)
    #expect(try talk.show(talk.tombstone(1, 9, by: 2)).isEmpty)
    #expect(try talk.show(talk.record(1, 1, generation: 9, by: 1)).isEmpty)
    #expect(try talk.show(talk.record(2, 9)) == ["wake posting 2 0...5000"])
    // Once the device has written with the new key, what it or a thief wrote before is replaced.
    #expect(try talk.hear(talk.record(1, 2, epoch: number)).last == "store 1 record 2")
    #expect(try talk.show(talk.tombstone(1, 9, by: 2)) == ["wake posting 1 0...5000"])
    #expect(try talk.show(other).isEmpty)
    #expect(talk.tell(talk.posting(1)).contains("publish 1 record 2"))
  }

  @Test func `a removal of an earlier epoch is believed from a member of the present one`() throws {
    var (talk, number) = try Conversation.rotated()
    let tombstone = try talk.tombstone(2, 2, by: 1)
    #expect(try talk.show(tombstone).isEmpty)
    try talk.hear(talk.record(1, 2, epoch: number))
    #expect(try talk.show(tombstone).last == "store 2 tombstone 2")
    // And from the device itself, which left before it learned of the rotation.
    var (second, _) = try Conversation.rotated()
    #expect(try second.show(second.tombstone(2, 2, by: 2, Removal(.left))).last == "store 2 tombstone 2")
  }

  @Test func `a removal that the rotating device missed is written again by its author`() throws {
    var talk = try Conversation()
    let number = talk.number(1)
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    talk.tell(.forgotten(talk.speakers[2].tag))
    talk.tell(.wrote(talk.speakers[2].tag, try talk.tombstone(2, 2, by: 0)))
    #expect(talk.tell(try talk.grant(to: 0, number, by: 1)) == ["take epoch \(number), contested"])
    talk.tell(.entered(Epoch(number: number, former: 1)))
    #expect(
      try talk.hear(talk.record(2, 2, epoch: number)).suffix(2) == ["store 2 record 2", "write 2 tombstone exactly(3)"])
  }

  @Test func `a key is taken from a member that is not removed, if the number is greater`() throws {
    var talk = try Conversation()
    let next = talk.number(1)
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    #expect(talk.tell(try talk.grant(to: 0, 1, by: 1)).isEmpty)
    #expect(talk.tell(try talk.grant(to: 0, next, by: 1)) == ["take epoch \(next)"])
    #expect(
      talk.tell(.entered(Epoch(number: next, former: 1))) == [
        "wake change 0...0", "wake reread 0...1000",
      ])
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 10)")
    // The seal of the former epoch does not prove that a device is a member now.
    #expect(talk.tell(try talk.grant(to: 0, next + 0x1_0000, by: 2)).isEmpty)
    #expect(
      talk.tell(try talk.grant(to: 0, next + 0x1_0000, by: 2, epoch: next)) == ["take epoch \(next + 0x1_0000)"])
    var other = try Conversation()
    _ = try other.settle([other.tombstone(1, 1, by: 2), other.record(2, 1)])
    #expect(other.tell(try other.grant(to: 0, next, by: 1)) == ["dropped author"])
    let topic = MessageTopic.grant(other.account.id, other.speakers[0].tag)
    #expect(other.tell(.arrived(topic, .rejected(.seal), isRetained: true)) == ["dropped seal"])
  }

  @Test func `a reading waits for the key that it finds first`() throws {
    var talk = try Conversation()
    let next = talk.number(1)
    talk.tell(.started(.member(talk.membership(), Roster())))
    talk.tell(.woke(.connect))
    #expect(talk.tell(.connected).first == "subscribe grant of 0")
    talk.tell(.subscribed(.only(.grant(talk.account.id, talk.speakers[0].tag))))
    talk.tell(try talk.grant(to: 0, next, by: 1))
    #expect(talk.tell(.woke(.quiet)) == ["cancel longestReading", "wake quiet 10000...10000"])
    var second = talk
    #expect(talk.tell(.entered(Epoch(number: next, former: 1))) == ["wake quiet 0...0"])
    #expect(talk.tell(.woke(.quiet)).contains("subscribe 0"))
    #expect(second.tell(.notEntered(next)) == ["wake quiet 0...0"])
    #expect(second.tell(.woke(.quiet)).contains("subscribe 0"))
  }

  @Test func `a reading waits for a key once only`() throws {
    var talk = try Conversation()
    let next = talk.number(1)
    talk.tell(.started(.member(talk.membership(), Roster())))
    talk.tell(.woke(.connect))
    talk.tell(.connected)
    talk.tell(.subscribed(.only(.grant(talk.account.id, talk.speakers[0].tag))))
    talk.tell(try talk.grant(to: 0, next, by: 1))
    talk.tell(.woke(.quiet))
    talk.tell(try talk.grant(to: 0, next, by: 1))
    #expect(talk.tell(.woke(.quiet)).contains("subscribe 0"))
  }

  @Test func `a key that could not be stored is no obstacle to another rotation`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1)])
    talk.tell(.rotate(without: []))
    #expect(talk.tell(.notEntered(talk.number(0))) == ["not rotated", "subscribe grant of 0"])
    #expect(talk.tell(.rotate(without: [])) == ["make epoch \(talk.number(0))"])
  }

  @Test func `the keys of a few other rotations are learned, and no more`() throws {
    var (talk, number) = try Conversation.rotated()
    let learned = try (1...20).map { try talk.tell(talk.grant(to: 0, number - $0, by: 1)).count }
    #expect(learned == (1...20).map { $0 <= 8 ? 1 : 0 })
  }

  @Test func `a record that was written during a rotation is written again`() throws {
    var talk = try Conversation()
    let next = talk.number(1)
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    talk.tell(.described(talk.description(0, "a")))
    talk.tell(.woke(.change))
    talk.tell(.forgotten(talk.speakers[2].tag))
    talk.tell(.entered(Epoch(number: next, former: 1)))
    #expect(talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 11))).last == "wake change 200...200")
    #expect(
      talk.tell(.wrote(talk.speakers[2].tag, try talk.tombstone(2, 2, by: 0))) == ["write 2 tombstone exactly(2)"])
  }

  @Test func `of two rotations, the winner learns the other key and moves the devices that took it`() throws {
    var (talk, number) = try Conversation.rotated()
    #expect(talk.tell(try talk.grant(to: 0, number - 1, by: 1)) == ["learn epoch \(number - 1)"])
    #expect(talk.tell(try talk.grant(to: 0, number - 1, by: 1)).isEmpty)
    #expect(talk.tell(.learned) == ["wake reread 0...1000"])
    #expect(try talk.show(talk.record(2, 2, epoch: number - 1)) == ["wake grant 2 0...200"])
    #expect(talk.tell(.woke(.grant(talk.speakers[2].tag))).last == "grant 2 \(number) in \(number - 1)")
    // A device that is not known to this one may be the thief's.
    var (other, _) = try Conversation.rotated(without: 1)
    #expect(other.tell(try other.grant(to: 0, number - 1, by: 1)) == ["dropped author"])
  }

  @Test func `the loser takes the other key, and rotates again if it has removed a device`() throws {
    for removed in [nil, 2] {
      var (talk, number) = try Conversation.rotated(without: removed)
      let winner = number + 1
      #expect(
        talk.tell(try talk.grant(to: 0, winner, by: 1, epoch: number)) == [
          "take epoch \(winner)\(removed == nil ? "" : ", contested")"
        ])
      let epoch = Epoch(number: winner, former: number, made: number, isContested: removed != nil)
      let actions = talk.tell(.entered(epoch))
      #expect(actions.contains("write 2 tombstone exactly(3)") == (removed != nil))
      guard removed != nil else { continue }
      let tombstone = try talk.tombstone(2, 3, by: 0, epoch: winner)
      let again = talk.tell(.wrote(talk.speakers[2].tag, tombstone))
      #expect(again.last == "make epoch \(number + 0x1_0000)")
    }
  }

  @Test func `removals that a device cannot read that was away are written again`() throws {
    for isAway in [false, true] {
      var talk = try Conversation(others: 3)
      let next = talk.number(1)
      _ = try talk.settle([
        talk.record(1, 1), talk.record(2, 1), isAway ? talk.record(3, 1) : talk.tombstone(3, 1, by: 1),
      ])
      talk.tell(.entered(Epoch(number: next, former: 1)))
      try talk.hear(talk.record(1, 2, epoch: next))
      #expect(try talk.hear(talk.tombstone(2, 2, by: 1, epoch: next)).last == "store 2 tombstone 2")
      // The key of this removal is one that a device does not have which is still in the first epoch.
      let actions = talk.tell(.entered(Epoch(number: next + 0x1_0000, former: next, made: next + 0x1_0000)))
      #expect(actions.contains("wake grant 3 0...500") == isAway)
      #expect(actions.contains("write 2 tombstone exactly(3)") == isAway)
    }
  }

  @Test func `a key names the removed devices, which then get none from a device that has not heard of it`() throws {
    var talk = try Conversation(others: 3)
    let next = talk.number(1)
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1), talk.record(3, 1)])
    let taken = talk.fleet.take(try talk.grant(to: 0, next, by: 1, without: [2]))
    guard case .takeEpoch(let epoch, _)? = taken.last else {
      Issue.record("no key is taken")
      return
    }
    #expect(epoch == Epoch(number: next, former: 1, removed: [talk.speakers[2].device]))
    #expect(Epoch(bytes: epoch.bytes) == epoch)
    talk.tell(.entered(epoch))
    try talk.hear(talk.record(1, 2, epoch: next))
    // The removed device has no say, and its key is handed to the others only.
    #expect(talk.tell(try talk.grant(to: 0, next + 0x1_0000, by: 2, epoch: next)) == ["dropped author"])
    let again = talk.fleet.take(.rotate(without: []))
    guard case .makeEpoch(let made)? = again.last else {
      Issue.record("no key is made")
      return
    }
    #expect(made.removed == [talk.speakers[2].device])
    let actions = talk.tell(.entered(made))
    #expect(actions.contains("wake grant 3 0...500") && !actions.contains("wake grant 2 0...500"))
    guard case .grant(let draft, _)? = talk.fleet.take(.woke(.grant(talk.speakers[3].tag))).last else {
      Issue.record("no key is handed out")
      return
    }
    #expect(draft.fields[.removed] == talk.speakers[2].device.bytes)
    // Unless it has joined again since.
    var second = talk
    try second.hear(second.record(2, 1, generation: 2, epoch: made.number))
    guard case .makeEpoch(let third)? = second.fleet.take(.rotate(without: [])).last else {
      Issue.record("no key is made")
      return
    }
    #expect(third.removed.isEmpty)
    #expect(second.tell(.entered(third)).contains("wake grant 2 0...500"))
  }

  @Test func `a stored epoch is read as it was written, and other bytes are none`() throws {
    let epoch = Epoch(
      number: 0x2_0001, former: 0x1_0001, made: 0x1_0001, isContested: true, removed: [UUID(high: 1, low: 2)])
    #expect(epoch.bytes.count == 29 && Epoch(bytes: epoch.bytes) == epoch)
    #expect(Epoch(bytes: Epoch.first.bytes) == .first)
    for length in 0..<29 where length != 13 { #expect(Epoch(bytes: Array(epoch.bytes.prefix(length))) == nil) }
    for (place, byte) in [(12, UInt8(2)), (1, 0)] {
      var changed = epoch.bytes
      changed[place] = byte
      if place == 1 { changed[3] = 0 }
      #expect(Epoch(bytes: changed) == nil)
    }
    #expect(Epoch(bytes: epoch.bytes + epoch.bytes.suffix(16)) == nil)
  }

  @Test func `a device that is not connected does not rotate`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1)])
    talk.tell(.disconnected)
    #expect(talk.tell(.rotate(without: [])) == ["not rotated"])
  }

  @Test func `a later epoch outranks everything before`() throws {
    let talk = try Conversation()
    let ordered = [
      try talk.tombstone(1, 9, generation: 9, by: 2), try talk.record(1, 1, epoch: 0x1_0001),
      try talk.tombstone(1, 1, by: 2, epoch: 0x1_0001), try talk.record(1, 1, epoch: 0x1_0002),
    ].map(Precedence.init)
    #expect(ordered == ordered.sorted())
  }
}
