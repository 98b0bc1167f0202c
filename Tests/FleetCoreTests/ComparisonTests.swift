import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Transcripts of the comparison between devices.
struct ComparisonTests {
  /// Returns a live device that knows another one.
  private func talk() throws -> Conversation {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 1)])
    talk.showsComparison = true
    return talk
  }

  /// Returns the summary of a device that knows these messages.
  private func digest(
    _ talk: Conversation, by place: Int, of known: [SignedMessage], epoch: UInt32 = 1, signer: Int? = nil
  ) throws -> Input {
    var digest = RosterDigest()
    for message in known { digest.toggle(message, at: talk.account.tag(of: message.body.subject)) }
    var fields = Fields()
    fields[.signingKey] = talk.speakers[signer ?? place].keys.signingKey.bytes
    fields[.digest] = digest.bytes
    let message = try talk.message(.digest, place, 1, place, signer: signer, fields, epoch: epoch)
    return .arrived(.digest(talk.account.id), .message(message), isRetained: false)
  }

  private let quick = "wake digest 18000...24000"

  @Test func `after a change, a device tells what it knows, soon and for more than ten minutes`() throws {
    var talk = try talk()
    #expect(try talk.hear(talk.record(1, 2)).filter { $0.contains("digest") } == [])
    #expect(try talk.hear(talk.tombstone(1, 3, by: 1)).contains("wake digest 12000...18000"))
    #expect(talk.tell(.woke(.digest)) == [quick])
    try talk.hear(talk.record(2, 1))
    var waits: [String] = []
    for number in 1...36 {
      let actions = talk.tell(.woke(.digest))
      #expect(actions.last == "announce digests exactly(\(number))")
      waits += actions.dropLast()
    }
    #expect(waits == Array(repeating: quick, count: 33) + Array(repeating: "wake digest 700000...850000", count: 3))
    #expect(12_000 + 33 * 18_000 > 600_000)
  }

  @Test func `a device is silent if another one has told the same since its last turn`() throws {
    var talk = try talk()
    let (own, other) = (try talk.record(0, 10), try talk.record(1, 1))
    #expect(talk.tell(.woke(.digest)).contains("announce digests exactly(1)"))
    #expect(try talk.tell(digest(talk, by: 1, of: [own, other])) == [])
    #expect(!talk.tell(.woke(.digest)).contains { $0.hasPrefix("announce") })
    #expect(talk.tell(.woke(.digest)).contains("announce digests exactly(2)"))
  }

  @Test func `another summary is a reason to read once, and to answer if that does not help`() throws {
    var talk = try talk()
    let own = try talk.record(0, 10)
    let other = try digest(talk, by: 1, of: [own, talk.record(1, 1), talk.record(2, 1)])
    #expect(talk.tell(other).contains("subscribe roster"))
    // Not while the reading lasts, and not once more.
    #expect(talk.tell(other) == [])
    talk.tell(.subscribed(.roster(talk.account.id)))
    try talk.show(own, talk.record(1, 1))
    #expect(talk.tell(.woke(.quiet)).contains("wake digest 0...2000"))
    #expect(talk.tell(other) == [])
    #expect(talk.tell(.woke(.digest)).contains("announce digests exactly(1)"))
    // The broker may know more by now.
    #expect(talk.tell(other).contains("subscribe roster"))
    talk.tell(.subscribed(.roster(talk.account.id)))
    talk.tell(.woke(.quiet))
    // A reading that helps needs no answer.
    try talk.hear(talk.record(1, 2))
    #expect(
      try talk.tell(digest(talk, by: 1, of: [own, talk.record(1, 2), talk.record(2, 1)])).contains("subscribe roster"))
    talk.tell(.subscribed(.roster(talk.account.id)))
    try talk.show(own, talk.record(1, 2), talk.record(2, 1))
    #expect(!talk.tell(.woke(.quiet)).contains { $0.contains("digest") })
  }

  @Test func `what differs after such a reading is published again, at most sixteen messages of others`() throws {
    let others = 40
    var talk = try Conversation(others: others)
    let known = try (1...others).map { try talk.record($0, 1, time: Int64($0)) }
    _ = try talk.settle(known)
    let own = try talk.record(0, 10)
    func repeated(_ differing: [SignedMessage]) throws -> [String] {
      #expect(try talk.tell(digest(talk, by: 1, of: differing)).contains("subscribe roster"))
      talk.tell(.subscribed(.roster(talk.account.id)))
      for message in [own] + known { try talk.show(message) }
      return talk.tell(.woke(.quiet)).filter { $0.hasPrefix("wake posting") }
    }
    // Only the bucket of the second device differs.
    let bucket = talk.speakers[1].tag.bucket
    let places = talk.speakers.indices.filter { talk.speakers[$0].tag.bucket == bucket }
    let expected = places.map { $0 == 0 ? "wake posting 0 0...2000" : "wake posting \($0) 5000...10000" }
    #expect(try Set(repeated([own, talk.record(1, 2)] + known.dropFirst())) == Set(expected))
    for place in places { try talk.hear(place == 0 ? own : known[place - 1]) }
    let all = try repeated([])
    #expect(all.contains("wake posting 0 0...2000") && all.count == 17, "\(all)")
    // The latest ones of the others.
    #expect(all.allSatisfy { $0.contains(" 0 0...") || (25...40).contains(Int($0.split(separator: " ")[2]) ?? 0) })
    // The author of a message was faster.
    #expect(try talk.hear(known[39]).contains("cancel posting 40"))
    // The next ones have their turn, until the allowance is used up.
    for message in [own] + known { try talk.hear(message) }
    let next = try repeated([talk.record(1, 3)])
    #expect(next.contains("wake posting 0 0...2000") && next.count == 34 - expected.count - 17, "\(next)")
    #expect(Set(next).intersection(all) == ["wake posting 0 0...2000"])
    for message in [own] + known { try talk.hear(message) }
    #expect(try repeated([talk.record(1, 4)]).isEmpty)
  }

  @Test func `a message of an earlier epoch is not published again`() throws {
    var (talk, number) = try Conversation.rotated()
    talk.showsComparison = true
    let own = try talk.record(0, 11, epoch: number)
    try talk.hear(talk.record(1, 2, epoch: number))
    try talk.show(own)
    // The other device is away, and has a record of the first epoch.
    #expect(try talk.tell(digest(talk, by: 1, of: [own], epoch: number)).contains("subscribe roster"))
    talk.tell(.subscribed(.roster(talk.account.id)))
    try talk.show(own, talk.record(1, 2, epoch: number), talk.record(2, 1))
    let actions = talk.tell(.woke(.quiet))
    #expect(!actions.contains { $0.hasPrefix("wake posting 2") }, "\(actions)")
  }

  @Test func `a message that such a reading does not show is put back without a further wait`() throws {
    var talk = try talk()
    let own = try talk.record(0, 10)
    talk.tell(try digest(talk, by: 2, of: [own]))
    // From a device whose record the broker shows only afterwards: the device has done nothing wrong.
    #expect(try talk.tell(digest(talk, by: 2, of: [own])) == [])
    try talk.hear(talk.record(2, 1))
    #expect(try talk.tell(digest(talk, by: 2, of: [own, talk.record(2, 1)])).contains("subscribe roster"))
    talk.tell(.subscribed(.roster(talk.account.id)))
    try talk.show(own, talk.record(2, 1))
    #expect(talk.tell(.woke(.quiet)).contains("wake posting 1 0...5000"))
  }

  @Test func `no stranger and no other epoch makes a device read, and a member does so a few times`() throws {
    var talk = try talk()
    #expect(try talk.tell(digest(talk, by: 1, of: [], signer: 2)) == ["dropped author"])
    #expect(try talk.tell(digest(talk, by: 1, of: [], epoch: 2)) == [])
    try talk.hear(talk.tombstone(2, 3, by: 1))
    #expect(try talk.tell(digest(talk, by: 2, of: [])) == ["dropped author"], "from a removed device")
    var readings = 0
    for counter in 1...20 as ClosedRange<UInt64> {
      let actions = talk.tell(try digest(talk, by: 1, of: [talk.record(2, counter)]))
      if actions.contains("subscribe roster") { readings += 1 }
      talk.tell(.subscribed(.roster(talk.account.id)))
      talk.tell(.woke(.quiet))
    }
    #expect(readings == 6)
  }
}
