import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

@testable import FleetSeal

/// Tests with the published vector, which was made with another implementation.
struct VectorTests {
  /// Returns the record of the vector.
  private func record(of account: AccountKeys, on topic: MessageTopic, _ version: EnvelopeVersion = .one) throws
    -> SignedMessage
  {
    // In the vector, the signing key has this seed itself, and the box key is all zeros.
    let boxKey = try #require(PublicKey([UInt8](repeating: 0, count: 32)))
    // The vectors have the public key only, and nothing here opens a box.
    let seed = try Sample.secret(from: 0x20)
    let keys = try #require(DeviceKeys(signingSeed: seed, boxKey: boxKey, boxSeed: seed))
    return try #require(
      account.firstEpoch.seal(
        .record, try Sample.record(by: keys), version, on: topic, by: keys, nonce: Array(0x50...0x67)))
  }

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
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    #expect(topic.text.utf8.count == 82)
    let message = try record(of: account, on: topic)
    #expect(message.bytes.count == 304)
    #expect(
      hexadecimal(message.bytes.prefix(44))
        == "6946010100000001" + hexadecimal(0x50...0x67) + "78e2c15a9d379b7550f0c0ef")
    #expect(hexadecimal(message.digest) == "8bdec080890df2335e241c0463fce552f79259f4bcd8b50a0d22a103abfce9d9")
    #expect(try MessageSeal(account).open(message.bytes, on: topic) == message)
  }

  @Test func `a record of version 2 has the published bytes`() throws {
    let account = try Sample.account()
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    let message = try record(of: account, on: topic, .two)
    #expect(message.bytes.count == 336 && message.version == .two)
    #expect(
      hexadecimal(message.bytes.prefix(64))
        == "6946020100000001" + hexadecimal(0x50...0x67)
        + "1aca4308570b147971de3c6cd32abdeb625ac783b55e73865b903dec66ccade7")
    #expect(hexadecimal(message.digest) == "bb3e9d73ae01f9f2fe09baef518a39c3bf3ea7f5c04ce62b921a1ad392a7a7b8")
    #expect(try MessageSeal(account).open(message.bytes, on: topic) == message)
  }

  @Test func `the manual shows the values`() throws {
    let place = Document.root.appending(path: "packaging/man/identity-fleet-protocol.7")
    let page = try String(contentsOf: place, encoding: .utf8).replacing("\\-", with: "-")
    // A new line continues a value.
    let shown = String(page.filter { !$0.isWhitespace })
    let account = try Sample.account()
    let keys = try Sample.keys()
    let tag = account.tag(of: Sample.device)
    let message = try record(of: account, on: .device(account.id, tag))
    let second = try record(of: account, on: .device(account.id, tag), .two)
    let meeting = try #require(try JoinCode(parsing: "0123-4567-89AB-CDEX").meeting())
    let next = EpochKey(number: 0x1_9425, key: try Sample.secret(from: 0x60))
    let values = [
      "\(account.id)", "\(tag)", hexadecimal(account.firstEpoch.key.copy()), account.brokerPassword(in: next),
      account.brokerPassword(in: account.firstEpoch), hexadecimal(keys.signingKey.bytes),
      hexadecimal(keys.boxKey.bytes), hexadecimal(meeting.copy()), "0123-4567-89AB-CDEX",
      hexadecimal(message.bytes), hexadecimal(message.digest), hexadecimal(second.bytes), hexadecimal(second.digest),
      hexadecimal(try Envelope(parsing: second.bytes).commitment),
    ]
    for value in values { #expect(shown.contains(value), "\(value)") }
  }
}
