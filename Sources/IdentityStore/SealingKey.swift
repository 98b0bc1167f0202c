import CSodium

/// BLAKE2b-256 of bytes under a key of 16 to 64 bytes, which need not be secret: nothing in common under two of them.
func keyedHash(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
  var hash = [UInt8](repeating: 0, count: SealingKey.length)
  // Fails only for lengths that these are not.
  _ = unsafe crypto_generichash(&hash, hash.count, bytes, UInt64(bytes.count), key, key.count)
  return hash
}

/// A key of XChaCha20-Poly1305 (libsodium): whatever it seals nobody can read or change without it.
final class SealingKey: Sendable {
  /// The length of a key, in bytes.
  static let length = SecretBytes.length
  /// How much longer than the message what is sealed is: a nonce, drawn at random each time, and the tag.
  static let overhead = nonceLength + 16
  private static let nonceLength = 24

  private let key: SecretBytes

  /// Takes the key over and wipes the array it came in; nil for a key of another length, or without memory to lock.
  init?(consuming bytes: inout [UInt8]) {
    guard bytes.count == Self.length, sodium_init() >= 0, let key = SecretBytes(consuming: &bytes) else { return nil }
    self.key = key
  }

  /// Draws a key at random.
  convenience init?() {
    guard sodium_init() >= 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Self.length)
    unsafe randombytes_buf(&bytes, Self.length)
    self.init(consuming: &bytes)
  }

  /// Lends out where the bytes of the key begin.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe key.withBytes(body) }

  /// Seals a message together with what it belongs to, which is not in it.
  func seal(_ message: UnsafePointer<UInt8>, count: Int, with associated: [UInt8]) -> [UInt8] {
    var sealed = [UInt8](repeating: 0, count: count + Self.overhead)
    unsafe sealed.withUnsafeMutableBytes { buffer in
      guard let start = unsafe buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
      unsafe randombytes_buf(start, Self.nonceLength)
      unsafe key.withBytes { key in
        // Always returns 0.
        _ = unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
          start + Self.nonceLength, nil, message, UInt64(count), associated, UInt64(associated.count), nil, start, key)
      }
    }
    return sealed
  }

  /// Seals a message that is no secret in this process.
  func seal(_ message: [UInt8], with associated: [UInt8]) -> [UInt8] {
    unsafe message.withUnsafeBufferPointer { buffer in
      // An empty array may have no address; nothing is read from this one then.
      guard let start = buffer.baseAddress else {
        var nothing: UInt8 = 0
        return unsafe seal(&nothing, count: 0, with: associated)
      }
      return unsafe seal(start, count: buffer.count, with: associated)
    }
  }

  /// Opens what this key sealed with the same associated bytes.
  ///
  /// - Parameter message: has room for as many bytes as ``length(ofSealed:)`` says.
  /// - Returns: how long the message is; nil for anything else, and nothing of it is then in the memory.
  func open(_ sealed: ArraySlice<UInt8>, with associated: [UInt8], into message: UnsafeMutablePointer<UInt8>) -> Int? {
    guard let length = Self.length(ofSealed: sealed.count) else { return nil }
    let code = unsafe sealed.withUnsafeBufferPointer { buffer -> Int32 in
      guard let start = buffer.baseAddress else { return -1 }
      return unsafe key.withBytes { key in
        unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
          message, nil, nil, start + Self.nonceLength, UInt64(buffer.count - Self.nonceLength), associated,
          UInt64(associated.count), start, key)
      }
    }
    return code == 0 ? length : nil
  }

  /// Opens a message that is no secret in this process.
  func open(_ sealed: [UInt8], with associated: [UInt8]) -> [UInt8]? {
    guard let length = Self.length(ofSealed: sealed.count) else { return nil }
    // One byte more, so that there is an address for an empty message.
    var message = [UInt8](repeating: 0, count: length + 1)
    guard unsafe open(sealed[...], with: associated, into: &message) != nil else { return nil }
    message.removeLast()
    return message
  }

  /// How long the message is in that many sealed bytes; nil where they are too few.
  static func length(ofSealed count: Int) -> Int? { count >= overhead ? count - overhead : nil }
}
