import FleetCore
import FleetWire
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// Transcripts of invitations by code, at the inviting device and at the newcomer.
struct JoinTests {
  private let meeting: JoinCode.Meeting
  private let now = Timestamp(milliseconds: 1_000)

  init() throws {
    var chance = SeededGenerator(11)
    meeting = JoinCode.Meeting(rendezvous: drawn(&chance), key: try drawnSecret(&chance))
  }

  private var topics: (invitation: MessageTopic, answer: MessageTopic) {
    (.invitation(meeting.rendezvous), .answer(meeting.rendezvous))
  }

  private func body(_ talk: Conversation, _ place: Int, _ fields: Fields) -> Body {
    Body(
      subject: talk.speakers[place].device, generation: 1, counter: 1, run: Run(high: 1, low: 1), time: now,
      author: talk.speakers[place].device, fields: fields)
  }

  /// Returns the invitation of the first device, as the rules see it: without the keys.
  private func invitation(_ talk: Conversation, expiry: Int64 = 901_000) throws -> SignedMessage {
    let invitation = Invitation(
      name: "home", root: talk.account.root, epoch: talk.account.firstEpoch, rosterSize: 3,
      expiry: Timestamp(milliseconds: expiry))
    let sealed = try #require(invitation.sealed(body(talk, 0, Fields()), for: meeting, by: talk.speakers[0].keys))
    var opened = try meeting.key.open(sealed.bytes, on: topics.invitation)
    #expect(Invitation(taking: &opened.body.fields) != nil)
    return opened
  }

  private func answer(_ talk: Conversation, _ place: Int, _ name: Text) throws -> SignedMessage {
    try #require(
      meeting.key.seal(
        .answer, body(talk, place, talk.description(place, name).answerFields), on: topics.answer,
        by: talk.speakers[place].keys))
  }

  // MARK: The inviting device

  /// Returns a live device that has published an invitation, and has not read it back yet.
  private func inviting() throws -> (talk: Conversation, invitation: SignedMessage) {
    var talk = try Conversation()
    _ = try talk.settle()
    let invitation = try invitation(talk)
    #expect(
      talk.tell(.invite(invitation, meeting.rendezvous)) == [
        "wake invitation 900000...900000", "subscribe answer", "wake meeting 0...0",
      ])
    #expect(talk.tell(.woke(.meeting)) == ["publish invitation invitation 1", "wake meeting 500...500"])
    return (talk, invitation)
  }

  @Test func `an invitation is read back until the broker shows it, and put back after that`() throws {
    var (talk, invitation) = try inviting()
    #expect(talk.tell(.arrived(topics.invitation, .message(invitation), isRetained: false)).isEmpty)
    #expect(talk.tell(.woke(.meeting)) == ["wake meeting 10000...10000", "subscribe invitation"])
    #expect(talk.tell(.subscribed(.only(topics.invitation))) == ["wake meeting 2000...2000"])
    #expect(talk.tell(.woke(.meeting)) == ["publish invitation invitation 1", "wake meeting 2000...2000"])
    #expect(
      talk.tell(.arrived(topics.invitation, .message(invitation), isRetained: true)) == ["cancel meeting"])
    for shown in [Shown.nothing, .rejected(.seal)] {
      #expect(talk.tell(.arrived(topics.invitation, shown, isRetained: false)).contains("wake meeting 0...200"))
      talk.tell(.arrived(topics.invitation, .message(invitation), isRetained: false))
    }
  }

  @Test func `the first answer burns the code, and both topics are emptied until the broker shows nothing`() throws {
    var (talk, _) = try inviting()
    let phone = try answer(talk, 1, "phone")
    #expect(
      talk.tell(.arrived(topics.answer, .message(phone), isRetained: false)) == [
        "newcomer phone", "invitation ended, used", "cancel meeting", "clear invitation", "clear answer",
        "wake meeting 500...500",
      ])
    #expect(
      talk.tell(.woke(.meeting)) == ["subscribe invitation", "subscribe answer", "wake meeting 2000...2000"])
    // The broker has ignored the first attempt.
    #expect(talk.tell(.arrived(topics.answer, .message(phone), isRetained: true)) == ["clear answer"])
    #expect(talk.tell(.arrived(topics.invitation, .nothing, isRetained: false)).isEmpty)
    for wait in ["10000...10000", "60000...60000"] {
      #expect(talk.tell(.woke(.meeting)).last == "wake meeting \(wait)")
    }
    #expect(talk.tell(.woke(.meeting)) == ["subscribe invitation", "subscribe answer"])
    #expect(talk.tell(.woke(.meeting)).isEmpty)
  }

  @Test func `a second answer is a warning, until the code would have expired`() throws {
    var (talk, _) = try inviting()
    let phone = try answer(talk, 1, "phone")
    let thief = try answer(talk, 2, "thief")
    talk.tell(.arrived(topics.answer, .message(phone), isRetained: false))
    #expect(
      talk.tell(.arrived(topics.answer, .message(thief), isRetained: false)) == [
        "another newcomer thief", "clear answer",
      ])
    for _ in 0..<5 { talk.tell(.woke(.meeting)) }
    #expect(talk.tell(.arrived(topics.answer, .message(phone), isRetained: false)) == ["clear answer"])
    #expect(talk.tell(.arrived(topics.answer, .message(thief), isRetained: false)).count == 2)
    #expect(talk.tell(.woke(.invitation)) == ["invitation over"])
    #expect(talk.tell(.arrived(topics.answer, .message(thief), isRetained: false)).isEmpty)
  }

  @Test func `a code that nobody uses expires`() throws {
    var (talk, _) = try inviting()
    #expect(
      talk.tell(.woke(.invitation)) == [
        "invitation ended, expired", "cancel meeting", "clear invitation", "clear answer", "wake meeting 500...500",
      ])
    let phone = try answer(talk, 1, "phone")
    #expect(
      talk.tell(.arrived(topics.answer, .message(phone), isRetained: false)) == [
        "another newcomer phone", "clear answer",
      ])
    for _ in 0..<3 { #expect(!talk.tell(.woke(.meeting)).contains("invitation over")) }
    #expect(talk.tell(.woke(.meeting)).last == "invitation over")
    #expect(talk.tell(.arrived(topics.answer, .message(phone), isRetained: false)).isEmpty)
  }

  @Test func `an invitation outlives its connection, and its end waits for the next one`() throws {
    var (talk, _) = try inviting()
    #expect(talk.tell(.disconnected).contains("cancel meeting"))
    #expect(talk.reconnect().contains("wake meeting 0...0"))
    talk.tell(.disconnected)
    #expect(talk.tell(.woke(.invitation)) == ["invitation ended, expired"])
    #expect(talk.reconnect().contains("clear invitation"))
  }

  @Test func `a second invitation burns the code of the first`() throws {
    var (talk, invitation) = try inviting()
    let next = Rendezvous(high: 1, low: 2)
    let actions = talk.tell(.invite(invitation, next))
    #expect(actions.prefix(4) == ["invitation ended, expired", "cancel meeting", "clear invitation", "clear answer"])
    #expect(actions.suffix(2) == ["subscribe answer", "wake meeting 0...0"])
    let phone = try answer(talk, 1, "phone")
    #expect(talk.tell(.arrived(topics.answer, .message(phone), isRetained: false)).isEmpty)
    #expect(talk.tell(.arrived(.answer(next), .message(phone), isRetained: false)).first == "newcomer phone")
  }

  @Test func `a new key of the account ends an invitation to the former one`() throws {
    var (talk, _) = try inviting()
    let actions = talk.tell(.entered(Epoch(number: 0x1_0001, former: 1)))
    #expect(actions.contains("invitation ended, expired") && actions.contains("clear invitation"))
  }

  @Test func `an answer with another key is none`() throws {
    var (talk, _) = try inviting()
    #expect(talk.tell(.arrived(topics.answer, .rejected(.seal), isRetained: false)) == ["dropped seal"])
  }

  // MARK: The newcomer

  /// Returns a newcomer that has looked for other answers, and now looks for its invitation.
  private func joining() throws -> Conversation {
    var talk = try Conversation()
    #expect(
      talk.tell(.started(.newcomer(meeting.rendezvous, at: now))) == [
        "wake joining 60000...60000", "wake connect 0...0",
      ])
    #expect(talk.tell(.woke(.connect)) == ["connect"])
    #expect(
      talk.tell(.connected) == ["subscribe answer", "wake acknowledgement 10000...10000"])
    #expect(talk.fleet.phase == .joining(attempt: 0))
    #expect(
      talk.tell(.subscribed(.only(topics.answer))) == ["cancel acknowledgement", "wake quiet 2000...2000"])
    #expect(talk.tell(.woke(.quiet)) == ["subscribe invitation", "wake acknowledgement 10000...10000"])
    return talk
  }

  @Test func `a newcomer stores the keys before it answers, and ends when its answer is taken away`() throws {
    var talk = try joining()
    let invitation = try invitation(talk)
    #expect(
      talk.tell(.arrived(topics.invitation, .message(invitation), isRetained: true)) == [
        "cancel acknowledgement", "cancel quiet", "accept home",
      ])
    #expect(talk.tell(.arrived(topics.invitation, .message(invitation), isRetained: true)).isEmpty)
    let phone = try answer(talk, 1, "phone")
    #expect(talk.tell(.answered(phone)) == ["publish answer answer 1", "wake meeting 500...500"])
    // This may have been the answer of somebody else.
    #expect(talk.tell(.arrived(topics.answer, .nothing, isRetained: false)).isEmpty)
    #expect(talk.tell(.woke(.meeting)) == ["wake meeting 10000...10000", "subscribe answer"])
    #expect(talk.tell(.arrived(topics.answer, .message(phone), isRetained: true)) == ["cancel meeting"])
    #expect(
      talk.tell(.arrived(topics.answer, .nothing, isRetained: false)) == [
        "cancel acknowledgement", "cancel quiet", "cancel joining", "cancel connect", "disconnect",
        "joined, confirmed",
      ])
    #expect(talk.fleet.phase == .noAccount)
  }

  @Test func `an answer that the broker lost is published again`() throws {
    var talk = try joining()
    talk.tell(.arrived(topics.invitation, .message(try invitation(talk)), isRetained: true))
    talk.tell(.answered(try answer(talk, 1, "phone")))
    talk.tell(.woke(.meeting))
    #expect(talk.tell(.subscribed(.only(topics.answer))) == ["wake meeting 2000...2000"])
    #expect(talk.tell(.woke(.meeting)) == ["publish answer answer 1", "wake meeting 2000...2000"])
    #expect(
      talk.tell(.disconnected) == [
        "cancel meeting", "cancel acknowledgement", "cancel quiet",
        "wake connect 0...10000",
      ])
    talk.tell(.woke(.connect))
    #expect(talk.tell(.connected) == ["publish answer answer 1", "wake meeting 500...500"])
    #expect(talk.tell(.woke(.joining)).last == "joined, unconfirmed")
  }

  @Test func `a newcomer waits for its invitation for a minute`() throws {
    var talk = try joining()
    talk.tell(.subscribed(.only(topics.invitation)))
    #expect(talk.tell(.arrived(topics.invitation, .rejected(.seal), isRetained: true)) == ["dropped seal"])
    #expect(talk.tell(.woke(.quiet)) == ["subscribe invitation", "wake acknowledgement 10000...10000"])
    #expect(talk.tell(.woke(.joining)).suffix(2) == ["disconnect", "not joined, notInvited"])
  }

  @Test func `a newcomer that reaches no broker ends, too`() throws {
    var talk = try Conversation()
    talk.tell(.started(.newcomer(meeting.rendezvous, at: now)))
    talk.tell(.woke(.connect))
    talk.tell(.disconnected)
    #expect(talk.tell(.woke(.joining)).last == "not joined, notConnected")
    #expect(talk.fleet.phase == .noAccount)
  }

  @Test func `a newcomer that cannot store the keys does not join`() throws {
    var talk = try joining()
    talk.tell(.arrived(topics.invitation, .message(try invitation(talk)), isRetained: true))
    #expect(talk.tell(.answered(nil)).suffix(2) == ["disconnect", "not joined, notStored"])
    #expect(talk.fleet.phase == .noAccount)
  }

  @Test func `an invitation that expired, or that was answered before, is not taken`() throws {
    var late = try joining()
    #expect(
      late.tell(.arrived(topics.invitation, .message(try invitation(late, expiry: 1_000)), isRetained: true)).last
        == "not joined, expired")
    var second = try joining()
    #expect(
      second.tell(.arrived(topics.answer, .message(try answer(second, 1, "phone")), isRetained: true)).last
        == "not joined, used")
  }

  @Test func `a broker that acknowledges nothing is left`() throws {
    var talk = try joining()
    #expect(talk.tell(.woke(.acknowledgement)).first == "disconnect")
    #expect(talk.fleet.phase == .waiting(attempt: 1))
  }
}
