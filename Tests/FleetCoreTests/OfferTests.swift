import FleetCore
import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Transcripts of what a device tells readers outside of the account, and of what a sender keeps.
struct OfferTests {
  private static let place = CarriedToken.Place(app: "mail", provider: "apns")

  private func tokens(_ values: Text...) -> Fields {
    var fields = Fields()
    fields.set(
      .token, values.enumerated().map { CarriedToken(.init(app: "mail", provider: Text("p\($0)")), value: $1) })
    return fields
  }

  /// Returns an offer of this device to the last speaker as its reader.
  private func offer(_ talk: Conversation, _ content: Fields, isReport: Bool = false) throws -> Offer {
    let reader = try #require(talk.speakers.last).keys
    let (id, tag) = (ReaderID(of: reader.boxKey), talk.speakers[0].tag)
    return Offer(
      topic: isReport ? .report(id, tag) : .tokens(id, tag), boxKey: reader.boxKey, signingKey: reader.signingKey,
      content: content)
  }

  /// Returns the message of an offer, as a program writes it.
  private func message(
    _ talk: Conversation, _ offer: Offer, _ counter: UInt64, place: Int = 0, by author: Int? = nil
  ) throws -> SignedMessage {
    let author = talk.speakers[author ?? place]
    var fields = offer.content
    fields[.signingKey] = author.keys.signingKey.bytes
    fields[.boxKey] = author.keys.boxKey.bytes
    if case .report = offer.topic { fields[.name] = [0x61] }
    let kind: MessageKind = if case .report = offer.topic { .report } else { .tokens }
    let body = Body(
      subject: talk.speakers[place].device, generation: 1, counter: counter, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: author.device, fields: fields)
    return try #require(author.keys.box(kind, body, to: offer.boxKey, on: offer.topic))
  }

  private func feedback(
    _ talk: Conversation, _ tokens: [CarriedToken], by sender: DeviceKeys, about counter: UInt64 = 1
  ) throws -> Input {
    var fields = Fields()
    fields[.signingKey] = sender.signingKey.bytes
    fields.set(.invalidToken, tokens)
    let topic = MessageTopic.feedback(ReaderID(of: talk.speakers[2].keys.boxKey), talk.speakers[0].tag)
    let body = Body(
      subject: talk.speakers[0].device, generation: 1, counter: counter, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: UUID(high: 1, low: 1), fields: fields)
    let message = try #require(sender.box(.feedback, body, to: talk.speakers[0].keys.boxKey, on: topic))
    return .arrived(topic, .message(message), isRetained: true)
  }

  @Test func `an offer that a twin replaces is not put back`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    talk.tell(.offer(first))
    talk.tell(.boxed(first.topic, try message(talk, first, 1)))
    try talk.show(talk.record(0, 100, run: 2))
    talk.tell(.wrote(talk.speakers[0].tag, try talk.record(0, 101)))
    try talk.show(talk.record(0, 102, run: 2))
    #expect(talk.fleet.twin == .twin(Run(high: 2, low: 2), .unknown))
    talk.tell(.arrived(first.topic, .rejected(.seal), isRetained: true))
    #expect(talk.tell(.woke(.offer(first.topic))).isEmpty)
  }

  @Test func `tokens are published whenever they change, and read back`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    #expect(
      talk.tell(.offer(first)) == ["subscribe feedback for 0", "box tokens of 0 next(above: 0)"])
    #expect(talk.tell(.offer(first)).isEmpty)
    let message = try message(talk, first, 1)
    #expect(
      talk.tell(.boxed(first.topic, message)) == [
        "wake rest tokens of 0 1000...1000", "wake refresh tokens of 0 77760000...95040000",
        "wake refill(FleetCore.Allowances.Purpose.putBack) 1000...1000",
        "wake refill(FleetCore.Allowances.Purpose.hourlyPutBack) 3600000...3600000",
        "publish tokens of 0 tokens 1", "wake offer tokens of 0 500...500",
      ])
    #expect(talk.tell(.woke(.offer(first.topic))).last == "subscribe tokens of 0")
    #expect(talk.tell(.subscribed(.only(first.topic))) == ["wake offer tokens of 0 2000...2000"])
    #expect(
      talk.tell(.arrived(first.topic, .message(message), isRetained: true)) == ["cancel offer tokens of 0"])
    #expect(
      talk.tell(.arrived(first.topic, .nothing, isRetained: false)) == ["wake offer tokens of 0 0...200"])
    #expect(talk.tell(.woke(.offer(first.topic))).first == "publish tokens of 0 tokens 1")
    // A change during the pause is told after it.
    #expect(talk.tell(.offer(try offer(talk, tokens("b")))).isEmpty)
    #expect(talk.tell(.offer(try offer(talk, tokens("c")))).isEmpty)
    #expect(talk.tell(.woke(.offerRest(first.topic))) == ["box tokens of 0 next(above: 0)"])
    // And a change during the writing after that.
    #expect(talk.tell(.offer(try offer(talk, tokens("d")))).isEmpty)
    #expect(talk.tell(.boxed(first.topic, nil)) == ["wake rest tokens of 0 1000...5000"])
    #expect(talk.tell(.woke(.offerRest(first.topic))) == ["box tokens of 0 next(above: 0)"])
  }

  @Test func `a report is published every ten minutes at most, and once a day`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let report = try offer(talk, Fields(), isReport: true)
    #expect(talk.tell(.offer(report)) == ["box report of 0 next(above: 0)"])
    #expect(
      talk.tell(.boxed(report.topic, try message(talk, report, 1))).first == "wake rest report of 0 600000...600000")
    #expect(talk.tell(.woke(.offerRest(report.topic))).isEmpty)
    #expect(talk.tell(.woke(.offerRefresh(report.topic))) == ["box report of 0 next(above: 0)"])
  }

  @Test func `an offer without a connection is told on the next one`() throws {
    var talk = try Conversation()
    let report = try offer(talk, Fields(), isReport: true)
    talk.tell(.started(.member(talk.membership(), Roster())))
    #expect(talk.tell(.offer(report)).isEmpty)
    #expect(try talk.becomeLive().contains("subscribe 0") == false)
    _ = try talk.settle()
    talk.tell(.offer(report))
    talk.tell(.boxed(report.topic, try message(talk, report, 1)))
    #expect(talk.tell(.disconnected).contains("cancel offer report of 0"))
    #expect(talk.reconnect().contains("wake offer report of 0 0...200"))
  }

  @Test func `an offer that ends is taken from the broker`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    talk.tell(.offer(first))
    talk.tell(.boxed(first.topic, try message(talk, first, 1)))
    #expect(
      talk.tell(.withdraw(first.topic)) == [
        "cancel offer tokens of 0", "cancel refresh tokens of 0", "clear tokens of 0",
        "wake offer tokens of 0 500...500",
      ])
    #expect(talk.tell(.withdraw(first.topic)).isEmpty)
    #expect(talk.tell(.boxed(first.topic, try message(talk, first, 1))).isEmpty)
    // The broker may bring it back.
    for delay in ["2000...2000", "10000...10000", "60000...60000", "60000...60000"] {
      #expect(
        talk.tell(.woke(.offer(first.topic))) == ["subscribe tokens of 0", "wake offer tokens of 0 \(delay)"])
      let former = try message(talk, first, 1)
      #expect(talk.tell(.arrived(first.topic, .message(former), isRetained: true)) == ["clear tokens of 0"])
      #expect(talk.tell(.arrived(first.topic, .nothing, isRetained: false)).isEmpty)
    }
    #expect(talk.tell(.woke(.offer(first.topic))) == ["cancel rest tokens of 0"])
    #expect(talk.tell(.arrived(first.topic, .nothing, isRetained: false)).isEmpty)
  }

  @Test func `an offer that ends without a connection is taken from the broker on the next one`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    talk.tell(.offer(first))
    talk.tell(.boxed(first.topic, try message(talk, first, 1)))
    talk.tell(.disconnected)
    #expect(talk.tell(.withdraw(first.topic)) == ["cancel refresh tokens of 0"])
    #expect(talk.reconnect().contains("clear tokens of 0"))
  }

  @Test func `a removed device empties the topics of its offers, and a superseded one leaves them alone`() throws {
    for isRemoved in [true, false] {
      var talk = try Conversation()
      _ = try talk.settle([talk.record(1, 1)])
      talk.tell(.offer(try offer(talk, tokens("a"))))
      let actions = try talk.hear(isRemoved ? talk.tombstone(0, 11, by: 1) : talk.record(0, 1, generation: 2))
      #expect(actions.contains("clear tokens of 0") == isRemoved)
      #expect(actions.contains("disconnect") && actions.last?.hasPrefix("ended") == true)
    }
  }

  @Test func `an offer that returns while the former one is written is written again`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    talk.tell(.offer(first))
    talk.tell(.withdraw(first.topic))
    // However often the topic is looked at.
    for _ in 0..<9 { talk.tell(.woke(.offer(first.topic))) }
    #expect(talk.tell(.offer(try offer(talk, tokens("b")))) == ["subscribe feedback for 0"])
    talk.tell(.boxed(first.topic, try message(talk, first, 1)))
    #expect(talk.tell(.woke(.offerRest(first.topic))) == ["box tokens of 0 next(above: 0)"])
  }

  @Test func `an offer that a broker denies without end has an allowance`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let first = try offer(talk, tokens("a"))
    talk.tell(.offer(first))
    talk.tell(.boxed(first.topic, try message(talk, first, 1)))
    let told = (0..<20).map { _ in
      talk.tell(.arrived(first.topic, .nothing, isRetained: true)) + talk.tell(.woke(.offer(first.topic)))
    }
    #expect(told.count { $0.contains("publish tokens of 0 tokens 1") } == 9)
    #expect(told.last == ["wake offer tokens of 0 1000...2000"])
    // Also the first message.
    let report = try offer(talk, Fields(), isReport: true)
    talk.tell(.offer(report))
    #expect(
      talk.tell(.boxed(report.topic, try message(talk, report, 2))).last == "wake offer report of 0 1000...2000")
    talk.tell(.woke(.refill(.putBack)))
    #expect(talk.tell(.woke(.offer(report.topic))).contains("publish report of 0 report 2"))
  }

  @Test func `a device that leaves or has another identifier takes its offers back`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    talk.tell(.offer(try offer(talk, tokens("a"))))
    var second = talk
    #expect(talk.tell(.leave).contains("clear tokens of 0"))
    #expect(second.tell(.renewed(second.membership(1))).contains("clear tokens of 0"))
  }

  @Test func `there are nine readers at most`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let told = try (0...9).map { number -> String? in
      let topic = MessageTopic.report(ReaderID(high: 0, low: UInt64(number)), talk.speakers[0].tag)
      let key = try offer(talk, Fields()).boxKey
      return talk.tell(.offer(Offer(topic: topic, boxKey: key, signingKey: key, content: Fields()))).first
    }
    #expect(told.map { $0 == "not offered report of 0" } == (0...9).map { $0 == 9 })
  }

  @Test func `a token is invalid only if its sender says so, and if the app still has it`() throws {
    var talk = try Conversation()
    _ = try talk.settle()
    let content = tokens("a", "b")
    let told = try #require(content.tokens(.token))
    let first = try offer(talk, content)
    talk.tell(.offer(first))
    let sender = talk.speakers[2].keys
    // Before this run has told its tokens, and about an earlier message.
    #expect(talk.tell(try feedback(talk, [told[1]], by: sender)) == ["clear feedback for 0"])
    talk.tell(.boxed(first.topic, try message(talk, first, 2)))
    #expect(talk.tell(try feedback(talk, [told[1]], by: sender, about: 1)) == ["clear feedback for 0"])
    #expect(
      talk.tell(try feedback(talk, [told[1]], by: sender, about: 2)) == ["invalidate b", "clear feedback for 0"])
    let former = CarriedToken(told[0].place, value: "former")
    #expect(talk.tell(try feedback(talk, [former], by: sender, about: 2)) == ["clear feedback for 0"])
    #expect(talk.tell(try feedback(talk, told, by: talk.speakers[1].keys)) == ["dropped author"])
    let topic = MessageTopic.feedback(ReaderID(of: sender.boxKey), talk.speakers[0].tag)
    #expect(talk.tell(.arrived(topic, .rejected(.seal), isRetained: true)) == ["dropped seal"])
    #expect(talk.tell(.arrived(topic, .nothing, isRetained: false)).isEmpty)
  }
}
