import FleetWire
import IdentityCore
import Testing

@testable import FleetService

/// The messages on their way to identityd.
@Suite struct StoringTests {
  private func message(
    _ device: UInt64, counter: UInt64, generation: UInt32 = 1, _ kind: MessageKind = .record
  ) throws -> SignedMessage {
    let subject = UUID(high: 1, low: device)
    let body = Body(
      subject: subject, generation: generation, counter: counter, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: subject, fields: Fields())
    let key = try #require(PublicKey([UInt8](repeating: 1, count: 32)))
    return SignedMessage(kind: kind, epoch: 1, body: body, signer: key, digest: [UInt8(counter & 255)], bytes: [])
  }

  @Test func `of the records of one device, only the last one waits`() throws {
    var storing = Storing()
    for counter in 1...1_000 as ClosedRange<UInt64> {
      #expect(try !storing.add(message(1, counter: counter)) { _ in true })
    }
    // One after the other, 32 devices are enough to be stored together.
    for device in 2...31 as ClosedRange<UInt64> { #expect(try !storing.add(message(device, counter: 1)) { _ in true }) }
    #expect(try storing.add(message(32, counter: 1)) { _ in true })
    #expect(storing.waiting.map(\.body.counter) == [1_000] + [UInt64](repeating: 1, count: 31))
  }

  @Test func `a removal and another generation replace nothing`() throws {
    var storing = Storing()
    for message in [
      try message(1, counter: 1), try message(1, counter: 2, .tombstone), try message(1, counter: 3, generation: 2),
      try message(1, counter: 4, generation: 2),
    ] { _ = storing.add(message) { _ in true } }
    #expect(storing.waiting.map(\.body.counter) == [1, 2, 4])
  }
}
