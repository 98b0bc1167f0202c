import FleetWire
import IdentityCore
import Testing

@testable import FleetService

/// The messages on their way to identityd.
struct StoringTests {
  private func message(
    _ device: UInt64, counter: UInt64, generation: UInt32 = 1, _ kind: MessageKind = .record,
    replacedBy successor: UInt64? = nil
  ) throws -> SignedMessage {
    let subject = UUID(high: 1, low: device)
    let key = try #require(PublicKey([UInt8](repeating: 1, count: 32)))
    let removal = successor.map { Removal(.replaced, successor: UUID(high: 1, low: $0)) }
    let body = Body(
      subject: subject, generation: generation, counter: counter, run: Run(high: 1, low: 1),
      time: Timestamp(milliseconds: 1), author: subject, fields: removal?.fields(signingKey: key) ?? Fields())
    let kind = removal == nil ? kind : .tombstone
    return SignedMessage(kind: kind, epoch: 1, body: body, signer: key, digest: [UInt8(counter & 255)], bytes: [])
  }

  /// Adds messages to a fresh list. This device is number 99, and no device has a record.
  private func waiting(_ messages: SignedMessage...) -> [UInt64] {
    var storing = Storing()
    for message in messages { _ = storing.add(message, own: UUID(high: 1, low: 99)) { _ in false } }
    return storing.waiting.map(\.body.counter)
  }

  @Test func `of the records of one device, only the last one waits`() throws {
    var storing = Storing()
    for counter in 1...1_000 as ClosedRange<UInt64> {
      #expect(try !storing.add(message(1, counter: counter), own: nil) { _ in true })
    }
    // One after the other, 32 devices are enough to be stored together.
    for device in 2...31 as ClosedRange<UInt64> {
      #expect(try !storing.add(message(device, counter: 1), own: nil) { _ in true })
    }
    #expect(try storing.add(message(32, counter: 1), own: nil) { _ in true })
    #expect(storing.waiting.map(\.body.counter) == [1_000] + [UInt64](repeating: 1, count: 31))
  }

  @Test func `a record replaces records that it outranks, and no removal`() throws {
    #expect(
      try waiting(
        message(1, counter: 1), message(1, counter: 2, .tombstone), message(1, counter: 3, generation: 2),
        message(1, counter: 4, generation: 3)) == [1, 2, 4])
    #expect(try waiting(message(1, counter: 2), message(1, counter: 1)) == [2])
    #expect(try waiting(message(1, counter: 9), message(1, counter: 1, generation: 2)) == [1])
  }

  @Test func `a tombstone waits for the record of the later identifier`() throws {
    #expect(try waiting(message(1, counter: 1, replacedBy: 2)) == [])
    // A further message about the device itself ends the wait.
    #expect(try waiting(message(1, counter: 1, replacedBy: 2), message(1, counter: 5, generation: 2)) == [1, 5])
    // A later tombstone for the same identifiers takes the place of the waiting one.
    #expect(try waiting(message(1, counter: 1, replacedBy: 2), message(1, counter: 3, replacedBy: 2)) == [])
    // A device has one earlier identifier.
    #expect(try waiting(message(1, counter: 1, replacedBy: 2), message(3, counter: 3, replacedBy: 2)) == [1])
    // This device stays in the list, and no device replaces itself.
    #expect(try waiting(message(99, counter: 1, replacedBy: 2)) == [1])
    #expect(try waiting(message(1, counter: 1, replacedBy: 1)) == [1])
  }

  @Test func `a tombstone that waited long enough is stored without the record`() throws {
    var storing = Storing()
    _ = try storing.add(message(1, counter: 1, replacedBy: 2), own: nil) { _ in false }
    #expect(!storing.isStored(UUID(high: 1, low: 1)))
    storing.retry(own: nil)
    #expect(storing.waiting.map(\.body.counter) == [1])
    #expect(!storing.awaitsSuccessors)
  }
}
