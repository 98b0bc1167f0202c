import CLinux
import Glibc

/// The first 64-bit words of a ``MemoryFile``, in native byte order, which are loaded and stored without a system call.
///
/// A stored word is in the file. The word survives this process, however the process ends, as long as any
/// process has the file's descriptor. Each access is a single atomic load or store, so any thread may use any
/// word at any time. An operation on two words is not atomic. The compiler never omits a store, and no store is
/// delayed past a later system call.
///
/// The file must not become shorter than the words while the mapping exists, because the kernel answers an access
/// beyond the end with SIGBUS.
@safe
package struct SharedWords: ~Copyable, @unchecked Sendable {
  // Sendable: `start` and `count` never change, and the words are accessed only atomically.
  private let start: UnsafeMutablePointer<UInt64>
  /// The number of words.
  package let count: Int

  /// Maps the front of the file (mmap(2), MAP_SHARED). The descriptor may be closed afterwards.
  ///
  /// - Throws: EINVAL if `count` is not positive or the file has fewer words, EPERM if the file is sealed.
  package init(of file: borrowing MemoryFile, count: Int) throws(SystemError) {
    let (length, isTooMuch) = count.multipliedReportingOverflow(by: 8)
    guard count > 0, !isTooMuch, length <= (try file.length()) else { throw SystemError(call: "mmap", code: EINVAL) }
    guard let memory = unsafe clinux_map_shared(file.descriptor.number, length) else {
      throw SystemError(call: "mmap", code: errno)
    }
    unsafe start = memory.bindMemory(to: UInt64.self, capacity: count)
    self.count = count
  }

  deinit { unsafe munmap(start, count * 8) }

  /// A word. An index outside `0..<count` reads as 0, and a store to such an index is dropped.
  package subscript(_ index: Int) -> UInt64 {
    get { index >= 0 && index < count ? unsafe clinux_load_word(start + index) : 0 }
    nonmutating set { if index >= 0, index < count { unsafe clinux_store_word(start + index, newValue) } }
  }
}
