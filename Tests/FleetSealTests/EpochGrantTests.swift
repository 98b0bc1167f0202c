import FleetWire
import Testing

@testable import FleetSeal

struct EpochGrantTests {
  @Test func `only the device to which a key was sealed can open the box`() throws {
    let keys = try Sample.keys()
    let epoch = EpochKey(number: 0x1_0001, key: try Sample.secret(from: 0x80))
    let box = try #require(epoch.boxed(to: keys.boxKey))
    #expect(box.count == 80 && EpochKey.boxLength == 80)
    #expect(keys.unboxed(box)?.copy() == Array(0x80..<0xa0))
    #expect(try Sample.keys(0x60).unboxed(box) == nil)
    for place in box.indices {
      var changed = box
      changed[place] ^= 1
      #expect(keys.unboxed(changed) == nil, "byte \(place)")
    }
    #expect(keys.unboxed(Array(box.dropLast())) == nil)
    #expect(epoch.boxed(to: keys.boxKey) != box)
    // A key with which nobody can share a secret.
    #expect(epoch.boxed(to: try #require(PublicKey([UInt8](repeating: 0, count: 32)))) == nil)
  }

  @Test func `a removed device cannot read the epoch after it`() throws {
    let account = try Sample.account()
    let keys = try Sample.keys()
    let next = EpochKey(number: 0x1_0001, key: try #require(SecretKey.random()))
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    let member = MessageSeal(account, epochs: [next])
    let message = try #require(
      member.seal(.record, try Sample.record(by: keys), epoch: next.number, on: topic, by: keys))
    #expect(try member.open(message.bytes, on: topic) == message)
    #expect(throws: Rejection.epoch) { try MessageSeal(account).open(message.bytes, on: topic) }
    // The number alone does not help.
    let guess = EpochKey(number: next.number, key: account.firstEpoch.key)
    #expect(throws: Rejection.seal) { try MessageSeal(account, epochs: [guess]).open(message.bytes, on: topic) }
  }
}
