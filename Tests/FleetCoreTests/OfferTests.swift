import FleetCore
import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Transcripts of what a device tells readers outside of the account, and of what a sender keeps.
@Suite struct OfferTests {
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

  private func feedback(_ talk: Conversation, _ tokens: [CarriedToken], by sender: DeviceKeys) throws -> Input {
    var fields = Fields()
    fields[.signingKey] = sender.signingKey.bytes
    fields.set(.invalidToken, tokens)
    let topic = MessageTopic.feedback(talk.speakers[0].tag)
    let body = Body(
      subject: talk.speakers[0].device, generation: 1, counter: 1, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: UUID(high: 1, low: 1), fields: fields)
    let message = try #require(sender.box(.feedback, body, to: talk.speakers[0].keys.boxKey, on: topic))
    return .arrived(topic, .message(message), isRetained: true)
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

  @Test func `what is offered without a connection is told on the next one`() throws {
    var talk = try Conversation()
    let report = try offer(talk, Fields(), isReport: true)
    talk.tell(.started(.member(talk.membership(), Roster())))
    #expect(talk.tell(.offer(report)).isEmpty)
    #expect(try talk.becomeLive().isEmpty == false)
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
        "cancel offer tokens of 0", "cancel rest tokens of 0", "cancel refresh tokens of 0", "clear tokens of 0",
      ])
    #expect(talk.tell(.withdraw(first.topic)).isEmpty)
    #expect(talk.tell(.boxed(first.topic, try message(talk, first, 1))).isEmpty)
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
    talk.tell(.offer(try offer(talk, content)))
    let sender = talk.speakers[2].keys
    #expect(
      talk.tell(try feedback(talk, [told[1]], by: sender)) == ["invalidate b", "clear feedback for 0"])
    let former = CarriedToken(told[0].place, value: "former")
    #expect(talk.tell(try feedback(talk, [former], by: sender)) == ["clear feedback for 0"])
    #expect(talk.tell(try feedback(talk, told, by: talk.speakers[1].keys)) == ["dropped author"])
    let topic = MessageTopic.feedback(talk.speakers[0].tag)
    #expect(talk.tell(.arrived(topic, .rejected(.seal), isRetained: true)) == ["dropped seal"])
    #expect(talk.tell(.arrived(topic, .nothing, isRetained: false)).isEmpty)
  }

  // MARK: The sender

  @Test func `a sender has one token for each device, app and provider`() throws {
    let talk = try Conversation()
    let (one, two) = (talk.speakers[0].tag, talk.speakers[1].tag)
    var ledger = TokenLedger(most: 2)
    func told(_ values: Text..., counter: UInt64, place: Int = 0, by author: Int? = nil) throws -> SignedMessage {
      var content = Fields()
      content.set(
        .token, values.enumerated().map { CarriedToken(.init(app: "mail", provider: Text("p\($0)")), value: $1) })
      return try message(talk, offer(talk, content), counter, place: place, by: author)
    }
    try ledger.take(told("a", "b", counter: 2), at: one)
    try ledger.take(told("c", counter: 3), at: one)
    // Shown again by a broker.
    try ledger.take(told("a", "b", counter: 2), at: one)
    try ledger.take(told("d", counter: 1, place: 1), at: two)
    #expect(ledger.tokens(at: one).map(\.value) == ["c"] && ledger.tokens(at: two).map(\.value) == ["d"])
    #expect(throws: Rejection.author) { try ledger.take(told("x", counter: 9, by: 1), at: one) }
    #expect(throws: Rejection.author) { try ledger.take(told("x", counter: 9, place: 1), at: one) }
    #expect(throws: Rejection.length) {
      try ledger.take(told("x", counter: 9, place: 2), at: talk.speakers[2].tag)
    }
    ledger.forget(two)
    #expect(ledger.tokens(at: two).isEmpty && ledger.devices == 1)
  }

  @Test func `an invalid token is told to its device until the device has taken it back`() throws {
    let talk = try Conversation()
    let tag = talk.speakers[0].tag
    let sender = ReaderID(high: 1, low: 1)
    let key = talk.speakers[2].keys.signingKey
    var ledger = TokenLedger(most: 2)
    let content = tokens("a", "b")
    let told = try #require(content.tokens(.token))
    try ledger.take(message(talk, offer(talk, content), 1), at: tag)
    let unknown = CarriedToken(told[0].place, value: "x")
    let refused = ledger.invalidate(unknown, at: tag, by: sender, signingKey: key)
    #expect(refused == nil)
    let answer = ledger.invalidate(told[0], at: tag, by: sender, signingKey: key)
    let first = try #require(answer)
    #expect(first.boxKey == talk.speakers[0].keys.boxKey && first.draft.subject == talk.speakers[0].device)
    let next = ledger.invalidate(told[1], at: tag, by: sender, signingKey: key)
    let second = try #require(next)
    #expect(second.draft.fields.tokens(.invalidToken) == told)
    #expect(ledger.tokens(at: tag).isEmpty)
    try ledger.take(message(talk, offer(talk, tokens("c", "b")), 2), at: tag)
    #expect(ledger.tokens(at: tag).map(\.value) == ["c"])
    try ledger.take(message(talk, offer(talk, tokens("c")), 3), at: tag)
    try ledger.take(message(talk, offer(talk, tokens("c", "b")), 4), at: tag)
    #expect(ledger.tokens(at: tag).map(\.value) == ["c", "b"])
  }
}
