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
    #expect(rejection(changed(2, to: 2)) == .version)
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
    #expect(rejection([0x69, 0x46, 2, 1, 0, 0, 0, 1]) == .version)
  }
}
