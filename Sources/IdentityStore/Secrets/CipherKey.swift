import CSodium

/// Returns the BLAKE2b-256 hash of bytes under a key of 16 to 64 bytes, which need not be secret.
///
/// The hashes under two keys are unrelated.
func keyedHash(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
  var hash = [UInt8](repeating: 0, count: CipherKey.length)
  // Fails only for lengths out of range.
  _ = unsafe crypto_generichash(&hash, hash.count, bytes, UInt64(bytes.count), key, key.count)
  return hash
}

/// A key of XChaCha20-Poly1305 (libsodium). Without it, encrypted data cannot be read, or changed unnoticed.
final class CipherKey: Sendable {
  /// The length of a key, in bytes.
  static let length = SecretBytes.length
  /// The number of bytes that encryption adds to a message: a nonce, drawn at random each time, and the tag.
  static let overhead = nonceLength + 16
  private static let nonceLength = 24

  private let key: SecretBytes

  /// Moves the key into guarded memory and wipes the array.
  ///
  /// Nil if the key has another length, or if guarded memory cannot be allocated.
  init?(consuming bytes: inout [UInt8]) {
    guard bytes.count == Self.length, sodium_init() >= 0, let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// Draws a random key; nil if guarded memory cannot be allocated.
  convenience init?() {
    guard sodium_init() >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Self.length)
    unsafe randombytes_buf(&bytes, Self.length)
    self.init(consuming: &bytes)
  }

  /// Calls a closure with the address of the key.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe key.withBytes(body) }

  /// Encrypts a message together with associated data, which is not part of the result.
  func encrypt(_ message: UnsafePointer<UInt8>, count: Int, with associated: [UInt8]) -> [UInt8] {
    var ciphertext = [UInt8](repeating: 0, count: count + Self.overhead)
    unsafe ciphertext.withUnsafeMutableBytes { buffer in
      guard let start = unsafe buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
      unsafe randombytes_buf(start, Self.nonceLength)
      unsafe key.withBytes { key in
        // Always returns 0.
        _ = unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
          start + Self.nonceLength, nil, message, UInt64(count), associated, UInt64(associated.count), nil, start, key)
      }
    }
    return ciphertext
  }

  /// Encrypts a message that is not secret within this process.
  func encrypt(_ message: [UInt8], with associated: [UInt8]) -> [UInt8] {
    unsafe message.withUnsafeBufferPointer { buffer in
      // An empty array may have no address. Nothing is read from the address for a length of 0.
      guard let start = buffer.baseAddress else {
        var nothing: UInt8 = 0
        return unsafe encrypt(&nothing, count: 0, with: associated)
      }
      return unsafe encrypt(start, count: buffer.count, with: associated)
    }
  }

  /// Decrypts data that this key encrypted with the same associated data.
  ///
  /// - Parameter message: has room for ``length(ofCiphertext:)`` bytes.
  /// - Returns: the length of the message; nil for any other data, and `message` then contains no plaintext.
  func decrypt(
    _ ciphertext: ArraySlice<UInt8>, with associated: [UInt8], into message: UnsafeMutablePointer<UInt8>
  ) -> Int? {
    guard let length = Self.length(ofCiphertext: ciphertext.count) else { return nil }
    let code = unsafe ciphertext.withUnsafeBufferPointer { buffer -> Int32 in
      guard let start = buffer.baseAddress else { return -1 }
      return unsafe key.withBytes { key in
        unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
          message, nil, nil, start + Self.nonceLength, UInt64(buffer.count - Self.nonceLength), associated,
          UInt64(associated.count), start, key)
      }
    }
    return code == 0 ? length : nil
  }

  /// Decrypts a message that is not secret within this process.
  func decrypt(_ ciphertext: [UInt8], with associated: [UInt8]) -> [UInt8]? {
    guard let length = Self.length(ofCiphertext: ciphertext.count) else { return nil }
    // One byte more than needed, so that an empty message has an address too.
    var message = [UInt8](repeating: 0, count: length + 1)
    guard unsafe decrypt(ciphertext[...], with: associated, into: &message) != nil else { return nil }
    message.removeLast()
    return message
  }

  /// Returns the length of the message in encrypted data of this length; nil if the data is too short.
  static func length(ofCiphertext count: Int) -> Int? { count >= overhead ? count - overhead : nil }
}
