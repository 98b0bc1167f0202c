import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import Testing

/// Transcripts of connections and readings.
struct ConnectionTests {
  @Test func `without an account, nothing is done`() throws {
    var talk = try Conversation()
    #expect(talk.tell(.started(.noAccount)).isEmpty)
    #expect(talk.tell(.reconsider).isEmpty)
    #expect(talk.fleet.phase == .noAccount)
  }

  @Test func `keys that are unavailable are looked for every half minute`() throws {
    var talk = try Conversation()
    #expect(talk.tell(.started(.noKeys)) == ["wake keys 30000...30000"])
    #expect(talk.tell(.woke(.keys)) == ["readKeys"])
  }

  @Test func `keys and the own topic are read before the roster, and the roster before anything is written`()
    throws
  {
    var talk = try Conversation()
    #expect(talk.tell(.started(.member(talk.membership(), Roster()))) == ["wake connect 0...5000"])
    #expect(talk.tell(.woke(.connect)) == ["connect"])
    #expect(talk.tell(.connected) == ["subscribe grant of 0", "wake acknowledgement 10000...10000"])
    #expect(
      talk.tell(.subscribed(.only(.grant(talk.account.id, talk.speakers[0].tag)))) == [
        "cancel acknowledgement", "wake quiet 300...300", "wake longestReading 10000...10000",
      ])
    #expect(
      talk.tell(.woke(.quiet)) == [
        "cancel quiet", "cancel longestReading", "subscribe 0", "wake acknowledgement 10000...10000",
      ])
    #expect(
      talk.tell(.subscribed(.only(talk.topic(0)))) == [
        "cancel acknowledgement", "wake quiet 300...300", "wake longestReading 10000...10000",
      ])
    #expect(
      talk.tell(.woke(.quiet)) == [
        "cancel quiet", "cancel longestReading", "subscribe roster", "wake acknowledgement 10000...10000",
      ])
    #expect(
      talk.tell(.subscribed(.roster(talk.account.id))) == [
        "cancel acknowledgement", "wake quiet 2000...2000", "wake longestReading 10000...10000",
      ])
    #expect(try talk.show(talk.record(1, 1)) == ["store 1 record 1", "wake quiet 2000...2000"])
    #expect(talk.fleet.phase == .reading(attempt: 0))
    #expect(
      talk.tell(.woke(.quiet)) == [
        "cancel quiet", "cancel longestReading", "wake reread 15000...15000", "wake change 0...0",
      ])
    #expect(talk.fleet.phase == .live)
    #expect(
      talk.tell(.woke(.change)) == [
        "wake refill(FleetCore.Allowances.Purpose.change) 1000...1000",
        "wake refill(FleetCore.Allowances.Purpose.lastingChange) 300000...300000", "write 0 record next(above: 0)",
      ])
  }

  @Test func `the roster is read again, soon and then every few hours`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    for wait in ["120000...120000", "17280000...25920000", "17280000...25920000"] {
      #expect(talk.tell(.woke(.reread)).prefix(2) == ["subscribe grant of 0", "subscribe roster"])
      talk.tell(.subscribed(.roster(talk.account.id)))
      try talk.show(talk.record(0, 10))
      #expect(talk.tell(.woke(.quiet)).last == "wake reread \(wait)")
    }
  }

  @Test func `other durations count from now on, and change nothing else`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let hour = 3_600_000
    #expect(talk.tell(.configured(Settings(heartbeat: hour))) == ["wake heartbeat 3240000...3960000"])
    #expect(talk.tell(.configured(Settings(heartbeat: hour, resync: hour))).isEmpty, "the first readings are to come")
    for wait in ["120000...120000", "2880000...4320000"] {
      talk.tell(.woke(.reread))
      talk.tell(.subscribed(.roster(talk.account.id)))
      try talk.show(talk.record(0, 10))
      #expect(talk.tell(.woke(.quiet)).last == "wake reread \(wait)")
    }
    #expect(
      talk.tell(.configured(Settings(heartbeat: hour, resync: 2 * hour))) == ["wake reread 5760000...8640000"])
    #expect(talk.fleet.phase == .live)
  }

  @Test func `a large roster is read in sixteen parts, beginning with the own one`() throws {
    var talk = try Conversation(others: 600)
    let known = try (1...600).map { try talk.record($0, 1) }
    talk.tell(
      .started(
        .member(
          talk.membership(), Roster(Dictionary(uniqueKeysWithValues: zip(talk.speakers.dropFirst().map(\.tag), known))))
      ))
    talk.tell(.woke(.connect))
    talk.findNoKey()
    talk.tell(.subscribed(.only(talk.topic(0))))
    let first = talk.speakers[0].tag.bucket
    for part in 0..<16 {
      let bucket = (first + UInt8(part)) & 15
      #expect(talk.tell(.woke(.quiet)).contains("subscribe bucket \(bucket)"))
      #expect(
        talk.tell(.subscribed(.bucket(talk.account.id, bucket)))[1]
          == (part < 15 ? "wake quiet 300...300" : "wake quiet 2000...2000"))
    }
    talk.tell(.woke(.quiet))
    #expect(talk.fleet.phase == .live)
  }

  @Test func `topics that a broker invents do not prolong a reading`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster())))
    talk.tell(.woke(.connect))
    talk.findNoKey()
    talk.tell(.subscribed(.only(talk.topic(0))))
    for number in 1...3 {
      let invented = DeviceTag(high: 0, low: UInt64(number))
      #expect(talk.tell(.heard(invented, .rejected(.seal), isRetained: true)) == ["dropped seal"])
      #expect(talk.tell(.heard(invented, .nothing, isRetained: true)).isEmpty)
    }
  }

  @Test func `a broker that never falls quiet does not hold up a reading`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster([talk.speakers[1].tag: try talk.record(1, 1)]))))
    talk.tell(.woke(.connect))
    talk.findNoKey()
    talk.tell(.subscribed(.only(talk.topic(0))))
    #expect(try talk.show(talk.record(1, 1)) == ["wake quiet 300...300"])
    // The silence of this step would otherwise end the next one.
    #expect(
      talk.tell(.woke(.longestReading)) == [
        "cancel quiet", "cancel longestReading", "subscribe roster", "wake acknowledgement 10000...10000",
      ])
    talk.tell(.subscribed(.roster(talk.account.id)))
    try talk.show(talk.record(1, 1))
    talk.tell(.woke(.longestReading))
    #expect(talk.fleet.phase == .live)
  }

  @Test func `attempts to connect are further and further apart`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster())))
    var waits: [[String]] = []
    for _ in 0..<8 {
      talk.tell(.woke(.connect))
      waits.append(talk.tell(.disconnected))
    }
    #expect(
      waits.map { $0.joined() } == [10, 20, 30, 30, 30, 30, 30, 30].map { "wake connect 0...\($0 * 1_000)" })
    #expect(talk.tell(.reconsider) == ["wake connect 0...5000"])
    talk.tell(.woke(.connect))
    #expect(talk.tell(.disconnected) == ["wake connect 0...30000"])
    // An admin waits for it.
    #expect(talk.tell(.awaited) == ["wake connect 0...0"])
    #expect(talk.fleet.phase == .waiting(attempt: 9))
  }

  @Test func `devices of a large site come back as far apart as it wants`() throws {
    var talk = try Conversation(settings: Settings(spread: 120_000, presence: false))
    talk.tell(.started(.member(talk.membership(), Roster())))
    for _ in 0..<3 {
      talk.tell(.woke(.connect))
      #expect(talk.tell(.disconnected) == ["wake connect 0...120000"])
    }
  }

  @Test func `refused credentials are tried again every five minutes, or after a change`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster())))
    talk.tell(.woke(.connect))
    #expect(talk.tell(.refused) == ["wake connect 300000...300000"])
    #expect(talk.fleet.phase == .refused)
    #expect(talk.tell(.reconsider) == ["wake connect 0...5000"])
    #expect(talk.tell(.woke(.connect)) == ["connect"])
    talk.tell(.refused)
    #expect(talk.tell(.awaited) == ["wake connect 0...0"])
    #expect(talk.tell(.woke(.connect)) == ["connect"])
  }

  @Test func `a connection whose subscription is not acknowledged is dead`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster())))
    talk.tell(.woke(.connect))
    talk.tell(.connected)
    let actions = talk.tell(.woke(.acknowledgement))
    #expect(actions.first == "disconnect")
    #expect(actions.last == "wake connect 0...10000")
  }

  @Test func `a broker that accepts connections and ends them at once is tried less and less`() throws {
    var talk = try Conversation()
    talk.tell(.started(.member(talk.membership(), Roster())))
    let waits = (0..<3).map { _ in
      talk.tell(.woke(.connect))
      talk.tell(.connected)
      return talk.tell(.disconnected).last
    }
    #expect(waits == ["wake connect 0...10000", "wake connect 0...20000", "wake connect 0...30000"])
  }

  @Test func `an end of the connection forgets what was planned for it`() throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 2)])
    try talk.hear(talk.record(1, 1))
    let actions = talk.tell(.disconnected)
    #expect(actions.contains("cancel posting 1"))
    #expect(actions.last == "wake connect 0...5000")
    #expect(talk.fleet.phase == .waiting(attempt: 0))
  }
}
