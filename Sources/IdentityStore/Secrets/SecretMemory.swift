import CSodium
package import IdentityCore

/// The guarded memory of one thread, with all operations on a secret in the clear.
///
/// A secret is in the clear in guarded memory only, which is wiped after each operation. A secret comes in sealed or as
/// Base64 text. It goes out sealed, or as Base64 text to a peer that may have it.
package final class SecretMemory: SecretIntake, Sendable {
  /// The transit key, which seals secrets on their way through the daemon. It lives as long as the process.
  private let transit: SealingKey
  private let workspace: SecretWorkspace
  /// The range of the Base64 text of a secret.
  private static let text = 0..<Bound.lineLength
  /// The range of the decoded secret, after the text.
  private static let plain = text.upperBound..<text.upperBound + Bound.secretLength + 1

  /// Allocates room for the secret of one request; nil if guarded memory cannot be allocated.
  init?(transit: SealingKey) {
    guard let workspace = SecretWorkspace(size: Self.plain.upperBound) else { return nil }
    self.transit = transit
    self.workspace = workspace
  }

  // MARK: Input

  /// Seals a secret that a request contains as Base64 text, with or without `=` at its end.
  package func seal(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    try unsafe workspace.use(Self.text) { (text) throws(SecretFault) in
      var span = unsafe MutableSpan(_unsafeStart: text, count: Self.text.count)
      let count = min(fill(&span), Self.text.count)
      return try unsafe workspace.use(Self.plain) { (plain) throws(SecretFault) in
        if let length = unsafe Base64.decode(text, count: count, into: plain, room: Self.plain.count) {
          guard length <= Bound.secretLength else { throw .tooLong }
          return unsafe SealedSecret(bytes: transit.seal(plain, count: length, with: []), length: length)
        }
        // A text that does not fit is too long. Whether the rest of the text is valid Base64 is unknown.
        throw count > (Bound.secretLength + 2) / 3 * 4 ? .tooLong : .notBase64
      }
    }
  }

  // MARK: Output

  /// Appends the Base64 text of a secret.
  ///
  /// - Returns: false if this process did not seal the secret.
  package func appendBase64(of secret: SealedSecret, to output: inout [UInt8]) -> Bool {
    unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return false }
      unsafe Base64.append(plain, count: length, to: &output)
      return true
    }
  }

  /// Returns the UUID that is the text of a secret, ignoring white space around it; nil if the text is not a UUID.
  func identifier(in secret: SealedSecret) -> UUID? {
    unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return nil }
      let bytes = unsafe UnsafeBufferPointer(start: plain, count: length)
      guard let first = unsafe bytes.firstIndex(where: { $0 > 0x20 }),
        let last = unsafe bytes.lastIndex(where: { $0 > 0x20 })
      else { return nil }
      return unsafe UUID(parsing: Span(_unsafeElements: UnsafeBufferPointer(rebasing: bytes[first...last])))
    }
  }

  /// Returns the key that a secret contains; nil if the secret does not have the length of a key.
  func sealingKey(in secret: SealedSecret) -> SealingKey? {
    guard secret.length == SealingKey.length else { return nil }
    return unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return nil }
      var key = unsafe Array(UnsafeBufferPointer(start: plain, count: length))
      return SealingKey(consuming: &key)
    }
  }

  /// Opens a secret into other guarded memory, which must have room for it.
  ///
  /// - Returns: false if this process did not seal the secret.
  func open(_ secret: SealedSecret, into memory: UnsafeMutablePointer<UInt8>) -> Bool {
    unsafe opened(secret, into: memory) != nil
  }

  /// Opens a secret into memory with room for its declared length, which is at most ``Bound/secretLength``.
  private func opened(_ secret: SealedSecret, into memory: UnsafeMutablePointer<UInt8>) -> Int? {
    guard secret.length <= Bound.secretLength, SealingKey.length(ofSealed: secret.bytes.count) == secret.length else {
      return nil
    }
    return unsafe transit.open(secret.bytes[...], with: [], into: memory)
  }

  /// Seals a secret that is in other guarded memory.
  func sealed(_ start: UnsafePointer<UInt8>, count: Int) -> SealedSecret {
    unsafe SealedSecret(bytes: transit.seal(start, count: count, with: []), length: count)
  }

  // MARK: Storage

  /// Returns a secret sealed for the store.
  ///
  /// - Parameter associated: the associated data. The secret opens only together with it.
  /// - Returns: nil if this process did not seal the secret.
  func stored(_ secret: SealedSecret, with associated: [UInt8], _ key: SealingKey) -> [UInt8]? {
    unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return nil }
      return unsafe key.seal(plain, count: length, with: associated)
    }
  }

  /// Opens a stored secret and seals it with the transit key; nil if it is not as it was stored.
  func taken(_ stored: [UInt8], with associated: [UInt8], _ key: SealingKey) -> SealedSecret? {
    guard stored.count <= Bound.secretLength + SealingKey.overhead else { return nil }
    return unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe key.open(stored[...], with: associated, into: plain) else { return nil }
      return unsafe SealedSecret(bytes: transit.seal(plain, count: length, with: []), length: length)
    }
  }

  /// Appends the Base64 text of a stored secret.
  ///
  /// - Returns: false if the secret is not as it was stored.
  func appendBase64(
    ofStored stored: [UInt8], with associated: [UInt8], _ key: SealingKey, to output: inout [UInt8]
  ) -> Bool {
    guard stored.count <= Bound.secretLength + SealingKey.overhead else { return false }
    return unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe key.open(stored[...], with: associated, into: plain) else { return false }
      unsafe Base64.append(plain, count: length, to: &output)
      return true
    }
  }
}
