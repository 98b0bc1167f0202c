import CSodium
package import IdentityCore

/// The guarded memory of one thread, and everything that is done with an open secret in it.
///
/// A secret is open here and nowhere else: it comes in as Base64 text or sealed, goes out sealed or, for the one who may
/// have it, as Base64 text, and is wiped in between.
package final class SecretMemory: SecretIntake, Sendable {
  /// What secrets are sealed with on their way through the daemon. It lives as long as the process.
  private let transit: SealingKey
  private let workspace: SecretWorkspace
  /// Where the text of a secret is.
  private static let text = 0..<Bound.lineLength
  /// Where what it says is, behind that.
  private static let plain = text.upperBound..<text.upperBound + Bound.secretLength + 1

  /// Has room for one request's secret; nil where no memory can be had.
  init?(transit: SealingKey) {
    guard let workspace = SecretWorkspace(size: Self.plain.upperBound) else { return nil }
    self.transit = transit
    self.workspace = workspace
  }

  // MARK: In

  /// Takes the Base64 text of a request, with or without `=` at its end.
  package func seal(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    try unsafe workspace.use(Self.text) { (text) throws(SecretFault) in
      var span = unsafe MutableSpan(_unsafeStart: text, count: Self.text.count)
      let count = min(fill(&span), Self.text.count)
      return try unsafe workspace.use(Self.plain) { (plain) throws(SecretFault) in
        if let length = unsafe Base64.decode(text, count: count, into: plain, room: Self.plain.count) {
          guard length <= Bound.secretLength else { throw .tooLong }
          return unsafe SealedSecret(bytes: transit.seal(plain, count: length, with: []), length: length)
        }
        // Where it gave up for want of room, the rest of the text is not known to be any better.
        throw count > (Bound.secretLength + 2) / 3 * 4 ? .tooLong : .notBase64
      }
    }
  }

  // MARK: Out

  /// Appends the Base64 text of a secret.
  ///
  /// - Returns: false where it is not one that this process sealed.
  package func appendBase64(of secret: SealedSecret, to output: inout [UInt8]) -> Bool {
    unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return false }
      unsafe Base64.append(plain, count: length, to: &output)
      return true
    }
  }

  /// The UUID that a secret says, white space around it aside; nil where it says none.
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

  /// The key that a secret is; nil where it is none of this length.
  func sealingKey(in secret: SealedSecret) -> SealingKey? {
    guard secret.length == SealingKey.length else { return nil }
    return unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return nil }
      var key = unsafe Array(UnsafeBufferPointer(start: plain, count: length))
      return SealingKey(consuming: &key)
    }
  }

  /// Opens a secret into other guarded memory, which has room for it.
  ///
  /// - Returns: false where it is not one that this process sealed.
  func open(_ secret: SealedSecret, into memory: UnsafeMutablePointer<UInt8>) -> Bool {
    unsafe opened(secret, into: memory) != nil
  }

  /// Opens a secret into memory that has room for as many bytes as it says, and for the longest one.
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

  // MARK: On disk

  /// A secret as the store keeps it.
  ///
  /// - Parameter associated: what it belongs to; it opens together with that alone.
  /// - Returns: nil where it is not one that this process sealed.
  func stored(_ secret: SealedSecret, with associated: [UInt8], _ key: SealingKey) -> [UInt8]? {
    unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe opened(secret, into: plain) else { return nil }
      return unsafe key.seal(plain, count: length, with: associated)
    }
  }

  /// A secret that the store keeps, for its way through the daemon; nil where it is not as it was stored.
  func taken(_ stored: [UInt8], with associated: [UInt8], _ key: SealingKey) -> SealedSecret? {
    guard stored.count <= Bound.secretLength + SealingKey.overhead else { return nil }
    return unsafe workspace.use(Self.plain) { plain in
      guard let length = unsafe key.open(stored[...], with: associated, into: plain) else { return nil }
      return unsafe SealedSecret(bytes: transit.seal(plain, count: length, with: []), length: length)
    }
  }

  /// Appends the Base64 text of a secret that the store keeps.
  ///
  /// - Returns: false where it is not as it was stored.
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
