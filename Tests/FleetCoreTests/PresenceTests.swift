import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import TestSupport
import Testing

/// Transcripts of presences, which are never stored.
struct PresenceTests {
  private let account: AccountID

  init() throws { account = try Conversation().account.id }

  private func presence(
    _ talk: Conversation, _ place: Int, _ counter: UInt64, state: UInt8 = 1, run: UInt64 = 1, by author: Int? = nil,
    signer: Int? = nil, epoch: UInt32 = 1
  ) throws -> Input {
    let author = author ?? place
    var fields = Fields()
    fields[.signingKey] = talk.speakers[signer ?? author].keys.signingKey.bytes
    fields[.state] = [state]
    let topic = MessageTopic.presence(account, talk.speakers[place].tag)
    let message = try talk.message(.presence, place, counter, author, signer: signer, run: run, fields, epoch: epoch)
    return .arrived(topic, .message(message), isRetained: false)
  }

  private func question(_ talk: Conversation, by place: Int) throws -> Input {
    var fields = Fields()
    fields[.signingKey] = talk.speakers[place].keys.signingKey.bytes
    return .arrived(.who(account), .message(try talk.message(.who, place, 0, place, fields)), isRetained: false)
  }

  /// Returns a live device that knows two others.
  private func talk() throws -> Conversation {
    var talk = try Conversation(settings: Settings())
    _ = try talk.settle([talk.record(1, 1), talk.record(2, 1)])
    return talk
  }

  @Test func `a device has a will, asks who is connected, and tells that it is`() throws {
    var talk = try Conversation(settings: Settings())
    let known = [try talk.record(1, 1)]
    talk.tell(.started(.member(talk.membership(), Roster([talk.speakers[1].tag: known[0]]))))
    #expect(talk.tell(.woke(.connect)) == ["will presence of 0 exactly(8589934591)", "connect"])
    var live = try Conversation(settings: Settings())
    // The others know the device before it tells anything.
    let actions = try live.becomeLive(known, shown: known)
    #expect(actions.contains("subscribe presences") && actions.contains("subscribe who"))
    #expect(!actions.contains { $0.hasPrefix("announce") })
    live.tell(.woke(.change))
    let written = live.tell(.wrote(live.speakers[0].tag, try live.record(0, 1)))
    #expect(
      written.contains("publish 0 record 1")
        && written.suffix(2) == ["wake presence 0...2000", "announce who exactly(0)"])
    #expect(
      live.tell(.woke(.presence)) == [
        "wake refill(FleetCore.Allowances.Purpose.presence) 5000...5000",
        "announce presence of 0 here exactly(4294967297)",
      ])
    #expect(live.tell(.askWho) == ["announce who exactly(0)"])
  }

  @Test func `devices see each other come and go`() throws {
    for seed in 0..<UInt64(Trial.rounds(20, long: 2_000)) {
      var fleet = try PlayedFleet(seed: seed, devices: 4)
      for device in 0..<4 { fleet.start(device) }
      fleet.run(for: 30_000)
      func seen() -> [Set<Int>] {
        fleet.devices.map { device in
          Set(fleet.devices.indices.filter { device.fleet.present.contains(fleet.devices[$0].disk.tag) })
        }
      }
      #expect(seen() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]], "\(fleet.story(of: seed))")
      fleet.kill(3)
      fleet.run(for: 100)
      #expect(seen().prefix(3) == [[1, 2], [0, 2], [0, 1]], "\(fleet.story(of: seed))")
      fleet.start(3)
      fleet.run(for: 30_000)
      #expect(seen() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]], "\(fleet.story(of: seed))")
    }
  }

  @Test func `a question is answered once, after a moment`() throws {
    var talk = try talk()
    talk.tell(.woke(.presence))
    #expect(talk.tell(try question(talk, by: 1)) == ["wake presence 0...2000"])
    #expect(talk.tell(try question(talk, by: 2)).isEmpty)
    #expect(talk.tell(.woke(.presence)) == ["announce presence of 0 here exactly(4294967298)"])
    #expect(talk.tell(try question(talk, by: 0)).isEmpty)
  }

  @Test func `devices are here until they are gone, or the connection ends`() throws {
    var talk = try talk()
    let (one, two) = (talk.speakers[1].tag, talk.speakers[2].tag)
    #expect(talk.tell(try presence(talk, 1, 1)).isEmpty)
    #expect(talk.tell(try presence(talk, 2, 1)).isEmpty)
    #expect(talk.fleet.present == [one, two])
    talk.tell(try presence(talk, 2, 2, state: 0))
    #expect(talk.fleet.present == [one])
    // Repeated by the broker.
    talk.tell(try presence(talk, 2, 1))
    #expect(talk.fleet.present == [one])
    // The next run writes its record before it tells, but the broker may show the presence first. The run before tells
    // nothing more.
    #expect(talk.tell(try presence(talk, 2, 1, run: 2)) == [])
    #expect(talk.fleet.present == [one])
    try talk.hear(talk.record(2, 2, run: 2))
    #expect(talk.fleet.present == [one, two])
    #expect(talk.tell(try presence(talk, 2, 9, state: 0)) == [])
    #expect(talk.fleet.present == [one, two])
    try talk.hear(talk.tombstone(2, 3, by: 1))
    #expect(talk.fleet.present == [one])
    talk.tell(.disconnected)
    #expect(talk.fleet.present.isEmpty)
  }

  @Test func `no device tells for another one, and the past tells nothing`() throws {
    var talk = try talk()
    #expect(talk.tell(try presence(talk, 1, 1, by: 2)) == ["dropped author"])
    let removed = try presence(talk, 2, 1)
    try talk.hear(talk.tombstone(2, 3, by: 1))
    #expect(talk.tell(removed) == ["dropped author"])
    let topic = MessageTopic.presence(account, talk.speakers[1].tag)
    #expect(talk.tell(try presence(talk, 1, 1, epoch: 0x1_0001)) == ["dropped epoch"])
    guard case .arrived(_, let shown, _) = try presence(talk, 1, 1) else { throw Rejection.kind }
    #expect(talk.tell(.arrived(topic, shown, isRetained: true)).isEmpty)
    #expect(talk.tell(.arrived(topic, .rejected(.seal), isRetained: false)) == ["dropped seal"])
    #expect(talk.fleet.present.isEmpty)
  }

  @Test func `a presence before the record of its device counts with the record, if one key signed both`() throws {
    for (signer, isHere) in [(2, true), (1, false)] {
      var talk = try Conversation(settings: Settings())
      _ = try talk.settle([talk.record(1, 1)])
      talk.tell(.woke(.presence))
      #expect(talk.tell(try presence(talk, 2, 1, signer: signer)) == [])
      #expect(try talk.tell(question(talk, by: 2)) == ["wake presence 0...2000"])
      #expect(talk.fleet.present.isEmpty)
      try talk.hear(talk.record(2, 1))
      #expect(talk.fleet.present.contains(talk.speakers[2].tag) == isHere)
    }
  }

  @Test func `an answer cannot be repeated after the next question`() throws {
    var talk = try talk()
    let (here, gone) = (try presence(talk, 1, 1), try presence(talk, 1, 2, state: 0))
    for answer in [here, gone] { talk.tell(answer) }
    talk.tell(.askWho)
    talk.tell(here)
    #expect(talk.fleet.present.isEmpty)
    talk.tell(try presence(talk, 1, 3))
    #expect(talk.fleet.present == [talk.speakers[1].tag])
  }

  @Test func `questions without end are answered within an allowance`() throws {
    var talk = try talk()
    let told = try (0..<20).map { _ in
      try talk.tell(question(talk, by: 1)) + talk.tell(.woke(.presence))
    }
    #expect(told.count { $0.last?.hasPrefix("announce") == true } == 10)
    #expect(told.last == ["wake presence 1000...2000"])
    talk.tell(.woke(.refill(.presence)))
    #expect(talk.tell(.woke(.presence)).last?.hasPrefix("announce") == true)
  }

  @Test func `in an account of more than 64 devices, none tells`() throws {
    var talk = try Conversation(others: 65, settings: Settings())
    let known = try (1...64).map { try talk.record($0, 1) }
    _ = try talk.becomeLive(known, shown: known)
    #expect(talk.tell(.woke(.presence)).last == "announce presence of 0 here exactly(4294967297)")
    talk.tell(try presence(talk, 1, 1))
    #expect(talk.fleet.present.count == 1)
    try talk.hear(talk.record(65, 1))
    #expect(talk.fleet.present.isEmpty)
    #expect(talk.tell(.woke(.presence)).isEmpty)
    #expect(talk.tell(.askWho).isEmpty)
    #expect(talk.tell(try presence(talk, 1, 1)).isEmpty)
    #expect(talk.fleet.present.isEmpty)
    talk.tell(.disconnected)
    #expect(talk.tell(.woke(.connect)) == ["connect"])
  }
}
