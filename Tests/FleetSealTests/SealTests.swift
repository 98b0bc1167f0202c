import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Tests of sealed messages that were changed, moved or made by somebody else.
struct SealTests {
  private let account: AccountKeys
  private let keys: DeviceKeys
  private let seal: MessageSeal
  private let topic: MessageTopic
  private let message: SignedMessage

  init() throws {
    account = try Sample.account()
    keys = try Sample.keys()
    seal = MessageSeal(account)
    topic = .device(account.id, account.tag(of: Sample.device))
    message = try #require(seal.seal(.record, try Sample.record(by: keys), epoch: 1, on: topic, by: keys))
  }

  private func rejection(_ bytes: [UInt8], on topic: MessageTopic) -> Rejection? {
    do {
      _ = try seal.open(bytes, on: topic)
      return nil
    } catch {
      return error
    }
  }

  @Test func `a changed bit anywhere is noticed`() {
    for place in message.bytes.indices {
      var changed = message.bytes
      changed[place] ^= 1 << UInt8(place % 8)
      #expect(rejection(changed, on: topic) != nil, "byte \(place)")
    }
  }

  @Test func `a message on another topic is not opened`() {
    let other = account.tag(of: UUID(high: 1, low: 1))
    #expect(rejection(message.bytes, on: .device(account.id, other)) == .seal)
    #expect(rejection(message.bytes, on: .presence(account.id, account.tag(of: Sample.device))) == .kind)
  }

  @Test func `a record on the topic of another device is rejected even if it was sealed there`() throws {
    let other = MessageTopic.device(account.id, account.tag(of: UUID(high: 1, low: 1)))
    let moved = try #require(seal.seal(.record, message.body, epoch: 1, on: other, by: keys))
    #expect(rejection(moved.bytes, on: other) == .subject)
  }

  @Test func `a signature by another key than the named one is rejected`() throws {
    let thief = try Sample.keys(0x60)
    let forged = try #require(seal.seal(.record, message.body, epoch: 1, on: topic, by: thief))
    #expect(rejection(forged.bytes, on: topic) == .signature)
  }

  @Test func `a message of an unknown epoch is neither opened nor made`() throws {
    let next = EpochKey(number: 2, key: try #require(SecretKey.random()))
    let later = try #require(next.seal(.record, message.body, on: topic, by: keys))
    #expect(rejection(later.bytes, on: topic) == .epoch)
    #expect(try MessageSeal(account, epochs: [next]).open(later.bytes, on: topic) == later)
    #expect(seal.seal(.record, message.body, epoch: 2, on: topic, by: keys) == nil)
  }

  @Test func `another account cannot open a message`() throws {
    let other = try #require(AccountKeys(root: try Sample.secret(from: 1)))
    #expect(throws: Rejection.seal) { try MessageSeal(other).open(message.bytes, on: topic) }
  }

  @Test func `two seals of the same body differ`() throws {
    let again = try #require(seal.seal(.record, message.body, epoch: 1, on: topic, by: keys))
    #expect(again.bytes != message.bytes)
    #expect(try seal.open(again.bytes, on: topic).body == message.body)
  }

  @Test func `a secret is moved, and the array wiped`() throws {
    var bytes = [UInt8](repeating: 7, count: 32)
    let key = try #require(SecretKey(consuming: &bytes))
    #expect(bytes == [UInt8](repeating: 0, count: 32))
    #expect(key.copy() == [UInt8](repeating: 7, count: 32))
    var short = [UInt8](repeating: 7, count: 31)
    #expect(SecretKey(consuming: &short) == nil)
  }
}
