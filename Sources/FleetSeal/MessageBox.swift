import CSodium
package import FleetWire

extension ReaderID {
  /// Creates the name of a reader from its X25519 key: BLAKE2b, 16 bytes.
  package init(of boxKey: PublicKey) {
    var hash = [UInt8](repeating: 0, count: 16)
    // Fails only for lengths out of range.
    _ = unsafe crypto_generichash(&hash, hash.count, boxKey.bytes, UInt64(PublicKey.length), nil, 0)
    self.init(high: UInt64(bigEndian: hash.prefix(8)), low: UInt64(bigEndian: hash.suffix(8)))
  }
}

/// Messages for one reader, such as a site, a sender, or the device that a sender answers. All of them have keys like a
/// device.
extension DeviceKeys {
  /// Signs a message, and seals it to a reader; nil for another kind, for fields that no reader would accept, and for a
  /// public key that is none.
  ///
  /// - Parameter reader: the X25519 key of the reader.
  package func box(
    _ kind: MessageKind, _ body: Body, to reader: PublicKey, on topic: MessageTopic
  ) -> SignedMessage? {
    let outline = Envelope(kind: kind, epoch: 0, nonce: [])
    guard kind.isBoxed, var plaintext = body.unsignedBytes(for: kind) else { return nil }
    // Tokens are secret. Every copy is wiped in place.
    defer { unsafe sodium_memzero(&plaintext, plaintext.count) }
    var signed = outline.signedBytes(on: topic, plaintext: plaintext)
    defer { unsafe sodium_memzero(&signed, signed.count) }
    let associated = outline.associatedData(on: topic)
    var content: [UInt8] = []
    // A growing array would leave copies in memory.
    content.reserveCapacity(associated.count + plaintext.count + Body.signatureLength)
    content += associated + plaintext + sign(signed)
    defer { unsafe sodium_memzero(&content, content.count) }
    var box = [UInt8](repeating: 0, count: content.count + Envelope.boxLength)
    guard unsafe crypto_box_seal(&box, content, UInt64(content.count), reader.bytes) == 0 else { return nil }
    let envelope = Envelope(kind: kind, epoch: 0, nonce: [], ciphertext: box)
    return SignedMessage(
      kind: kind, epoch: 0, body: body, signer: signingKey, digest: sha256(envelope.bytes), bytes: envelope.bytes)
  }

  /// Opens a message that was sealed to this reader for a topic, and checks its form and its signature.
  package func openBox(_ bytes: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    let envelope = try Envelope(parsing: bytes)
    guard envelope.kind.isBoxed, topic.admits(envelope.kind) else { throw .kind }
    var content = [UInt8](repeating: 0, count: envelope.ciphertext.count - Envelope.boxLength)
    defer { unsafe sodium_memzero(&content, content.count) }
    let associated = envelope.associatedData(on: topic)
    guard opened(envelope.ciphertext, into: &content), content.starts(with: associated) else { throw .seal }
    var plaintext = Array(content.dropFirst(associated.count))
    defer { unsafe sodium_memzero(&plaintext, plaintext.count) }
    return try envelope.message(plaintext, bytes, on: topic)
  }
}
