package import IdentityCore

/// Encrypts the private keys of proofs with the data key, for any thread.
package final class ProofKeyCipher: Sendable {
  private let key: CipherKey
  private let store: UUID

  init(_ key: CipherKey, of store: UUID) {
    self.key = key
    self.store = store
  }

  /// Encrypts the stored form of a private key.
  ///
  /// - Parameter identifier: the name of the key, with which alone it can be decrypted.
  package func encrypt(_ stored: borrowing Span<UInt8>, of identifier: Text) -> [UInt8] {
    unsafe stored.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return [] }
      return unsafe key.encrypt(start, count: buffer.count, with: associated(identifier))
    }
  }

  /// Decrypts a private key into guarded memory for the time of a call.
  ///
  /// - Returns: the result of the closure; nil if the key is not as it was stored, or without guarded memory.
  package func withKey<Result>(
    _ sealed: [UInt8], of identifier: Text, _ body: (borrowing Span<UInt8>) -> Result
  ) -> Result? {
    guard let room = CipherKey.length(ofCiphertext: sealed.count), let workspace = SecretWorkspace(size: max(room, 1))
    else { return nil }
    return unsafe workspace.use { plain, _ in
      guard let length = unsafe key.decrypt(sealed[...], with: associated(identifier), into: plain) else { return nil }
      return unsafe body(Span(_unsafeStart: plain, count: length))
    }
  }

  private func associated(_ identifier: Text) -> [UInt8] { Array("identityd proof key \(store) \(identifier)".utf8) }
}

extension Store {
  /// Returns the cipher of proof keys; nil if the data key is not available.
  package func makeProofKeyCipher() -> ProofKeyCipher? { keys.dataKey.map { ProofKeyCipher($0.key, of: identity) } }
}
