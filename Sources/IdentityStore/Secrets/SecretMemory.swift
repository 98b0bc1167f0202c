import CSodium
package import IdentityCore

/// The form in which a secret goes out.
package enum SecretForm {
  /// Base64 text, in an answer of the protocol.
  case base64
  /// The bytes of the secret.
  case bytes

  fileprivate func append(_ plain: UnsafePointer<UInt8>, count: Int, to output: inout [UInt8]) {
    switch self {
    case .base64: unsafe Base64.append(plain, count: count, to: &output)
    case .bytes: unsafe output.append(contentsOf: UnsafeBufferPointer(start: plain, count: count))
    }
  }
}

/// The guarded memory of one thread, with all operations on a secret in the clear.
///
/// A secret is in the clear in guarded memory only, which is wiped after each operation. A secret comes in encrypted
/// or as Base64 text. It goes out encrypted, or in a ``SecretForm`` to a peer that may have it.
package final class SecretMemory: SecretIntake, Sendable {
  /// The transit key, which encrypts secrets on their way through the daemon. It lives as long as the process.
  private let transit: CipherKey
  private let workspace: SecretWorkspace
  /// The range of the Base64 text of a secret.
  private static let text = 0..<Bound.lineLength
  /// The range of the decoded secret, after the text. It has room for the longest secret that has no more digits than one
  /// of the maximum length.
  private static let plain = text.upperBound..<text.upperBound + (Bound.secretLength + 2) / 3 * 3

  /// Allocates room for the secret of one request; nil if guarded memory cannot be allocated.
  init?(transit: CipherKey) {
    guard let workspace = SecretWorkspace(size: Self.plain.upperBound) else { return nil }
    self.transit = transit
    self.workspace = workspace
  }

  // MARK: Input

  /// Encrypts a secret that a request contains as Base64 text, with or without `=` at its end.
  package func encrypt(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    try unsafe workspace.use(Self.text) { (text, written) throws(SecretFault) in
      var span = unsafe MutableSpan(_unsafeStart: text, count: Self.text.count)
      let count = min(fill(&span), Self.text.count)
      // A text that did not fit has the length 0, although a part of it was written.
      if count > 0 { written = count }
      return try unsafe workspace.use(Self.plain) { (plain, written) throws(SecretFault) in
        // Four digits are three bytes (RFC 4648, section 4).
        written = count / 4 * 3 + 3
        if let length = unsafe Base64.decode(text, count: count, into: plain, room: Self.plain.count) {
          guard length <= Bound.secretLength else { throw .tooLong }
          return unsafe SealedSecret(bytes: transit.encrypt(plain, count: length, with: []), length: length)
        }
        // A text that does not fit is too long. Whether the rest of the text is valid Base64 is unknown.
        throw count > (Bound.secretLength + 2) / 3 * 4 ? .tooLong : .notBase64
      }
    }
  }

  // MARK: Output

  /// Appends a secret in a form.
  ///
  /// - Returns: false if this process did not encrypt the secret.
  package func append(_ secret: SealedSecret, as form: SecretForm, to output: inout [UInt8]) -> Bool {
    unsafe workspace.use(Self.plain) { plain, written in
      written = secret.length
      guard let length = unsafe decrypt(secret, into: plain) else { return false }
      unsafe form.append(plain, count: length, to: &output)
      return true
    }
  }

  /// Returns the UUID that is the text of a secret, ignoring white space around it; nil if the text is not a UUID.
  func identifier(in secret: SealedSecret) -> UUID? {
    unsafe workspace.use(Self.plain) { plain, written in
      written = secret.length
      guard let length = unsafe decrypt(secret, into: plain) else { return nil }
      let bytes = unsafe UnsafeBufferPointer(start: plain, count: length)
      guard let first = unsafe bytes.firstIndex(where: { $0 > 0x20 }),
        let last = unsafe bytes.lastIndex(where: { $0 > 0x20 })
      else { return nil }
      return unsafe UUID(parsing: Span(_unsafeElements: UnsafeBufferPointer(rebasing: bytes[first...last])))
    }
  }

  /// Returns the key that a secret contains; nil if the secret does not have the length of a key.
  func cipherKey(in secret: SealedSecret) -> CipherKey? {
    guard secret.length == CipherKey.length else { return nil }
    return unsafe workspace.use(Self.plain) { plain, written in
      written = secret.length
      guard let length = unsafe decrypt(secret, into: plain) else { return nil }
      var key = unsafe Array(UnsafeBufferPointer(start: plain, count: length))
      return CipherKey(consuming: &key)
    }
  }

  /// Decrypts a secret into guarded memory with room for its declared length, which is at most ``Bound/secretLength``.
  ///
  /// - Returns: the length of the secret; nil if this process did not encrypt it.
  func decrypt(_ secret: SealedSecret, into memory: UnsafeMutablePointer<UInt8>) -> Int? {
    guard secret.length <= Bound.secretLength, CipherKey.length(ofCiphertext: secret.bytes.count) == secret.length
    else {
      return nil
    }
    return unsafe transit.decrypt(secret.bytes[...], with: [], into: memory)
  }

  /// Encrypts a secret that is in other guarded memory.
  func encrypted(_ start: UnsafePointer<UInt8>, count: Int) -> SealedSecret {
    unsafe SealedSecret(bytes: transit.encrypt(start, count: count, with: []), length: count)
  }

  // MARK: Storage

  /// Returns a secret encrypted with a key of the store instead of the transit key.
  ///
  /// - Parameter associated: the associated data. The secret can be decrypted only together with it.
  /// - Returns: nil if this process did not encrypt the secret.
  func reencrypted(forStore secret: SealedSecret, with associated: [UInt8], _ key: CipherKey) -> [UInt8]? {
    unsafe workspace.use(Self.plain) { plain, written in
      written = secret.length
      guard let length = unsafe decrypt(secret, into: plain) else { return nil }
      return unsafe key.encrypt(plain, count: length, with: associated)
    }
  }

  /// Returns a stored secret encrypted with the transit key; nil if it is not as it was stored.
  func reencrypted(forTransit stored: [UInt8], with associated: [UInt8], _ key: CipherKey) -> SealedSecret? {
    guard stored.count <= Bound.secretLength + CipherKey.overhead else { return nil }
    return unsafe workspace.use(Self.plain) { plain, written in
      written = stored.count
      guard let length = unsafe key.decrypt(stored[...], with: associated, into: plain) else { return nil }
      return unsafe SealedSecret(bytes: transit.encrypt(plain, count: length, with: []), length: length)
    }
  }

  /// Appends a stored secret in a form.
  ///
  /// - Returns: false if the secret is not as it was stored.
  func append(
    stored: [UInt8], with associated: [UInt8], _ key: CipherKey, as form: SecretForm, to output: inout [UInt8]
  ) -> Bool {
    guard stored.count <= Bound.secretLength + CipherKey.overhead else { return false }
    return unsafe workspace.use(Self.plain) { plain, written in
      written = stored.count
      guard let length = unsafe key.decrypt(stored[...], with: associated, into: plain) else { return false }
      unsafe form.append(plain, count: length, to: &output)
      return true
    }
  }
}
