import CSodium
import Glibc
import Synchronization

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

/// Memory of the same kind to work in, again and again: what is in it is wiped as soon as the work is done. Until then
/// it takes no room: most daemons have no secret in it for days.
@safe
struct SecretWorkspace: ~Copyable, @unchecked Sendable {
  // Sendable: whoever holds it is one thread at a time, see ``SecretMemory``.
  private let memory: UnsafeMutableRawPointer
  /// How many bytes have room.
  let size: Int
  private let isLocked = Atomic(false)

  /// Nil where no memory can be had.
  init?(size: Int) {
    guard let memory = unsafe sodium_malloc(size) else { return nil }
    unsafe self.memory = memory
    self.size = size
    unsafe sodium_munlock(memory, size)
    // Not the page that it begins in: there libsodium knows by what stands before it whether it was overrun.
    let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
    let skipped = Int((page - UInt(bitPattern: memory) % page) % page)
    if skipped < size { unsafe madvise(memory + skipped, size - skipped, MADV_DONTNEED) }
  }

  deinit { unsafe sodium_free(memory) }

  /// Lends the memory out and wipes it after.
  func use<Result, Failure>(
    _ body: (UnsafeMutablePointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if !isLocked.exchange(true, ordering: .relaxed) { unsafe sodium_mlock(memory, size) }
    defer { unsafe sodium_memzero(memory, size) }
    return try unsafe body(memory.assumingMemoryBound(to: UInt8.self))
  }
}
