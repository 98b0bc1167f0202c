import CCrypto
import CSodium
import LinuxSystem

/// The reason why there is no proof key.
package enum ProofKeyFault: Error, Equatable, CustomStringConvertible {
  /// OpenSSL's libcrypto is not installed, or does not load.
  case noLibrary
  /// The library refused.
  case refused

  package var description: String {
    switch self {
    case .noLibrary:
      "OpenSSL's libcrypto.so.3 cannot be loaded; install the package libssl3t64, libssl3 or openssl-libs, and restart "
        + "identityd"
    case .refused: "libcrypto refuses the key"
    }
  }
}

/// A private key that signs proofs: ECDSA on P-256 (RFC 7518, section 3.4).
///
/// It is in OpenSSL's secure heap, which is left out of core dumps, wiped on release, and locked in memory as far as
/// RLIMIT_MEMLOCK allows.
@safe
package final class ProofKey: Sendable {
  // Sendable: until deinit the key is only read, or used under its lock.
  nonisolated(unsafe) private let key: OpaquePointer
  /// The public key that belongs to it.
  package let publicKey: PublicProofKey

  private init?(_ key: OpaquePointer) {
    unsafe self.key = key
    var point = [UInt8](repeating: 0, count: PublicProofKey.length)
    let isKnown = unsafe ccrypto_public_key(key, &point) == 1
    publicKey = PublicProofKey(point: point)
    // The object exists from here on, so that deinit releases the key.
    guard isKnown else { return nil }
  }

  deinit { unsafe ccrypto_free_key(key) }

  /// Draws a new key.
  package static func random() throws(ProofKeyFault) -> ProofKey {
    guard ccrypto_load() == 1 else { throw .noLibrary }
    guard let key = unsafe ccrypto_make_key(), let made = unsafe ProofKey(key) else { throw .refused }
    return made
  }

  /// Reads a key from its stored form.
  package static func stored(_ bytes: borrowing Span<UInt8>) throws(ProofKeyFault) -> ProofKey {
    guard ccrypto_load() == 1 else { throw .noLibrary }
    let key = unsafe bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
      guard let start = buffer.baseAddress else { return nil }
      return unsafe ccrypto_read_key(start, buffer.count)
    }
    guard let key = unsafe key, let read = unsafe ProofKey(key) else { throw .refused }
    return read
  }

  /// Calls a closure with the stored form, PKCS #8 in DER. The bytes are wiped afterwards.
  package func withStoredForm<Result>(_ body: (borrowing Span<UInt8>) -> Result) throws(ProofKeyFault) -> Result {
    var stored = [UInt8](repeating: 0, count: Int(CCRYPTO_PRIVATE_KEY))
    defer { stored.wipe() }
    let length = unsafe ccrypto_write_key(key, &stored)
    guard length > 0 else { throw .refused }
    return body(stored.span.extracting(0..<length))
  }

  /// Signs a message: r, then s, 32 bytes each (RFC 7518, section 3.4). Nil if the library refuses.
  package func signature(of message: [UInt8]) -> [UInt8]? {
    var signature = [UInt8](repeating: 0, count: Int(CCRYPTO_SIGNATURE))
    return unsafe ccrypto_sign(key, sha256(message), &signature) == 1 ? signature : nil
  }
}

/// Returns the SHA-256 digest of a message.
private func sha256(_ message: [UInt8]) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
  // Always returns 0.
  _ = unsafe crypto_hash_sha256(&digest, message, UInt64(message.count))
  return digest
}

/// A public key by which proofs are verified.
package struct PublicProofKey: Hashable, Sendable {
  package static let length = Int(CCRYPTO_POINT)

  /// The coordinates of the point, 32 bytes each.
  package let point: [UInt8]
  /// The coordinates in Base64URL (RFC 7518, section 6.2.1).
  package let x, y: String
  /// The key's thumbprint in Base64URL (RFC 7638), which is also its key ID.
  package let thumbprint: String

  /// - Parameter point: ``length`` bytes.
  package init(point: [UInt8]) {
    self.point = point
    (x, y) = (Base64URL.text(point.prefix(32)), Base64URL.text(point.suffix(32)))
    let members = Array(#"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#.utf8)
    thumbprint = Base64URL.text(sha256(members))
  }

  /// Whether a signature is valid.
  func verifies(_ signature: [UInt8], of message: [UInt8]) throws(ProofKeyFault) -> Bool {
    guard signature.count == Int(CCRYPTO_SIGNATURE) else { return false }
    let verdict = unsafe ccrypto_verify(point, message, message.count, signature)
    guard verdict >= 0 else { throw .noLibrary }
    return verdict == 1
  }
}
