import IdentityCore
import Testing

@testable import FleetWire

struct CarriedTests {
  private let app = ReportedApp(app: "org.example.mail", version: "2.1", build: "")
  private let token = CarriedToken(
    CarriedToken.Place(app: "org.example.mail", provider: "apns"), environment: "production", topic: "", value: "abc")

  @Test func `apps and tokens are read as they were written, and in their order`() throws {
    let other = CarriedToken(CarriedToken.Place(app: "b", provider: "fcm"), value: "é")
    var fields = Fields()
    fields.set(.token, [token, other])
    fields.set([app])
    #expect(fields.apps == [app])
    #expect(fields.tokens(.token) == [token, other] && fields.tokens(.invalidToken) == [])
    #expect(fields.all.map(\.type) == [30, 31, 31])
    fields.set(.token, [other])
    #expect(fields.tokens(.token) == [other])
    #expect(
      app.field
        == [0, 16] + Array("org.example.mail".utf8) + [0, 3] + Array("2.1".utf8) + [0, 0])
  }

  @Test func `other bytes are no app and no token`() {
    for length in app.field.indices { #expect(ReportedApp(Array(app.field.prefix(length))) == nil, "\(length)") }
    for length in token.field.indices { #expect(CarriedToken(Array(token.field.prefix(length))) == nil, "\(length)") }
    #expect(ReportedApp(app.field + [0]) == nil && ReportedApp(app.field + [0, 0]) == nil)
    #expect(ReportedApp([0, 0, 0, 0, 0, 0]) == nil)
    #expect(CarriedToken([0, 1, 97, 0, 1, 98, 0, 0, 0, 0, 0, 0]) == nil)
    #expect(ReportedApp([0, 1, 0xff, 0, 0, 0, 0]) == nil)
    var fields = Fields()
    fields.set(.token, [token.field, [1, 2, 3]])
    #expect(fields.tokens(.token) == nil)
  }

  @Test func `an app has one token of a provider`() {
    var fields = Fields()
    fields.set(.token, [token, CarriedToken(token.place, value: "other")])
    #expect(fields.tokens(.token) == nil)
  }

  @Test func `a body for one reader may have several fields of a type, and 32 KiB`() throws {
    let key = try #require(PublicKey(UInt8(0)..<32))
    var body = Body(
      subject: UUID(high: 1, low: 2), generation: 3, counter: 4, run: Run(high: 5, low: 6),
      time: Timestamp(milliseconds: 7), author: UUID(high: 8, low: 9), fields: Fields())
    body.fields[.signingKey] = key.bytes
    body.fields[.boxKey] = key.bytes
    let value = Text(String(repeating: "t", count: 4_096))
    body.fields.set(.token, (0..<7).map { CarriedToken(.init(app: "a", provider: Text("p\($0)")), value: value) })
    let bytes = try #require(body.unsignedBytes(for: .tokens))
    let read = try Body(parsing: bytes + [UInt8](repeating: 0, count: 64), kind: .tokens)
    #expect(read == body && read.fields.tokens(.token)?.count == 7)
    #expect(body.unsignedBytes(for: .record) == nil)
    #expect(throws: Rejection.length) {
      try Body(parsing: bytes + [UInt8](repeating: 0, count: 64), kind: .record)
    }
    body.fields.set(.token, (0..<8).map { CarriedToken(.init(app: "a", provider: Text("p\($0)")), value: value) })
    #expect(body.unsignedBytes(for: .tokens) == nil)
  }

  @Test func `proof keys are read as they were written, at most eight, and no issuer that JSON would escape`() throws {
    let points = (1...9).map { Array(repeating: UInt8($0), count: 64) }
    var fields = Fields()
    let keys = try #require(PublishedKeys(issuer: "https://id.example.org/x", points: points))
    keys.add(to: &fields)
    #expect(fields.all.map(\.type) == Array(repeating: 33, count: 8) + [34])
    #expect(PublishedKeys(fields)?.points == Array(points.prefix(8)) && PublishedKeys(fields) == keys)
    fields.set(.proofKey, points)
    #expect(PublishedKeys(fields)?.points.count == 8)
    for issuer in ["a\"b", "a\\b", "a b", "é", "a\n"] {
      #expect(PublishedKeys(issuer: Text(issuer), points: points) == nil, "\(issuer)")
    }
    fields.set(.proofKey, [] as [[UInt8]])
    #expect(PublishedKeys(fields) == nil && PublishedKeys(Fields()) == nil)
  }

  @Test func `an issuer names a device by its whole identifier`() throws {
    let device = try #require(UUID("557e5958-d390-4cbf-b928-2a2b19a1399a"))
    func names(_ issuer: String) -> Bool? {
      PublishedKeys(issuer: Text(issuer), points: [Array(repeating: 1, count: 64)])?.names(device)
    }
    #expect(names("urn:uuid:\(device)") == true && names("https://id.example.org/\(device)/") == true)
    #expect(names("https://id.example.org") == false && names("\(device)".dropLast().description) == false)
    #expect(names("urn:uuid:00000000-0000-4000-8000-000000000001") == false)
  }
}
