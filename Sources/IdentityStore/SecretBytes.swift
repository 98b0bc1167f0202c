import CSodium
import Glibc
import LinuxSystem
import Synchronization

/// The bytes of a key, which nobody else may see: in memory that is locked, between guard pages, and cannot be written;
/// wiped when let go of (libsodium, "secure memory").
@safe
struct SecretBytes: ~Copyable, Sendable {
  /// How many there are.
  static let length = 32

  private let page: SecretPage
  private let place: Int

  /// Moves the bytes in and wipes the array they came in.
  ///
  /// - Returns: nil for any other number of bytes, and where no memory can be locked.
  init?(consuming bytes: inout [UInt8]) {
    guard bytes.count == Self.length, let (page, place) = SecretPage.take(&bytes) else { return nil }
    self.page = page
    self.place = place
  }

  deinit { page.wipe(place) }

  /// Lends out where the bytes begin.
  func withBytes<Result>(_ body: (UnsafePointer<UInt8>) -> Result) -> Result { unsafe page.withBytes(place, body) }
}

/// A page of keys. One of its own would take each key two pages, and as many that guard them.
@safe
private final class SecretPage: @unchecked Sendable {
  // Sendable: which places are taken changes under the lock of `all` alone. A place is written under it before anybody
  // else can see its key, and only read after.
  private static let all = Locked<[SecretPage]>([])

  private let memory: UnsafeMutableRawPointer
  /// A bit for each place.
  private var taken: UInt64 = 0

  private init?() {
    guard let memory = unsafe sodium_malloc(UInt64.bitWidth * SecretBytes.length) else { return nil }
    unsafe self.memory = memory
  }

  deinit { unsafe sodium_free(memory) }

  /// Moves a key to a place that is free, and wipes the array it came in.
  static func take(_ key: inout [UInt8]) -> (page: SecretPage, place: Int)? {
    all.withLock { pages in
      guard let page = pages.first(where: { $0.taken != .max }) ?? SecretPage() else { return nil }
      if page.taken == 0 { pages.append(page) }
      let place = (~page.taken).trailingZeroBitCount
      page.taken |= 1 << UInt64(place)
      unsafe page.change(place) { start in
        unsafe key.withUnsafeMutableBytes { buffer in
          guard let source = buffer.baseAddress else { return }
          unsafe start.copyMemory(from: source, byteCount: SecretBytes.length)
          unsafe sodium_memzero(source, SecretBytes.length)
        }
      }
      return (page, place)
    }
  }

  /// Wipes a key and frees its place.
  func wipe(_ place: Int) {
    Self.all.withLock { pages in
      unsafe change(place) { unsafe sodium_memzero($0, SecretBytes.length) }
      taken &= ~(1 << UInt64(place))
      if taken == 0 { pages.removeAll { $0 === self } }
    }
  }

  func withBytes<Result>(_ place: Int, _ body: (UnsafePointer<UInt8>) -> Result) -> Result {
    unsafe body(UnsafePointer((memory + place * SecretBytes.length).assumingMemoryBound(to: UInt8.self)))
  }

  /// The others can be read meanwhile.
  private func change(_ place: Int, _ body: (UnsafeMutableRawPointer) -> Void) {
    unsafe sodium_mprotect_readwrite(memory)
    unsafe body(memory + place * SecretBytes.length)
    unsafe sodium_mprotect_readonly(memory)
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
  ///
  /// - Parameter part: which bytes of it; all where none are named.
  func use<Result, Failure>(
    _ part: Range<Int>? = nil, _ body: (UnsafeMutablePointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if !isLocked.exchange(true, ordering: .relaxed) { unsafe sodium_mlock(memory, size) }
    let part = part ?? 0..<size
    precondition(part.lowerBound >= 0 && part.upperBound <= size)
    let start = unsafe memory + part.lowerBound
    defer { unsafe sodium_memzero(start, part.count) }
    return try unsafe body(start.assumingMemoryBound(to: UInt8.self))
  }
}
