import CSodium

/// A secret of 32 bytes in guarded memory (libsodium, "secure memory"), which is wiped on release.
///
/// The store and the client have types of their own for the same purpose. The store's keys share pages, and its module
/// brings SQLite along. The client's bytes grow while a person types. This secret is derived in place, and shared.
@safe
package final class SecretKey: Sendable {
  /// The number of bytes.
  package static let length = 32

  // Sendable: the memory is written during initialization only.
  nonisolated(unsafe) private let memory: UnsafeMutablePointer<UInt8>

  /// Allocates the memory and lets a closure fill it; nil if there is not enough memory.
  private init?(filling body: (UnsafeMutablePointer<UInt8>) -> Void) {
    guard sodium_init() >= 0, let memory = unsafe sodium_malloc(Self.length) else { return nil }
    unsafe self.memory = memory.bindMemory(to: UInt8.self, capacity: Self.length)
    unsafe body(self.memory)
    unsafe sodium_mprotect_readonly(memory)
  }

  deinit { unsafe sodium_free(memory) }

  /// Moves the bytes into guarded memory and wipes the array; nil for another number of bytes, or without memory.
  package convenience init?(consuming bytes: inout [UInt8]) {
    guard bytes.count == Self.length else { return nil }
    unsafe self.init { memory in
      unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let source = buffer.baseAddress else { return }
        unsafe UnsafeMutableRawPointer(memory).copyMemory(from: source, byteCount: Self.length)
        unsafe sodium_memzero(source, Self.length)
      }
    }
  }

  /// Draws a random secret; nil if there is not enough memory.
  package static func random() -> SecretKey? {
    unsafe SecretKey { memory in unsafe randombytes_buf(memory, SecretKey.length) }
  }

  /// Derives a secret; nil if there is not enough memory.
  ///
  /// - Parameters:
  ///   - number: tells the secrets of one context apart.
  ///   - context: eight letters that name the use.
  func derived(_ number: UInt64, _ context: StaticString) -> SecretKey? {
    precondition(context.utf8CodeUnitCount == Int(crypto_kdf_CONTEXTBYTES))
    return unsafe SecretKey { key in
      // Fails only for lengths out of range.
      _ = unsafe context.utf8Start.withMemoryRebound(to: CChar.self, capacity: 8) { context in
        unsafe crypto_kdf_derive_from_key(key, SecretKey.length, number, context, memory)
      }
    }
  }

  /// Returns the hash of bytes under this key: BLAKE2b, 16 bytes.
  func hash(_ bytes: [UInt8]) -> [UInt8] {
    var hash = [UInt8](repeating: 0, count: 16)
    // Fails only for lengths out of range.
    _ = unsafe crypto_generichash(&hash, hash.count, bytes, UInt64(bytes.count), memory, Self.length)
    return hash
  }

  /// Calls a closure with the address of the bytes, which are valid only during the call.
  package func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    unsafe body(UnsafePointer(memory))
  }

  /// Returns a copy of the bytes, for a message that hands the secret on.
  package func copy() -> [UInt8] {
    unsafe withBytes { unsafe Array(UnsafeBufferPointer(start: $0, count: Self.length)) }
  }
}
