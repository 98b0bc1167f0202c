import CSodium
package import FleetWire

/// The keys of one device, which never leave the device.
package struct DeviceKeys: Sendable {
  /// The Ed25519 key that checks the device's signatures.
  package let signingKey: PublicKey
  /// The X25519 key, to which messages for the device are sealed.
  package let boxKey: PublicKey
  private let signingSeed: SecretKey
  private let boxSeed: SecretKey

  /// Derives the keys from the seed of the device; nil if there is not enough memory.
  package init?(seed: SecretKey) {
    guard let signingSeed = seed.derived(1, "IDfldev1"), let boxSeed = seed.derived(2, "IDfldev1") else { return nil }
    var pair = Self.boxPair(from: boxSeed)
    defer { unsafe sodium_memzero(&pair.secret, pair.secret.count) }
    guard let boxKey = PublicKey(pair.key) else { return nil }
    self.init(signingSeed: signingSeed, boxKey: boxKey, boxSeed: boxSeed)
  }

  /// Creates the keys from the seeds of the two key pairs.
  init?(signingSeed: SecretKey, boxKey: PublicKey, boxSeed: SecretKey) {
    self.signingSeed = signingSeed
    self.boxSeed = boxSeed
    self.boxKey = boxKey
    var pair = Self.signingPair(from: signingSeed)
    defer { unsafe sodium_memzero(&pair.secret, pair.secret.count) }
    guard let key = PublicKey(pair.key) else { return nil }
    signingKey = key
  }

  /// Signs bytes: Ed25519, 64 bytes.
  func sign(_ bytes: [UInt8]) -> [UInt8] {
    var pair = Self.signingPair(from: signingSeed)
    defer { unsafe sodium_memzero(&pair.secret, pair.secret.count) }
    var signature = [UInt8](repeating: 0, count: Body.signatureLength)
    // Always returns 0.
    _ = unsafe crypto_sign_detached(&signature, nil, bytes, UInt64(bytes.count), pair.secret)
    return signature
  }

  /// Opens a box that was sealed to this device, into an array of the right length. Returns whether it is one.
  func opened(_ box: [UInt8], into content: inout [UInt8]) -> Bool {
    guard box.count == content.count + crypto_box_sealbytes() else { return false }
    var pair = Self.boxPair(from: boxSeed)
    defer { unsafe sodium_memzero(&pair.secret, pair.secret.count) }
    return unsafe crypto_box_seal_open(&content, box, UInt64(box.count), pair.key, pair.secret) == 0
  }

  /// Returns the X25519 key pair of a seed. The caller wipes the secret.
  private static func boxPair(from seed: SecretKey) -> (key: [UInt8], secret: [UInt8]) {
    var key = [UInt8](repeating: 0, count: PublicKey.length)
    var secret = [UInt8](repeating: 0, count: PublicKey.length)
    unsafe seed.withBytes { seed in
      // Always returns 0.
      _ = unsafe crypto_box_seed_keypair(&key, &secret, seed)
    }
    return (key, secret)
  }

  /// Returns the Ed25519 key pair of a seed. The caller wipes the secret.
  private static func signingPair(from seed: SecretKey) -> (key: [UInt8], secret: [UInt8]) {
    var key = [UInt8](repeating: 0, count: PublicKey.length)
    var secret = [UInt8](repeating: 0, count: Int(crypto_sign_SECRETKEYBYTES))
    unsafe seed.withBytes { seed in
      // Always returns 0.
      _ = unsafe crypto_sign_seed_keypair(&key, &secret, seed)
    }
    return (key, secret)
  }
}

/// Returns whether a signature of bytes is valid under an Ed25519 key.
func isValid(_ signature: [UInt8], of bytes: [UInt8], under key: PublicKey) -> Bool {
  guard signature.count == Body.signatureLength else { return false }
  return unsafe crypto_sign_verify_detached(signature, bytes, UInt64(bytes.count), key.bytes) == 0
}
