import FleetWire
import IdentityCore

/// Messages of the fleet: the envelope, the plaintext of each kind, and topics.
final class FleetMessageTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    if let envelope = try? Envelope(parsing: input) {
      try require(envelope.bytes == input, "an envelope has two forms")
    }
    for kind in MessageKind.allCases {
      guard let body = try? Body(parsing: input, kind: kind) else { continue }
      try require(
        body.unsignedBytes(for: kind) == Array(input.dropLast(Body.signatureLength)),
        "the plaintext of a \(kind) has two forms")
      try check(body, of: kind)
    }
    let text = String(decoding: input, as: UTF8.self)
    if let topic = MessageTopic(parsing: text) {
      try require(topic.text == text, "a topic has two forms")
    }
  }

  /// Checks that the content can be read, and written again.
  private func check(_ body: Body, of kind: MessageKind) throws {
    if kind == .record {
      guard let description = DeviceDescription(body.fields) else { throw Finding("a record lacks a field") }
      let again = DeviceDescription(description.fields)
      try require(again == description, "a description is read as \(description) and then as \(again as Any)")
    }
    if let apps = body.fields.apps, let tokens = body.fields.tokens(.token) {
      var again = body.fields
      again.set(apps)
      again.set(.token, tokens)
      try require(again == body.fields, "a field of an app or of a token has two forms")
    }
    if kind == .tombstone {
      guard let removal = Removal(body.fields), let key = body.fields[.signingKey].flatMap({ PublicKey($0) }) else {
        throw Finding("a tombstone lacks a field")
      }
      try require(Removal(removal.fields(signingKey: key)) == removal, "a removal is read as another one")
    }
  }
}
