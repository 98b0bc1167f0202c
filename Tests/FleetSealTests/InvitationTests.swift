import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

struct InvitationTests {
  private let keys: DeviceKeys
  private let invitation: Invitation

  init() throws {
    keys = try Sample.keys()
    invitation = Invitation(
      name: "desk", root: try Sample.secret(from: 0), epoch: EpochKey(number: 3, key: try Sample.secret(from: 0x80)),
      rosterSize: 600, expiry: Sample.time)
  }

  private func body(_ fields: Fields) -> Body {
    Body(
      subject: Sample.device, generation: 1, counter: 1, run: Sample.run, time: Sample.time, author: Sample.device,
      fields: fields)
  }

  @Test func `a newcomer with the code gets the keys, and nobody else`() throws {
    let meeting = try #require(JoinCode.random()?.meeting())
    let topic = MessageTopic.invitation(meeting.rendezvous)
    let message = try #require(invitation.sealed(body(Fields()), for: meeting, by: keys))
    #expect(message.body.fields == Fields())
    var opened = try meeting.key.open(message.bytes, on: topic)
    let read = try #require(Invitation(taking: &opened.body.fields))
    #expect(opened.body.fields[.root] == nil && opened.body.fields[.epochKey] == nil)
    #expect(read.name == "desk" && read.rosterSize == 600 && read.expiry == Sample.time && read.epoch.number == 3)
    #expect(read.root.copy() == Array(0..<32) && read.epoch.key.copy() == Array(0x80..<0xa0))
    #expect(opened.signer == keys.signingKey)
    #expect(throws: Rejection.kind) {
      try meeting.key.open(message.bytes, on: .answer(meeting.rendezvous))
    }
    let other = EpochKey(number: 0, key: try #require(SecretKey.random()))
    #expect(throws: Rejection.seal) { try other.open(message.bytes, on: topic) }
  }

  @Test func `an invitation without a key or to epoch 0 is none`() {
    for field in [FieldType.name, .root, .epoch, .epochKey, .rosterSize, .expiry] {
      var fields = invitation.fields(signingKey: keys.signingKey)
      fields[field] = nil
      #expect(Invitation(taking: &fields) == nil, "\(field)")
      #expect(fields[.root] == nil && fields[.epochKey] == nil, "\(field)")
    }
    var fields = invitation.fields(signingKey: keys.signingKey)
    fields[.epoch] = [0, 0, 0, 0]
    #expect(Invitation(taking: &fields) == nil)
  }

  @Test func `a meeting is made of bytes that a program derived`() throws {
    var bytes = Array(UInt8(0)..<48)
    let meeting = try #require(JoinCode.Meeting(consuming: &bytes))
    #expect(bytes == [UInt8](repeating: 0, count: 48))
    #expect(meeting.rendezvous.bytes == Array(0..<16) && meeting.key.key.copy() == Array(16..<48))
    var short = [UInt8](repeating: 1, count: 47)
    #expect(JoinCode.Meeting(consuming: &short) == nil)
    #expect(short == [UInt8](repeating: 0, count: 47))
  }
}
