import FleetWire
import Foundation
import IdentityCore
import Testing

@testable import FleetCore
@testable import FleetSeal

/// Rotations and summaries of the second implementation.
struct TwinRosterTests {
  private let account: AccountKeys
  private let keys: DeviceKeys
  private let seal: MessageSeal

  init() throws {
    account = try Sample.account()
    keys = try Sample.keys()
    seal = MessageSeal(account)
  }

  @Test func `the device to which it hands a key opens the key`() throws {
    let tag = account.tag(of: Sample.device)
    let place = MessageTopic.device(account.id, tag)
    let record = try #require(seal.seal(.record, try Sample.record(by: keys), epoch: 1, on: place, by: keys))
    let maker = try Sample.keys(0x60)
    let author = Sample.others[0]
    let made = try Twin.ask([
      "do": "grant", "root": Twin.root, "seed": hexadecimal(0x60..<0x80), "author": hexadecimal(author.bytes),
      "record": hexadecimal(record.bytes), "topic": place.text, "key": hexadecimal(0x80..<0xa0),
      "removed": Sample.others.dropFirst().map { hexadecimal($0.bytes) },
    ])
    let topic = MessageTopic.grant(account.id, tag)
    #expect(made["topic"] as? String == topic.text)
    let grant = try seal.open(bytes(try #require(made["message"] as? String)), on: topic)
    #expect(grant.kind == .grant && grant.epoch == 1 && grant.signer == maker.signingKey)
    #expect(grant.body.subject == Sample.device && grant.body.author == author)
    #expect(grant.body.generation == 1 && grant.body.counter == 0)
    #expect(grant.body.fields[.removed] == Sample.others.dropFirst().flatMap(\.bytes))
    let number = try #require(grant.grantedEpoch)
    #expect(number == Epoch.first.next(by: account.tag(of: author))?.number && Epoch.first.admits(number))
    // The number in the manual.
    #expect(Epoch.first.next(by: tag)?.number == 0x1_9425)
    let box = try #require(grant.body.fields[.sealedBox])
    #expect(keys.unboxed(box)?.copy() == Array(0x80..<0xa0))
  }

  @Test func `both compute the same summary of a roster, and its message is read`() throws {
    var summary = RosterDigest()
    var roster: [[String]] = []
    func add(_ kind: MessageKind, _ body: Body) throws {
      let tag = account.tag(of: body.subject)
      let topic = MessageTopic.device(account.id, tag)
      let message = try #require(seal.seal(kind, body, epoch: 1, on: topic, by: keys))
      summary.toggle(message, at: tag)
      roster.append([topic.text, hexadecimal(message.bytes)])
    }
    let devices = [Sample.device] + Sample.others.prefix(2)
    #expect(devices.map { account.tag(of: $0).bucket } == [6, 6, 2])
    for device in devices { try add(.record, try Sample.record(of: device, by: keys)) }
    var tombstone = try Sample.record(of: Sample.others[2], by: keys, counter: 8)
    tombstone.fields = Removal(.removed).fields(signingKey: keys.signingKey)
    try add(.tombstone, tombstone)
    let answer = try Twin.ask([
      "do": "summarize", "root": Twin.root, "seed": hexadecimal(0x20..<0x40),
      "device": hexadecimal(Sample.device.bytes), "roster": roster,
    ])
    #expect(answer["summary"] as? String == hexadecimal(summary.bytes))
    let topic = MessageTopic.digest(account.id)
    #expect(answer["topic"] as? String == topic.text)
    let told = try seal.open(bytes(try #require(answer["message"] as? String)), on: topic)
    #expect(told.kind == .digest && told.epoch == 1 && told.signer == keys.signingKey)
    #expect(told.body.fields[.digest] == summary.bytes)
  }
}
