import CSodium
import Glibc
import LinuxSystem
import Synchronization

/// The bytes of a key in locked, read-only memory between guard pages (libsodium, "secure memory").
///
/// Locking succeeds as far as RLIMIT_MEMLOCK allows. The bytes are wiped when the value is destroyed.
@safe
struct SecretBytes: ~Copyable, Sendable {
  /// The number of bytes.
  static let length = 32

  private let page: SecretPage
  private let slot: Int

  /// Moves the bytes into guarded memory and wipes the array.
  ///
  /// - Returns: nil for another number of bytes, or if guarded memory cannot be allocated.
  init?(consuming bytes: inout [UInt8]) {
    guard bytes.count == Self.length, let (page, slot) = SecretPage.adopt(&bytes) else { return nil }
    self.page = page
    self.slot = slot
  }

  deinit { page.wipe(slot) }

  /// Calls a closure with the address of the bytes.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe page.withBytes(slot, body) }
}

/// A page of guarded memory that several keys share.
///
/// With a page of its own, each key would take two pages, and two more that guard them.
@safe
private final class SecretPage: @unchecked Sendable {
  // Sendable: `used` changes only under the lock of `all`. A slot is written under that lock before another thread can
  // see its key, and is only read afterwards.
  private static let all = Locked<[SecretPage]>([])

  private let memory: UnsafeMutableRawPointer
  /// A bit for each slot, set if the slot contains a key.
  private var used: UInt64 = 0

  private init?() {
    guard let memory = unsafe sodium_malloc(UInt64.bitWidth * SecretBytes.length) else { return nil }
    unsafe self.memory = memory
  }

  deinit { unsafe sodium_free(memory) }

  /// Moves a key to a free slot and wipes the array.
  static func adopt(_ key: inout [UInt8]) -> (page: SecretPage, slot: Int)? {
    all.withLock { pages in
      guard let page = pages.first(where: { $0.used != .max }) ?? SecretPage() else { return nil }
      if page.used == 0 { pages.append(page) }
      let slot = (~page.used).trailingZeroBitCount
      page.used |= 1 << UInt64(slot)
      unsafe page.change(slot) { start in
        unsafe key.withUnsafeMutableBytes { buffer in
          guard let source = buffer.baseAddress else { return }
          unsafe start.copyMemory(from: source, byteCount: SecretBytes.length)
          unsafe sodium_memzero(source, SecretBytes.length)
        }
      }
      return (page, slot)
    }
  }

  /// Wipes a key and frees its slot.
  func wipe(_ slot: Int) {
    Self.all.withLock { pages in
      unsafe change(slot) { unsafe sodium_memzero($0, SecretBytes.length) }
      used &= ~(1 << UInt64(slot))
      if used == 0 { pages.removeAll { $0 === self } }
    }
  }

  func withBytes<Result>(_ slot: Int, _ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    unsafe body(UnsafePointer((memory + slot * SecretBytes.length).assumingMemoryBound(to: UInt8.self)))
  }

  /// Changes a slot. The other slots can be read meanwhile.
  private func change(_ slot: Int, _ body: (UnsafeMutableRawPointer) -> Void) {
    unsafe sodium_mprotect_readwrite(memory)
    unsafe body(memory + slot * SecretBytes.length)
    unsafe sodium_mprotect_readonly(memory)
  }
}

/// Guarded memory that is used again and again, and wiped after each use.
///
/// Before the first use hardly any of the memory is resident, because most daemons handle no secret for days.
@safe
struct SecretWorkspace: ~Copyable, @unchecked Sendable {
  // Sendable: one thread at a time owns the value, see ``SecretMemory``.
  private let memory: UnsafeMutableRawPointer
  /// The number of bytes.
  let size: Int
  private let isLocked = Atomic(false)

  /// Allocates the memory; nil if that fails.
  init?(size: Int) {
    guard let memory = unsafe sodium_malloc(size) else { return nil }
    unsafe self.memory = memory
    self.size = size
    unsafe sodium_munlock(memory, size)
    // Not the first page: libsodium keeps a canary there, in front of the memory, to detect an overrun.
    let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
    let skipped = Int((page - UInt(bitPattern: memory) % page) % page)
    if skipped < size { unsafe madvise(memory + skipped, size - skipped, MADV_DONTNEED) }
  }

  deinit { unsafe sodium_free(memory) }

  /// Calls a closure with the memory, and wipes it afterwards.
  ///
  /// - Parameters:
  ///   - part: the range of bytes to use; nil for all of them.
  ///   - body: gets the memory and the number of its first bytes that are wiped. This is the whole part, unless the
  ///     closure knows that it writes fewer.
  func use<Result, Failure>(
    _ part: Range<Int>? = nil, _ body: (UnsafeMutablePointer<UInt8>, inout Int) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if !isLocked.exchange(true, ordering: .relaxed) { unsafe sodium_mlock(memory, size) }
    let part = part ?? 0..<size
    precondition(part.lowerBound >= 0 && part.upperBound <= size)
    let start = unsafe memory + part.lowerBound
    var written = part.count
    defer { unsafe sodium_memzero(start, min(written, part.count)) }
    return try unsafe body(start.assumingMemoryBound(to: UInt8.self), &written)
  }
}
