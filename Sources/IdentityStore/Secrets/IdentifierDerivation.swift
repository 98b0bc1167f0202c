import CSodium
package import IdentityCore

/// Computes identifiers that are not stored.
///
/// The same store, kind and parts always give the same identifier. Any other input gives an unrelated identifier.
package final class IdentifierDerivation: Sendable {
  private let key: SecretBytes

  /// Derives a key for this purpose alone from the store's key; nil if guarded memory cannot be allocated.
  init?(_ authenticator: borrowing Authenticator) {
    var bytes = authenticator.proof(table: "derivation of identifiers", [])
    guard let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// Returns the identifier of a kind for some parts: half of an HMAC-SHA-256 (RFC 2104) as a version 4 UUID.
  ///
  /// The identifier is the first half of the HMAC. The message is the kind and each part in order, each preceded by its
  /// length in eight bytes. So different lists of parts give different messages.
  package func identifier(_ kind: String, _ parts: [[UInt8]]) -> UUID {
    var message: [UInt8] = []
    for part in [Array(kind.utf8)] + parts {
      message.append(number: UInt64(part.count))
      message += part
    }
    var code = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    unsafe key.withBytes { start in
      // The key has 32 bytes, the length of a proof. The call always returns 0.
      _ = unsafe crypto_auth_hmacsha256(&code, message, UInt64(message.count), start)
    }
    func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    return UUID(high: word(code[0..<8]), low: word(code[8..<16])).stamped(version: 4)
  }
}
