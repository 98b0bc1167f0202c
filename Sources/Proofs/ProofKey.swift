import CCrypto
import CSodium
package import IdentityCore
import LinuxSystem

/// The reason why there is no proof key.
package enum ProofKeyFault: Error, Equatable, CustomStringConvertible {
  /// OpenSSL's libcrypto is not installed, or does not load.
  case noLibrary
  /// The library refused.
  case refused
  /// The TPM does not answer, its provider is not installed, or the environment does not name the TPM.
  case noTPM
  /// The TPM does not have the key, or does not use it.
  case refusedByTPM
  /// The TPM makes no key, or one that does not sign.
  case noKeyInTPM

  package var description: String {
    switch self {
    case .noLibrary:
      "OpenSSL's libcrypto.so.3 cannot be loaded; install the package libssl3t64, libssl3 or openssl-libs, and restart "
        + "identityd"
    case .refused: "libcrypto refuses the key"
    case .noTPM:
      "the TPM cannot be reached; 'identityd-setup-key --proof=tpm2' names what is missing, and "
        + "'identityd-setup-key --proof=software' makes a key without a TPM"
    case .refusedByTPM:
      "the TPM refuses the key, as after it was cleared or exchanged; 'identityctl proof rotate revoke=yes' makes another "
        + "one"
    case .noKeyInTPM: "the TPM makes no key; 'identityd-setup-key --proof=software' makes one without a TPM"
    }
  }
}

/// A private key that signs proofs: ECDSA on P-256 (RFC 7518, section 3.4).
///
/// One of the process is in OpenSSL's secure heap, which is left out of core dumps, wiped on release, and locked in memory
/// as far as RLIMIT_MEMLOCK allows. A TPM has few slots for keys, so at most one of its keys may exist here, besides one that
/// is being made.
@safe
package final class ProofKey: Sendable {
  // Sendable: until deinit the key is only read, or used under its lock.
  nonisolated(unsafe) private let key: OpaquePointer
  private let place: ProofKeyPlace
  /// The public key that belongs to it.
  package let publicKey: PublicProofKey

  private init?(_ key: OpaquePointer, in place: ProofKeyPlace) {
    unsafe self.key = key
    self.place = place
    var point = [UInt8](repeating: 0, count: PublicProofKey.length)
    let isKnown = unsafe ccrypto_public_key(key, &point) == 1
    publicKey = PublicProofKey(point: point)
    // The object exists from here on, so that deinit releases the key.
    guard isKnown else { return nil }
  }

  deinit { unsafe ccrypto_free_key(key) }

  /// Draws a new key. One of a TPM has signed once.
  package static func random(in place: ProofKeyPlace = .software) throws(ProofKeyFault) -> ProofKey {
    try reach(place)
    guard place == .tpm2 else { return try unsafe adopt(ccrypto_make_key(place.number), in: place) }
    // A TPM that is locked after failed authorizations makes keys and does not use them.
    guard let key = try? unsafe adopt(ccrypto_make_key(place.number), in: place), key.signature(of: []) != nil else {
      throw .noKeyInTPM
    }
    return key
  }

  /// Reads a key from its stored form.
  package static func stored(
    _ bytes: borrowing Span<UInt8>, in place: ProofKeyPlace = .software
  ) throws(ProofKeyFault) -> ProofKey {
    try reach(place)
    let key = unsafe bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
      guard let start = buffer.baseAddress else { return nil }
      return unsafe ccrypto_read_key(place.number, start, buffer.count)
    }
    return try unsafe adopt(key, in: place)
  }

  /// Lets go of the TPM, so that the next key reaches it anew. No key in it may be left.
  package static func leaveTPM() { ccrypto_leave_tpm2() }

  private static func reach(_ place: ProofKeyPlace) throws(ProofKeyFault) {
    guard ccrypto_load() == 1 else { throw .noLibrary }
    guard place == .software || ccrypto_reach_tpm2() == 1 else { throw .noTPM }
  }

  private static func adopt(_ key: OpaquePointer?, in place: ProofKeyPlace) throws(ProofKeyFault) -> ProofKey {
    if let key = unsafe key, let adopted = unsafe ProofKey(key, in: place) { return adopted }
    throw place == .software ? .refused : .refusedByTPM
  }

  /// Calls a closure with the stored form: PKCS #8 in DER, or the TSS2 PRIVATE KEY of the TPM. The bytes are wiped
  /// afterwards.
  package func withStoredForm<Result>(_ body: (borrowing Span<UInt8>) -> Result) throws(ProofKeyFault) -> Result {
    var stored = [UInt8](repeating: 0, count: Int(CCRYPTO_PRIVATE_KEY))
    defer { stored.wipe() }
    let length = unsafe ccrypto_write_key(key, &stored)
    guard length > 0 else { throw place == .software ? .refused : .refusedByTPM }
    return body(stored.span.extracting(0..<length))
  }

  /// Signs a message: r, then s, 32 bytes each (RFC 7518, section 3.4). Nil if the library or the TPM refuses.
  package func signature(of message: [UInt8]) -> [UInt8]? {
    var signature = [UInt8](repeating: 0, count: Int(CCRYPTO_SIGNATURE))
    guard unsafe ccrypto_sign(key, message, message.count, &signature) == 1 else { return nil }
    // A TPM that has restarted may have another program's key in the slot of this one.
    guard place == .software || (try? publicKey.verifies(signature, of: message)) == true else { return nil }
    return signature
  }
}

extension ProofKeyPlace {
  fileprivate var number: ccrypto_place {
    switch self {
    case .software: CCRYPTO_SOFTWARE
    case .tpm2: CCRYPTO_TPM2
    }
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
