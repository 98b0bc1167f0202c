import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Messages for one reader.
struct MessageBoxTests {
  private let account: AccountKeys
  private let keys: DeviceKeys
  private let sender: DeviceKeys
  private let topic: MessageTopic
  private let body: Body
  private let message: SignedMessage

  init() throws {
    account = try Sample.account()
    keys = try Sample.keys()
    sender = try Sample.keys(0x60)
    topic = .tokens(ReaderID(of: sender.boxKey), account.tag(of: Sample.device))
    body = try Sample.tokens(by: keys)
    message = try #require(keys.box(.tokens, body, to: sender.boxKey, on: topic))
  }

  private func rejection(_ bytes: [UInt8], on topic: MessageTopic, by reader: DeviceKeys) -> Rejection? {
    do {
      _ = try reader.openBox(bytes, on: topic)
      return nil
    } catch {
      return error
    }
  }

  @Test func `only the reader opens a message, and only on its topic`() throws {
    let opened = try sender.openBox(message.bytes, on: topic)
    #expect(opened == message && opened.body == body && opened.signer == keys.signingKey)
    #expect(rejection(message.bytes, on: topic, by: keys) == .seal)
    let other = MessageTopic.tokens(ReaderID(of: sender.boxKey), account.tag(of: UUID(high: 1, low: 1)))
    #expect(rejection(message.bytes, on: other, by: sender) == .seal)
    let feedback = MessageTopic.feedback(ReaderID(of: sender.boxKey), account.tag(of: Sample.device))
    #expect(rejection(message.bytes, on: feedback, by: sender) == .kind)
    #expect(throws: Rejection.epoch) { try MessageSeal(account).open(message.bytes, on: topic) }
  }

  @Test func `a changed bit anywhere is noticed`() {
    for place in message.bytes.indices {
      var changed = message.bytes
      changed[place] ^= 1 << UInt8(place % 8)
      #expect(rejection(changed, on: topic, by: sender) != nil, "byte \(place)")
    }
  }

  @Test func `a message that another device signed is rejected`() throws {
    let forged = try #require(sender.box(.tokens, body, to: sender.boxKey, on: topic))
    #expect(rejection(forged.bytes, on: topic, by: sender) == .signature)
  }

  @Test func `no other kinds are boxed, and these are not sealed with a key of the account`() throws {
    let record = try Sample.record(by: keys)
    #expect(
      keys.box(.record, record, to: sender.boxKey, on: .device(account.id, account.tag(of: Sample.device))) == nil)
    #expect(EpochKey(number: 0, key: account.root).seal(.tokens, body, on: topic, by: keys) == nil)
    let nobody = try #require(PublicKey([UInt8](repeating: 0, count: 32)))
    #expect(keys.box(.tokens, body, to: nobody, on: topic) == nil)
    let code = EpochKey(number: 0, key: try Sample.secret(from: 0))
    #expect(throws: Rejection.epoch) { try code.open(message.bytes, on: topic) }
  }
}
