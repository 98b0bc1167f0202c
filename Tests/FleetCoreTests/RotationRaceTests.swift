import FleetCore
import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Rotations in a conversation.
extension Conversation {
  /// Returns the number of the first epoch that a device makes.
  func number(_ place: Int) -> UInt32 { 0x1_ffff - UInt32(truncatingIfNeeded: speakers[place].tag.high >> 48) }

  func grant(
    to place: Int, _ number: UInt32, by author: Int, epoch: UInt32 = 1, without removed: [Int] = []
  ) throws -> Input {
    var fields = Fields()
    fields[.signingKey] = speakers[author].keys.signingKey.bytes
    fields[.epoch] = number.bigEndianBytes
    fields[.sealedBox] = [UInt8](repeating: 1, count: 80)
    if !removed.isEmpty { fields[.removed] = removed.flatMap { speakers[$0].device.bytes } }
    let message = try message(.grant, place, 0, author, fields, epoch: epoch)
    return .arrived(.grant(account.id, speakers[place].tag), .message(message), isRetained: true)
  }

  /// Returns a live device that knows two others, and the number of the epoch that it has made.
  static func rotated(without removed: Int? = nil) throws -> (talk: Conversation, number: UInt32) {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    let number = talk.number(0)
    if let removed {
      talk.tell(.rotate(without: [talk.speakers[removed].tag]))
      talk.tell(.wrote(talk.speakers[removed].tag, try talk.tombstone(removed, 2, by: 0)))
    } else {
      #expect(talk.tell(.rotate(without: [])) == ["make epoch \(number)"])
    }
    talk.tell(.entered(Epoch(number: number, former: 1, made: number)))
    return (talk, number)
  }
}

/// Transcripts of rotations that meet another rotation, a failure, or a member gone bad.
struct RotationRaceTests {
  /// Returns the epoch that a device takes or makes.
  private func epoch(_ actions: [Action]) throws -> Epoch {
    for action in actions {
      switch action {
      case .takeEpoch(let epoch, _), .makeEpoch(let epoch): return epoch
      default: break
      }
    }
    throw Rejection.epoch
  }

  @Test func `a key is contested exactly if it does not name a device that this one removed`() throws {
    for (count, names) in [(1, false), (1, true), (2, false), (2, true), (3, false)] {
      var (talk, number) = try Conversation.rotated(without: 2)
      // The other device rotated as often as it liked before it heard of the removal.
      let winner = UInt32(count) << 16 | 0xffff
      let actions = talk.fleet.take(try talk.grant(to: 0, winner, by: 1, epoch: number, without: names ? [2] : []))
      let taken = try epoch(actions)
      #expect(taken.isContested == !names)
      #expect(taken.removed == [talk.speakers[2].device])
      #expect(talk.tell(.entered(taken)).contains("write 2 tombstone exactly(3)") == !names)
    }
    // Also if this device has not rotated itself.
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    talk.tell(.forgotten(talk.speakers[2].tag))
    talk.tell(.wrote(talk.speakers[2].tag, try talk.tombstone(2, 2, by: 0)))
    #expect(try epoch(talk.fleet.take(talk.grant(to: 0, talk.number(1), by: 1))).isContested)
  }

  @Test func `a key with a full list of removed devices is not contested`() throws {
    var (talk, number) = try Conversation.rotated(without: 2)
    let full = try talk.grant(
      to: 0, 0x1_ffff, by: 1, epoch: number, without: [Int](repeating: 1, count: 64))
    #expect(try !epoch(talk.fleet.take(full)).isContested)
  }

  @Test func `a key is not taken while this device makes its own, and asked for again afterwards`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    talk.tell(.rotate(without: [talk.speakers[2].tag]))
    let tombstone = try talk.tombstone(2, 2, by: 0)
    let making = talk.fleet.take(.wrote(talk.speakers[2].tag, tombstone))
    #expect(talk.tell(try talk.grant(to: 0, 0x1_ffff, by: 1)).isEmpty)
    var second = talk
    let made = try epoch(making)
    #expect(talk.tell(.entered(made)).contains("wake reread 0...1000"))
    #expect(talk.tell(.woke(.reread)).first == "subscribe grant of 0")
    #expect(
      talk.tell(try talk.grant(to: 0, 0x1_ffff, by: 1, epoch: made.number)) == ["take epoch \(0x1_ffff), contested"])
    // A failure names its epoch, and does not end the wait for another one.
    #expect(second.tell(.notEntered(made.number + 1)).isEmpty)
    #expect(second.tell(.rotate(without: [])) == ["not rotated"])
    #expect(second.tell(.notEntered(made.number)) == ["not rotated", "subscribe grant of 0"])
    #expect(second.tell(try second.grant(to: 0, 0x1_ffff, by: 1)) == ["take epoch \(0x1_ffff), contested"])
  }

  @Test func `a rotation waits for a key that is being stored, and follows it`() throws {
    for isStored in [true, false] {
      var talk = try Conversation()
      _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
      let taken = try epoch(talk.fleet.take(talk.grant(to: 0, 0x1_ffff, by: 1)))
      // One key at a time.
      #expect(talk.tell(try talk.grant(to: 0, 0x2_ffff, by: 1)).isEmpty)
      talk.tell(.rotate(without: [talk.speakers[2].tag]))
      let wrote = talk.tell(.wrote(talk.speakers[2].tag, try talk.tombstone(2, 2, by: 0)))
      #expect(!wrote.contains { $0.hasPrefix("make") })
      #expect(!talk.fleet.isSettled)
      let actions = talk.fleet.take(isStored ? .entered(taken) : .notEntered(taken.number))
      let made = try epoch(actions)
      #expect(made.number == talk.number(0) + (isStored ? 0x1_0000 : 0))
      #expect(made.removed == [talk.speakers[2].device])
    }
  }

  @Test func `a contested rotation that cannot be stored is tried again`() throws {
    var (talk, number) = try Conversation.rotated(without: 2)
    talk.tell(.entered(try epoch(talk.fleet.take(talk.grant(to: 0, 0x1_ffff, by: 1, epoch: number)))))
    let tombstone = try talk.tombstone(2, 3, by: 0, epoch: 0x1_ffff)
    let made = try epoch(talk.fleet.take(.wrote(talk.speakers[2].tag, tombstone)))
    #expect(talk.tell(.notEntered(made.number)) == ["wake rotation 1000...5000", "subscribe grant of 0"])
    // Also after a key of another device that cannot be stored.
    let other = try epoch(talk.fleet.take(talk.grant(to: 0, 0x2_ffff, by: 1, epoch: 0x1_ffff, without: [2])))
    #expect(talk.tell(.woke(.rotation)).isEmpty)
    #expect(talk.tell(.notEntered(other.number)) == ["wake rotation 1000...5000"])
    #expect(talk.tell(.woke(.rotation)) == ["make epoch \(made.number)"])
  }

  @Test func `a device that joined again is not locked out by the list of a former key`() throws {
    var talk = try Conversation(others: 3)
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1), talk.record(3, 1)])
    talk.tell(.rotate(without: [talk.speakers[2].tag]))
    let made = try epoch(talk.fleet.take(.wrote(talk.speakers[2].tag, talk.tombstone(2, 2, by: 0))))
    talk.tell(.entered(made))
    try talk.hear(talk.record(1, 2, epoch: made.number))
    try talk.hear(talk.record(2, 1, generation: 2, epoch: made.number))
    let next = made.number + 0x1_0000
    let taken = try epoch(talk.fleet.take(talk.grant(to: 0, next, by: 1, epoch: made.number)))
    #expect(taken == Epoch(number: next, former: made.number, made: made.number))
    talk.tell(.entered(taken))
    // Its key is believed.
    #expect(
      talk.tell(try talk.grant(to: 0, next + 0x1_0000, by: 2, epoch: next)) == ["take epoch \(next + 0x1_0000)"])
  }

  @Test func `a member that has gone bad cannot use up the numbers of epochs with one message`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    for number: UInt32 in [0xffff_0000, 0x41_0000, 2, 0xffff] {
      #expect(talk.tell(try talk.grant(to: 0, number, by: 1)) == ["dropped epoch"])
    }
    #expect(talk.tell(try talk.grant(to: 0, 0x40_ffff, by: 1)) == ["take epoch \(0x40_ffff)"])
  }

  @Test func `a device sees that no other one is in its epoch`() throws {
    var (talk, number) = try Conversation.rotated()
    #expect(talk.fleet.isAloneInEpoch)
    try talk.hear(talk.record(1, 2, epoch: number))
    #expect(!talk.fleet.isAloneInEpoch)
    #expect(try !Conversation().fleet.isAloneInEpoch)
  }

  @Test func `after the last epoch, a contested key leaves no rotation planned`() throws {
    var talk = try Conversation()
    let membership = Membership(
      account: talk.account.id, device: talk.speakers[0].device, tag: talk.speakers[0].tag, generation: 1,
      run: Run(high: 1, low: 1), pastRuns: [], description: talk.description(0, "name"),
      epoch: Epoch(number: 0xffff_0001, former: 0xfffe_0001, isContested: true))
    _ = try talk.becomeLive(as: membership, Roster())
    talk.tell(.woke(.change))
    try talk.tell(.wrote(talk.speakers[0].tag, talk.record(0, 10, epoch: 0xffff_0001)))
    #expect(talk.tell(.rotate(without: [])) == ["not rotated"])
    try talk.show(talk.record(0, 10, epoch: 0xffff_0001))
    #expect(talk.fleet.isSettled)
  }

  @Test func `a device that leaves makes no key`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    talk.tell(.rotate(without: [talk.speakers[2].tag]))
    talk.tell(.leave)
    talk.tell(.wrote(talk.speakers[2].tag, try talk.tombstone(2, 2, by: 0)))
    let left = talk.tell(.wrote(talk.speakers[0].tag, try talk.tombstone(0, 11, by: 0, Removal(.left))))
    #expect(!left.contains { $0.hasPrefix("make") })
  }

  @Test func `the names beside a key begin with the own removals, and are cut once`() throws {
    let others = (0..<70).map { UUID(high: UInt64($0 + 1), low: 1) }
    var talk = try Conversation()
    let membership = Membership(
      account: talk.account.id, device: talk.speakers[0].device, tag: talk.speakers[0].tag, generation: 1,
      run: Run(high: 1, low: 1), pastRuns: [], description: talk.description(0, "name"),
      epoch: Epoch(number: 0x1_0001, former: 1, removed: others))
    let record = try talk.record(2, 1, epoch: 0x1_0001)
    _ = try talk.becomeLive(as: membership, Roster([talk.speakers[2].tag: record]))
    talk.tell(.rotate(without: [talk.speakers[2].tag]))
    let tombstone = try talk.tombstone(2, 2, by: 0, epoch: 0x1_0001)
    let made = try epoch(talk.fleet.take(.wrote(talk.speakers[2].tag, tombstone)))
    #expect(made.removed == [talk.speakers[2].device] + others.prefix(63))
    #expect(Epoch(bytes: made.bytes) == made)
  }

  @Test func `keys have an allowance of their own`() throws {
    let others = 102
    var talk = try Conversation(others: others)
    _ = try talk.settle((1...others).map { try talk.record($0, 1) })
    talk.tell(.rotate(without: []))
    talk.tell(.entered(Epoch(number: talk.number(0), former: 1, made: talk.number(0))))
    let handed = (1...others).map { talk.tell(.woke(.grant(talk.speakers[$0].tag))) }
    #expect(handed.count { $0.last?.hasPrefix("grant") == true } == 100)
    #expect(handed[0].first == "wake refill(FleetCore.Allowances.Purpose.grant) 1000...1000")
    #expect(handed[others - 1] == ["wake grant \(others) 1000...2000"])
    talk.tell(.woke(.refill(.grant)))
    #expect(talk.tell(.woke(.grant(talk.speakers[others].tag))).last?.hasPrefix("grant") == true)
  }

  @Test func `a key that could not be stored for reading is learned when it is shown again`() throws {
    var (talk, number) = try Conversation.rotated()
    let key = try talk.grant(to: 0, number - 1, by: 1)
    #expect(talk.tell(key) == ["learn epoch \(number - 1)"])
    #expect(talk.tell(.notLearned(number - 1)).isEmpty)
    #expect(talk.tell(key) == ["learn epoch \(number - 1)"])
  }

  @Test func `the keys with the greatest numbers are learned, and the stored ones count`() throws {
    var talk = try Conversation()
    let membership = Membership(
      account: talk.account.id, device: talk.speakers[0].device, tag: talk.speakers[0].tag, generation: 1,
      run: Run(high: 1, low: 1), pastRuns: [], description: talk.description(0, "name"),
      epoch: Epoch(number: 0x1_1000, former: 1, made: 0x1_1000), learned: Set(0x1_0101...0x1_0108))
    let record = try talk.record(1, 1)
    _ = try talk.becomeLive(as: membership, Roster([talk.speakers[1].tag: record]))
    #expect(talk.tell(try talk.grant(to: 0, 0x1_0100, by: 1)).isEmpty)
    #expect(talk.tell(try talk.grant(to: 0, 0x1_0108, by: 1)).isEmpty)
    #expect(talk.tell(try talk.grant(to: 0, 0x1_0109, by: 1)) == ["learn epoch \(0x1_0109)"])
    #expect(talk.tell(try talk.grant(to: 0, 0x1_0101, by: 1)).isEmpty)
  }
}
