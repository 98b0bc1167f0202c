import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// Tests with the published vector, which was made with another implementation.
struct VectorTests {
  @Test func `the names of the account and of the device follow from the root`() throws {
    let account = try Sample.account()
    #expect("\(account.id)" == "7ef5b1f00fbbc099d18e604def9e140e")
    #expect("\(account.tag(of: Sample.device))" == "6bdae793b9bc58f40d1de9234e371dcd")
    let key = unsafe account.firstEpoch.withSealKey(of: .record) {
      unsafe Array(UnsafeBufferPointer(start: $0, count: 32))
    }
    #expect(hexadecimal(key) == "6d241384bf39e34ef157bfdbebb7a4509a094b3ee2aac99a9fef17456f891978")
  }

  @Test func `a record has the published bytes`() throws {
    let account = try Sample.account()
    // In the vector, the signing key has this seed itself, and the box key is all zeros.
    let boxKey = try #require(PublicKey([UInt8](repeating: 0, count: 32)))
    // The vectors have the public key only, and nothing here opens a box.
    let seed = try Sample.secret(from: 0x20)
    let keys = try #require(DeviceKeys(signingSeed: seed, boxKey: boxKey, boxSeed: seed))
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    #expect(topic.text.utf8.count == 82)
    let message = try #require(
      account.firstEpoch.seal(
        .record, try Sample.record(by: keys), on: topic, by: keys, nonce: Array(0x50...0x67)))
    #expect(message.bytes.count == 304)
    #expect(
      hexadecimal(message.bytes.prefix(44))
        == "6946010100000001" + hexadecimal(0x50...0x67) + "78e2c15a9d379b7550f0c0ef")
    #expect(hexadecimal(message.digest) == "8bdec080890df2335e241c0463fce552f79259f4bcd8b50a0d22a103abfce9d9")
    #expect(try MessageSeal(account).open(message.bytes, on: topic) == message)
  }
}
