import CSodium

/// Bytes that nobody else may see: in memory of their own, locked, between guard pages, wiped when let go of
/// (libsodium, "secure memory").
@safe
struct SecretBytes: ~Copyable, @unchecked Sendable {
  // Sendable: the memory is written once, before anybody else can see the value, and only read after.
  private let memory: UnsafeMutableRawPointer

  /// Moves the bytes in and wipes the array they came in.
  ///
  /// - Returns: nil where no memory can be locked.
  init?(consuming bytes: inout [UInt8]) {
    guard let memory = unsafe sodium_malloc(bytes.count) else { return nil }
    unsafe self.memory = memory
    unsafe bytes.withUnsafeMutableBytes { buffer in
      guard let start = buffer.baseAddress else { return }
      unsafe memory.copyMemory(from: start, byteCount: buffer.count)
      unsafe sodium_memzero(start, buffer.count)
    }
    unsafe sodium_mprotect_readonly(memory)
  }

  deinit { unsafe sodium_free(memory) }

  /// Lends out where the bytes begin: as many as were moved in.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    unsafe body(UnsafePointer(memory.assumingMemoryBound(to: UInt8.self)))
  }
}
