import CSodium
package import IdentityCore

/// Computes identifiers that are stored nowhere: with the same store, kind and parts always the same one, and with
/// anything else one that has nothing in common with it.
package final class IdentifierDerivation: Sendable {
  private let key: SecretBytes

  /// Makes a key for this purpose alone; nil where no memory can be locked.
  init?(_ authenticator: borrowing Authenticator) {
    var bytes = authenticator.proof(table: "derivation of identifiers", [])
    guard let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// The identifier of a kind for these parts: the first half of their HMAC-SHA-256 (RFC 2104), as a version 4 UUID.
  ///
  /// The message is the kind and each part in order, the length of each before it in eight bytes: no two lists of parts
  /// have the same.
  package func identifier(_ kind: String, _ parts: [[UInt8]]) -> UUID {
    var message: [UInt8] = []
    for part in [Array(kind.utf8)] + parts {
      message.append(number: UInt64(part.count))
      message += part
    }
    var code = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    unsafe key.withBytes { start in
      // Takes a key of 32 bytes, which is the length of a proof, and always returns 0.
      _ = unsafe crypto_auth_hmacsha256(&code, message, UInt64(message.count), start)
    }
    func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    return UUID(high: word(code[0..<8]), low: word(code[8..<16])).stamped(version: 4)
  }
}
