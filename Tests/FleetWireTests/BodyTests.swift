import IdentityCore
import Testing

@testable import FleetWire

struct BodyTests {
  private let body: Body

  init() throws {
    let key = try #require(PublicKey(UInt8(0)..<32))
    body = Body(
      subject: UUID(high: 1, low: 2), generation: 3, counter: 4, run: Run(high: 5, low: 6),
      time: Timestamp(milliseconds: 7), author: UUID(high: 8, low: 9),
      fields: DeviceDescription(
        name: "desk", signingKey: key, boxKey: key, joined: Timestamp(milliseconds: 10), home: Home(high: 11, low: 12),
        system: "Debian 13", twin: .copy
      ).fields)
  }

  /// Returns a plaintext with these bytes as fields, and a signature of zeros.
  private func plaintext(_ fields: [UInt8]) throws -> [UInt8] {
    let bytes = try #require(body.unsignedBytes(for: .record)).prefix(68) + fields
    return bytes + [UInt8](repeating: 0, count: 127 - (bytes.count + 63) % 128 + 64)
  }

  private func rejection(_ fields: [UInt8], kind: MessageKind = .who) throws -> Rejection? {
    do throws(Rejection) {
      _ = try Body(parsing: try plaintextOrStop(fields), kind: kind)
      return nil
    } catch {
      return error
    }
  }

  private func plaintextOrStop(_ fields: [UInt8]) throws(Rejection) -> [UInt8] {
    do { return try plaintext(fields) } catch { throw .length }
  }

  private let signingKey: [UInt8] = [2, 0, 32] + Array(0..<32)

  @Test func `a body is read as it was written`() throws {
    let unsigned = try #require(body.unsignedBytes(for: .record))
    #expect((unsigned.count + 64).isMultiple(of: 128))
    let read = try Body(parsing: unsigned + [UInt8](repeating: 0, count: 64), kind: .record)
    #expect(read == body)
    #expect(read.unsignedBytes(for: .record) == unsigned)
    let description = try #require(DeviceDescription(read.fields))
    #expect(description.name == "desk" && description.system == "Debian 13" && description.twin == .copy)
  }

  @Test func `a time far in the future is the latest one, and none is before 1970`() throws {
    var bytes = try #require(body.unsignedBytes(for: .record)) + [UInt8](repeating: 0, count: 64)
    bytes.replaceSubrange(44..<52, with: [UInt8](repeating: 0xFF, count: 8))
    #expect(try Body(parsing: bytes, kind: .record).time == Timestamp(milliseconds: .max))
    var early = body
    early.time = Timestamp(milliseconds: -7)
    let written = try #require(early.unsignedBytes(for: .record)) + [UInt8](repeating: 0, count: 64)
    #expect(try Body(parsing: written, kind: .record).time == Timestamp(milliseconds: 0))
  }

  @Test func `a removal is read as it was written`() throws {
    let key = try #require(PublicKey(UInt8(0)..<32))
    for removal in [Removal(.removed), Removal(.left), Removal(.replaced, successor: UUID(high: 3, low: 4))] {
      #expect(Removal(removal.fields(signingKey: key)) == removal)
    }
    var later = Removal(.left).fields(signingKey: key)
    later[.reason] = [77]
    #expect(Removal(later) == Removal(.removed))
  }

  @Test func `fields are in order, of known ones one each`() throws {
    #expect(try rejection(signingKey) == nil)
    #expect(try rejection(signingKey + signingKey) == .fields)
    #expect(try rejection([7, 0, 1, 1] + signingKey) == .fields)
    #expect(try rejection(signingKey + [99, 0, 0, 99, 0, 1, 5]) == nil)
    #expect(try rejection(signingKey + [99, 0, 0, 98, 0, 0]) == .fields)
  }

  @Test func `fields end within the message, with zeros behind them`() throws {
    #expect(try rejection(signingKey + [99, 0, 84] + [UInt8](repeating: 1, count: 84) + [100, 0]) == .fields)
    #expect(try rejection(signingKey + [99, 0xff, 0xff]) == .fields)
    #expect(try rejection(signingKey + [0, 0, 1]) == .fields)
    var full = try plaintext(signingKey)
    full.insert(contentsOf: [UInt8](repeating: 0, count: 128), at: 150)
    #expect(throws: Rejection.fields) { try Body(parsing: full, kind: .who) }
    // Exactly full, without the zero that ends the fields.
    let unended = signingKey + [99, 0, 86] + [UInt8](repeating: 1, count: 86)
    #expect(68 + unended.count + 64 == 256)
    #expect(try rejection(unended) == .fields)
    #expect(try rejection(signingKey + [99, 0, 85] + [UInt8](repeating: 1, count: 85)) == nil)
  }

  @Test func `known fields have known lengths`() throws {
    #expect(try rejection([2, 0, 31] + Array(0..<31)) == .fields)
    #expect(try rejection([1, 0, 0] + signingKey) == .fields)
    #expect(try rejection(signingKey + [7, 0, 2, 1, 1]) == .fields)
  }

  @Test func `a kind requires its fields`() throws {
    for kind in MessageKind.allCases where kind != .who {
      #expect(try rejection(signingKey, kind: kind) == .fields, "\(kind)")
    }
    #expect(try rejection([]) == .fields)
    #expect(try rejection(signingKey + [10, 0, 1, 1], kind: .tombstone) == nil)
  }

  @Test func `names are text`() throws {
    #expect(try rejection([1, 0, 1, 0xff] + signingKey) == .fields)
    #expect(try rejection([1, 0, 1, 0] + signingKey) == .fields)
    #expect(try rejection([1, 0, 2, 0xc3, 0xa4] + signingKey) == nil)
  }

  @Test func `placeholders are no devices, and generations begin at 1`() throws {
    let valid = try plaintext(signingKey)
    for range in [0..<16, 16..<20, 52..<68] {
      var changed = valid
      for place in range { changed[place] = 0 }
      #expect(throws: Rejection.fields) { try Body(parsing: changed, kind: .who) }
    }
  }

  @Test func `a body with a field that no device would accept is not encoded`() {
    for (field, count) in [(FieldType.name, 0), (.name, 256), (.system, 65), (.home, 15), (.twin, 2)] {
      var wrong = body
      wrong.fields[field] = [UInt8](repeating: 0x61, count: count)
      #expect(wrong.unsignedBytes(for: .record) == nil, "\(field) of \(count) bytes")
    }
    var longest = body
    longest.fields[.name] = [UInt8](repeating: 0x61, count: 255)
    #expect(longest.unsignedBytes(for: .record) != nil)
  }

  @Test func `a value that is taken out is no longer a field`() {
    var fields = body.fields
    #expect(fields.remove(.name) == Array("desk".utf8))
    #expect(fields[.name] == nil && fields.remove(.name) == nil)
    #expect(fields.all.count == body.fields.all.count - 1)
  }

  @Test func `fields that are too long for a message are refused`() throws {
    var long = body
    long.fields = try Body(
      parsing: try plaintext(signingKey + [99, 0x0e, 0xa0] + [UInt8](repeating: 1, count: 0xea0)), kind: .who
    ).fields
    #expect(long.unsignedBytes(for: .record)?.count == 31 * 128 - 64)
    long.fields[.name] = [UInt8](repeating: 0x61, count: 255)
    #expect(long.unsignedBytes(for: .record) == nil)
  }
}
