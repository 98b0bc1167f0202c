import FleetCore
import FleetSeal
import FleetWire
import IdentityCore
import Testing

/// Transcripts of publications: they are read back, and what the broker lost is put back.
struct PostingTests {
  @Test func `a record is published again until the broker shows it`() throws {
    var talk = try Conversation()
    _ = try talk.becomeLive()
    talk.tell(.woke(.change))
    let own = try talk.record(0, 1)
    #expect(
      talk.tell(.wrote(talk.speakers[0].tag, own)) == [
        "wake heartbeat 77760000...95040000", "publish 0 record 1", "wake posting 0 500...500",
      ])
    // The echo proves nothing.
    #expect(try talk.hear(own).isEmpty)
    for (failed, wait) in [2_000, 10_000, 60_000, 60_000].enumerated() {
      #expect(talk.fleet.silence == (failed < 3 ? nil : .unkept))
      #expect(talk.tell(talk.posting(0)) == ["wake posting 0 10000...10000", "subscribe 0"])
      #expect(talk.tell(.subscribed(.only(talk.topic(0)))) == ["wake posting 0 2000...2000"])
      let actions = talk.tell(talk.posting(0))
      #expect(actions.suffix(2) == ["publish 0 record 1", "wake posting 0 \(wait)...\(wait)"])
    }
    #expect(!talk.fleet.isSettled)
    #expect(try talk.show(own) == ["cancel posting 0"])
    #expect(talk.fleet.isSettled && talk.fleet.silence == nil)
  }

  @Test func `after 200 records in a row, the last change is published once there is an allowance again`() throws {
    var talk = try Conversation()
    _ = try talk.becomeLive()
    for counter in 1...200 as ClosedRange<UInt64> {
      talk.tell(.woke(.refill(.change)))
      #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: \(counter - 1))")
      talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, counter)))
      talk.tell(.described(talk.description(0, Text("\(counter)"))))
      #expect((talk.fleet.silence == .tooOften) == (counter == 200))
    }
    talk.tell(.woke(.refill(.change)))
    #expect(talk.tell(.woke(.change)) == ["wake change 1000...5000"])
    let refill = Input.woke(.refill(.lastingChange))
    #expect(talk.tell(refill).last?.hasSuffix("300000...300000") == true)
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 200)")
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 201)))
    #expect(talk.fleet.silence == nil)
  }

  @Test func `a record that the broker has replaced by an earlier one is published again`() throws {
    var talk = try Conversation()
    _ = try talk.becomeLive()
    talk.tell(.woke(.change))
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 2)))
    // It may have arrived before the publication did.
    #expect(try talk.hear(talk.record(0, 1)).isEmpty)
    #expect(try talk.show(talk.record(0, 1)) == ["wake posting 0 0...200"])
    #expect(talk.tell(talk.posting(0)).contains("publish 0 record 2"))
  }

  @Test func `an earlier, empty or invalid message is replaced by the known one`() throws {
    for shown in [
      Shown.message(try Conversation().record(1, 1)), .nothing, .rejected(.seal), .rejected(.signature),
    ] {
      for isRetained in [true, false] {
        var talk = try Conversation()
        _ = try talk.settle([talk.record(1, 2)])
        #expect(
          talk.tell(.heard(talk.speakers[1].tag, shown, isRetained: isRetained)).last == "wake posting 1 0...5000")
        #expect(talk.tell(talk.posting(1)).contains("publish 1 record 2"))
      }
    }
  }

  @Test func `nothing is put back if somebody else has done so`() throws {
    var talk = try Conversation()
    let known = try talk.record(1, 2)
    _ = try talk.settle([known])
    try talk.hear(talk.record(1, 1))
    #expect(try talk.hear(known) == ["cancel posting 1"])
    #expect(talk.tell(talk.posting(1)).isEmpty)
  }

  @Test(arguments: [Rejection.version, .epoch])
  func `a message of a later version or epoch is left alone, unless this device wrote the known one`(
    reason: Rejection
  ) throws {
    var talk = try Conversation()
    _ = try talk.settle([talk.record(1, 2)])
    #expect(
      talk.tell(.heard(talk.speakers[0].tag, .rejected(reason), isRetained: true)) == [
        "dropped \(reason)", "wake posting 0 0...200",
      ])
    #expect(
      talk.tell(.heard(talk.speakers[1].tag, .rejected(reason), isRetained: true)) == ["dropped \(reason)"])
  }

  @Test func `garbage about an unknown device is dropped`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    #expect(talk.tell(.heard(talk.speakers[1].tag, .rejected(.seal), isRetained: true)) == ["dropped seal"])
    #expect(talk.tell(.heard(talk.speakers[1].tag, .nothing, isRetained: false)).isEmpty)
  }

  @Test func `an absent record is asked for a minute later, and put back only if it is absent again`() throws {
    var talk = try Conversation()
    let known = try talk.record(1, 2)
    #expect(try talk.becomeLive([known]).contains("wake posting 1 55000...65000"))
    #expect(talk.tell(talk.posting(1)).last == "subscribe 1")
    talk.tell(.subscribed(.only(talk.topic(1))))
    #expect(talk.tell(talk.posting(1)) == ["wake posting 1 0...60000"])
    #expect(talk.tell(talk.posting(1)).contains("publish 1 record 2"))

    var other = try Conversation()
    _ = try other.becomeLive([known])
    other.tell(other.posting(1))
    #expect(try other.show(known) == ["cancel posting 1"])
  }

  @Test func `at most ten messages are put back at once`() throws {
    var talk = try Conversation(others: 20)
    _ = try talk.settle(try (1...20).map { try talk.record($0, 2) })
    for place in 1...20 { try talk.hear(talk.record(place, 1)) }
    let published = (1...20).map { place in
      let actions = talk.tell(talk.posting(place))
      return actions.contains("publish \(place) record 2")
    }
    #expect(published == (1...20).map { $0 <= 10 })
    talk.tell(.woke(.refill(.putBack)))
    #expect(talk.tell(talk.posting(11)).contains("publish 11 record 2"))
  }

  @Test func `a record that could not be stored is written again, and not published`() throws {
    var talk = try Conversation()
    _ = try talk.becomeLive()
    guard case .write(let draft)? = talk.fleet.take(.woke(.change)).last else {
      Issue.record("nothing is written")
      return
    }
    #expect(talk.tell(.notWritten(draft)) == ["wake change 1000...5000"])
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 0)")
  }

  @Test func `a record that was stored during a reading is published after it`() throws {
    var talk = try Conversation()
    let own = try talk.settle()
    talk.tell(.described(talk.description(0, "a")))
    talk.tell(.woke(.change))
    talk.tell(.disconnected)
    talk.tell(.woke(.connect))
    talk.findNoKey()
    try talk.show(own)
    let actions = talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 11)))
    #expect(!actions.contains { $0.hasPrefix("publish") })
    talk.tell(.subscribed(.only(talk.topic(0))))
    talk.tell(.woke(.quiet))
    talk.tell(.subscribed(.roster(talk.account.id)))
    #expect(talk.tell(.woke(.quiet)).contains("wake posting 0 0...200"))
    #expect(talk.tell(talk.posting(0)).contains("publish 0 record 11"))
  }

  @Test func `a change is written at once, the next ones become one record, and later ones do not postpone it`() throws
  {
    var talk = try Conversation()
    _ = try talk.settle()
    #expect(
      talk.tell(.described(talk.description(0, "a"))) == ["wake change 0...0", "wake changeRest 200...200"])
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 10)")
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 11)))
    #expect(
      talk.tell(.described(talk.description(0, "b"))) == ["wake change 200...200", "wake changeRest 200...200"])
    #expect(talk.tell(.described(talk.description(0, "c"))) == ["wake changeRest 200...200"])
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 11)")
    // Changes during the writing become another record.
    #expect(talk.tell(.described(talk.description(0, "d"))) == ["wake changeRest 200...200"])
    #expect(talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 12))).last == "wake change 200...200")
    talk.tell(.woke(.change))
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 13)))
    talk.tell(.woke(.changeRest))
    #expect(
      talk.tell(.described(talk.description(0, "e"))) == ["wake change 0...0", "wake changeRest 200...200"])
  }

  @Test func `at most five changes are published at once`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    for counter in UInt64(11)...14 {
      talk.tell(.described(talk.description(0, Text("\(counter)"))))
      talk.tell(.woke(.change))
      talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, counter)))
    }
    talk.tell(.described(talk.description(0, "last")))
    #expect(talk.tell(.woke(.change)) == ["wake change 1000...5000"])
    talk.tell(.woke(.refill(.change)))
    #expect(talk.tell(.woke(.change)).last == "write 0 record next(above: 14)")
  }
}
