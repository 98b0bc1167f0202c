import IdentityCore
import Testing

@testable import FleetWire

struct EnvelopeTests {
  private let valid = Envelope(
    kind: .record, epoch: 1, nonce: Array(0..<24), ciphertext: [UInt8](repeating: 9, count: 272)
  ).bytes

  private func rejection(_ message: [UInt8]) -> Rejection? {
    do {
      _ = try Envelope(parsing: message)
      return nil
    } catch {
      return error
    }
  }

  private func changed(_ place: Int, to byte: UInt8) -> [UInt8] {
    var message = valid
    message[place] = byte
    return message
  }

  @Test func `a message is read as it was written`() throws {
    #expect(try Envelope(parsing: valid).bytes == valid)
    #expect(try Envelope(parsing: valid).kind == .record)
    #expect(try Envelope(parsing: valid).nonce == Array(0..<24))
  }

  @Test func `each fault of an envelope has its reason`() {
    #expect(rejection([]) == .length)
    #expect(rejection(changed(0, to: 0x68)) == .magic)
    #expect(rejection(changed(1, to: 0x68)) == .magic)
    #expect(rejection(changed(2, to: 3)) == .version)
    #expect(rejection(changed(2, to: 0)) == .version)
    #expect(rejection(changed(3, to: 0)) == .kind)
    #expect(rejection(changed(3, to: 255)) == .kind)
    #expect(rejection(changed(7, to: 0)) == .epoch)
    #expect(rejection(changed(3, to: 16)) == .epoch)
  }

  @Test func `a message has whole blocks, at least two and at most 31`() {
    func message(_ plaintextLength: Int) -> [UInt8] {
      Array(valid.prefix(32)) + [UInt8](repeating: 9, count: plaintextLength + 16)
    }
    for length in [0, 128, 255, 257, 300, 32 * 128] { #expect(rejection(message(length)) == .length, "\(length)") }
    for blocks in 2...31 { #expect(rejection(message(128 * blocks)) == nil, "\(blocks)") }
    #expect(message(31 * 128).count == 4_016)
    for length in valid.indices { #expect(rejection(Array(valid.prefix(length))) != nil, "\(length)") }
  }

  @Test func `a message for one reader has no nonce, no epoch, and up to 32 KiB`() throws {
    let boxed = Envelope(kind: .tokens, epoch: 0, nonce: [], ciphertext: [UInt8](repeating: 9, count: 400)).bytes
    #expect(try Envelope(parsing: boxed).bytes == boxed && boxed.count == 408)
    var changed = boxed
    changed[7] = 1
    #expect(rejection(changed) == .epoch)
    #expect(rejection(Array(boxed.prefix(8 + 48 + 8 + 256))) == .length)
    let long = boxed + [UInt8](repeating: 9, count: 32_768 - boxed.count)
    #expect(rejection(long) == nil)
    #expect(rejection(long + [9]) == .length)
  }

  @Test func `a message of a later version is recognised whatever its length`() {
    #expect(rejection([0x69, 0x46, 3, 1, 0, 0, 0, 1]) == .version)
  }
}

/// Envelopes of version 2.
struct CommittedEnvelopeTests {
  private func message(_ kind: MessageKind = .record, blocks: Int = 2) -> [UInt8] {
    Envelope(
      .two, kind: kind, epoch: kind.isOutsideEpochs ? 0 : 1, nonce: Array(0..<24), commitment: Array(100..<132),
      ciphertext: [UInt8](repeating: 9, count: 128 * blocks + 16)
    ).bytes
  }

  @Test func `a message with a commitment is read as it was written`() throws {
    let envelope = try Envelope(parsing: message())
    #expect(envelope.bytes == message() && envelope.version == .two && message().count == 336)
    #expect(envelope.nonce == Array(0..<24) && envelope.commitment == Array(100..<132))
    #expect(envelope.ciphertext.count == 272)
  }

  @Test func `it is as long as a message of version 1 at most, so it has a block less for its fields`() throws {
    for blocks in 2...30 { #expect(throws: Never.self, "\(blocks)") { try Envelope(parsing: message(blocks: blocks)) } }
    #expect(message(blocks: 30).count == 3_920)
    for blocks in [1, 31] { #expect(throws: Rejection.length) { try Envelope(parsing: message(blocks: blocks)) } }
    #expect(throws: Rejection.length) { try Envelope(parsing: message().dropLast()) }
  }

  @Test func `a kind outside of epochs has version 1 only, until a later release writes another one`() {
    for kind in MessageKind.allCases {
      let reason: Rejection? = kind.isOutsideEpochs ? .version : nil
      do {
        _ = try Envelope(parsing: message(kind))
        #expect(reason == nil, "\(kind)")
      } catch {
        #expect(error == reason, "\(kind)")
      }
    }
  }

  @Test func `each part of the bytes that are signed or hashed has its length in front`() {
    let account = AccountID(high: 1, low: 2)
    let topic = MessageTopic.who(account)
    let envelope = Envelope(.two, kind: .who, epoch: 7, nonce: Array(0..<24), commitment: Array(100..<132))
    let context =
      [0, 0, 0, 8] + envelope.header + [0, 0, 0, UInt8(topic.text.utf8.count)] + Array(topic.text.utf8)
    #expect(envelope.header == [0x69, 0x46, 2, 4, 0, 0, 0, 7])
    #expect(envelope.associatedData(on: topic) == context)
    let label = Array("identity-fleet/2".utf8)
    let nonce = [0, 0, 0, 24] + Array<UInt8>(0..<24)
    #expect(envelope.committedBytes(on: topic) == label + context + nonce)
    let seal = nonce + [0, 0, 0, 32] + Array(100..<132)
    #expect(envelope.signedBytes(on: topic, plaintext: [5, 6]) == label + context + seal + [0, 0, 0, 2, 5, 6])
  }
}
