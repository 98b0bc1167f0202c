import CLinux
import Glibc

/// The first 64-bit words of a ``MemoryFile``, in the machine's byte order, read and stored without a system call.
///
/// A word that was stored is in the file: it outlives this process, however it ends, as long as anybody has the file's
/// descriptor. Each access is one atomic instruction, so any thread may use any word at any time; what takes two words
/// is not atomic. A store is neither left out nor put off behind a system call that comes after it.
///
/// The file must not get shorter than the words while this lives: the kernel answers an access beyond its end with SIGBUS.
@safe
package struct SharedWords: ~Copyable, @unchecked Sendable {
  // Sendable: `start` and `count` never change, and what they lead to is only touched by atomic instructions.
  private let start: UnsafeMutablePointer<UInt64>
  /// How many words there are.
  package let count: Int

  /// Maps the front of the file (mmap(2), MAP_SHARED). The descriptor may be closed while this lives.
  ///
  /// - Throws: EINVAL where `count` is not positive or the file has not that many words, EPERM where it is sealed.
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

  /// One word. There is nothing outside of `0..<count`: it reads as 0, and what is stored there is dropped.
  package subscript(_ index: Int) -> UInt64 {
    get { index >= 0 && index < count ? unsafe clinux_load_word(start + index) : 0 }
    nonmutating set { if index >= 0, index < count { unsafe clinux_store_word(start + index, newValue) } }
  }
}
