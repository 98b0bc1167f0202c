import CSodium
package import FleetWire

/// The seal of an account's messages: its keys, and those of the epochs that the device knows.
package struct MessageSeal: Sendable {
  /// The keys of the account.
  package let account: AccountKeys
  private let epochs: [UInt32: EpochKey]

  /// Creates the seal of an account. The first epoch needs no mention.
  package init(_ account: AccountKeys, epochs: [EpochKey] = []) {
    self.account = account
    self.epochs = Dictionary(([account.firstEpoch] + epochs).map { ($0.number, $0) }) { $1 }
  }

  /// Signs and seals a message under the key of a known epoch.
  ///
  /// - Returns: nil for an unknown epoch, and for fields that no device would accept.
  package func seal(
    _ kind: MessageKind, _ body: Body, epoch: UInt32, _ version: EnvelopeVersion = .one, on topic: MessageTopic,
    by author: DeviceKeys
  ) -> SignedMessage? {
    guard let key = epochs[epoch] else { return nil }
    return key.seal(kind, body, version, on: topic, by: author)
  }

  /// Opens a message on a topic of the account, and checks everything that needs no knowledge of the roster.
  package func open(_ bytes: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    let envelope = try Envelope(parsing: bytes)
    guard topic.admits(envelope.kind) else { throw .kind }
    guard let key = epochs[envelope.epoch] else { throw .epoch }
    let message = try key.open(envelope, bytes, on: topic)
    if let tag = topic.tag {
      guard account.tag(of: message.body.subject) == tag else { throw .subject }
    }
    return message
  }
}

extension EpochKey {
  /// Signs and seals a message; nil for fields that no device would accept.
  package func seal(
    _ kind: MessageKind, _ body: Body, _ version: EnvelopeVersion = .one, on topic: MessageTopic, by author: DeviceKeys
  ) -> SignedMessage? {
    var nonce = [UInt8](repeating: 0, count: Envelope.nonceLength)
    unsafe randombytes_buf(&nonce, nonce.count)
    return seal(kind, body, version, on: topic, by: author, nonce: nonce)
  }

  /// Seals a message with a nonce, which must not be used twice.
  func seal(
    _ kind: MessageKind, _ body: Body, _ version: EnvelopeVersion = .one, on topic: MessageTopic, by author: DeviceKeys,
    nonce: [UInt8]
  ) -> SignedMessage? {
    var envelope = Envelope(version, kind: kind, epoch: number, nonce: nonce)
    guard !kind.isBoxed, version == .one || !kind.isOutsideEpochs, var plaintext = body.unsignedBytes(for: kind) else {
      return nil
    }
    // The plaintext of an invitation contains keys. Every copy is wiped in place, so nothing may share its memory then.
    defer { unsafe sodium_memzero(&plaintext, plaintext.count) }
    // The commitment takes the place of a block of fields.
    guard Envelope.overhead(version) + plaintext.count + Body.signatureLength <= Envelope.longest else { return nil }
    let associated = envelope.associatedData(on: topic)
    var ciphertext = [UInt8](repeating: 0, count: plaintext.count + Body.signatureLength + Envelope.sealLength)
    unsafe withMessageKey(of: envelope, on: topic) { key, commitment in
      envelope.commitment = commitment
      var signed = envelope.signedBytes(on: topic, plaintext: plaintext)
      defer { unsafe sodium_memzero(&signed, signed.count) }
      plaintext += author.sign(signed)
      // Always returns 0.
      _ = unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
        &ciphertext, nil, plaintext, UInt64(plaintext.count), associated, UInt64(associated.count), nil, nonce, key)
    }
    envelope.ciphertext = ciphertext
    return SignedMessage(
      kind: kind, epoch: number, body: body, signer: author.signingKey, digest: sha256(envelope.bytes),
      bytes: envelope.bytes)
  }

  /// Opens a message that this key sealed for a topic, and checks its form and its signature.
  package func open(_ bytes: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    let envelope = try Envelope(parsing: bytes)
    guard topic.admits(envelope.kind) else { throw .kind }
    return try open(envelope, bytes, on: topic)
  }

  /// Opens a message of which the envelope has been parsed.
  func open(_ envelope: Envelope, _ bytes: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    guard envelope.epoch == number, !envelope.kind.isBoxed else { throw .epoch }
    let associated = envelope.associatedData(on: topic)
    var plaintext = [UInt8](repeating: 0, count: envelope.ciphertext.count - Envelope.sealLength)
    // The plaintext of an invitation contains keys. Every copy is wiped in place, so nothing may share its memory then.
    defer { unsafe sodium_memzero(&plaintext, plaintext.count) }
    let code = unsafe withMessageKey(of: envelope, on: topic) { key, commitment in
      guard commitment.count == envelope.commitment.count,
        unsafe sodium_memcmp(commitment, envelope.commitment, commitment.count) == 0
      else { return Int32(-1) }
      return unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
        &plaintext, nil, nil, envelope.ciphertext, UInt64(envelope.ciphertext.count), associated,
        UInt64(associated.count), envelope.nonce, key)
    }
    guard code == 0 else { throw .seal }
    return try envelope.message(plaintext, bytes, on: topic)
  }

  /// Calls a closure with the key that seals one message, and with the commitment to it. The key is wiped afterwards.
  ///
  /// XChaCha20-Poly1305 does not commit to its key: whoever knows two keys can make one message that both open. In version
  /// 2, both halves of a keyed BLAKE2b hash are used, one as the key and one as the commitment, so that two keys with the
  /// same commitment would be a collision of the hash.
  func withMessageKey<Result>(
    of envelope: Envelope, on topic: MessageTopic, _ body: (UnsafePointer<UInt8>, _ commitment: [UInt8]) -> Result
  ) -> Result {
    unsafe withSealKey(of: envelope.kind, envelope.version) { key in
      guard envelope.version != .one else { return unsafe body(key, []) }
      let input = envelope.committedBytes(on: topic)
      var hash = [UInt8](repeating: 0, count: SecretKey.length + envelope.version.commitmentLength)
      defer { unsafe sodium_memzero(&hash, hash.count) }
      // Fails only for lengths out of range.
      _ = unsafe crypto_generichash(&hash, hash.count, input, UInt64(input.count), key, SecretKey.length)
      return unsafe body(hash, Array(hash[SecretKey.length...]))
    }
  }
}

extension Envelope {
  /// Returns the message with a plaintext that was opened, after a check of its form and its signature. The caller wipes
  /// the plaintext.
  func message(_ plaintext: [UInt8], _ bytes: [UInt8], on topic: MessageTopic) throws(Rejection) -> SignedMessage {
    let body = try Body(parsing: plaintext, kind: kind)
    guard let signer = body.fields[.signingKey].flatMap({ PublicKey($0) }) else { throw .fields }
    var signed = signedBytes(on: topic, plaintext: plaintext.dropLast(Body.signatureLength))
    defer { unsafe sodium_memzero(&signed, signed.count) }
    guard isValid(Array(plaintext.suffix(Body.signatureLength)), of: signed, under: signer) else { throw .signature }
    return SignedMessage(kind: kind, epoch: epoch, body: body, signer: signer, digest: sha256(bytes), bytes: bytes)
  }
}

/// Returns the SHA-256 of a message.
package func sha256(_ bytes: [UInt8]) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
  // Always returns 0.
  _ = unsafe crypto_hash_sha256(&digest, bytes, UInt64(bytes.count))
  return digest
}
