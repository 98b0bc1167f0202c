import CSodium
import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Sealed messages of version 2, which commit to their key.
struct CommitmentTests {
  private let account: AccountKeys
  private let keys: DeviceKeys
  private let topic: MessageTopic
  private let body: Body
  private let nonce = Array<UInt8>(0x50...0x67)

  init() throws {
    account = try Sample.account()
    keys = try Sample.keys()
    topic = .device(account.id, account.tag(of: Sample.device))
    body = try Sample.record(by: keys)
  }

  private func message(_ key: EpochKey? = nil, on topic: MessageTopic? = nil, _ nonce: [UInt8]? = nil) throws -> [UInt8]
  {
    try #require(
      (key ?? account.firstEpoch).seal(
        .record, body, .two, on: topic ?? self.topic, by: keys, nonce: nonce ?? self.nonce)
    ).bytes
  }

  private func commitment(_ message: [UInt8]) throws -> [UInt8] { try Envelope(parsing: message).commitment }

  @Test func `it is opened, and no bit of it can be changed`() throws {
    let seal = MessageSeal(account)
    let sealed = try message()
    let opened = try seal.open(sealed, on: topic)
    #expect(opened.bytes == sealed && opened.body == body && opened.version == .two)
    for place in sealed.indices {
      var changed = sealed
      changed[place] ^= 1 << UInt8(place % 8)
      #expect(throws: (any Error).self, "byte \(place)") { try seal.open(changed, on: topic) }
    }
    // Neither is a message of the other version.
    var former = sealed
    former[2] = 1
    former.removeSubrange(32..<64)
    #expect(throws: Rejection.seal) { try seal.open(former, on: topic) }
  }

  @Test func `the commitment is to the key, the header, the topic and the nonce`() throws {
    let own = try commitment(message())
    let next = EpochKey(number: 1, key: try Sample.secret(from: 0x80))
    let other = MessageTopic.device(account.id, account.tag(of: Sample.others[0]))
    var later = nonce
    later[23] ^= 1
    for changed in [
      try message(next), try message(on: other), try message(nil, later),
      try message(EpochKey(number: 2, key: account.firstEpoch.key)),
    ] {
      #expect(try commitment(changed) != own && commitment(changed).count == 32)
    }
    #expect(try commitment(message()) == own)
  }

  /// The seal under the commitment alone would open this message.
  @Test func `a message with the commitment to another key is not opened`() throws {
    var sealed = try message()
    sealed.replaceSubrange(
      32..<64, with: try commitment(message(EpochKey(number: 1, key: try Sample.secret(from: 0x80)))))
    #expect(throws: Rejection.seal) { try MessageSeal(account).open(sealed, on: topic) }
  }

  /// With the key of the epoch, but not with that of the author.
  @Test func `nobody else can seal a signed plaintext anew`() throws {
    let key = account.firstEpoch
    for version in EnvelopeVersion.allCases {
      func plaintext(_ envelope: Envelope) -> [UInt8] {
        let associated = envelope.associatedData(on: topic)
        var plaintext = [UInt8](repeating: 0, count: envelope.ciphertext.count - Envelope.sealLength)
        unsafe key.withMessageKey(of: envelope, on: topic) { key, _ in
          _ = unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
            &plaintext, nil, nil, envelope.ciphertext, UInt64(envelope.ciphertext.count), associated,
            UInt64(associated.count), envelope.nonce, key)
        }
        return plaintext
      }
      let sealed = try #require(key.seal(.record, body, version, on: topic, by: keys, nonce: nonce))
      let signed = plaintext(try Envelope(parsing: sealed.bytes))
      #expect(signed.prefix(16).elementsEqual(Sample.device.bytes))
      var copy = Envelope(version, kind: .record, epoch: 1, nonce: Array(0x60...0x77))
      let associated = copy.associatedData(on: topic)
      var ciphertext = [UInt8](repeating: 0, count: signed.count + Envelope.sealLength)
      copy.commitment = unsafe key.withMessageKey(of: copy, on: topic) { key, commitment in
        _ = unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
          &ciphertext, nil, signed, UInt64(signed.count), associated, UInt64(associated.count), nil, copy.nonce, key)
        return commitment
      }
      copy.ciphertext = ciphertext
      switch version {
      case .one: #expect(try key.open(copy.bytes, on: topic).body == body)
      case .two: #expect(throws: Rejection.signature) { try key.open(copy.bytes, on: topic) }
      }
    }
  }

  @Test func `fields that leave no room for the commitment, and other kinds, are not sealed`() throws {
    var long = body
    long.fields[.name] = [UInt8](repeating: 0x61, count: 255)
    let place = CarriedToken.Place(app: "org.example.mail", provider: "apns")
    let value = Text(String(repeating: "a", count: 3_400))
    long.fields.set(.token, [CarriedToken(place, environment: "production", topic: "org.example.mail", value: value)])
    let key = account.firstEpoch
    let (first, second) = (
      key.seal(.record, long, on: topic, by: keys), key.seal(.record, long, .two, on: topic, by: keys)
    )
    #expect(first?.bytes.count == 4_016 && second == nil)
    let meeting = try #require(JoinCode.Meeting.random())
    #expect(meeting.key.seal(.answer, body, .two, on: .answer(meeting.rendezvous), by: keys) == nil)
  }
}
