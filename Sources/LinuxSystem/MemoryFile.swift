import CLinux
import Glibc

/// A file that exists only in memory (memfd_create(2)), as long as any process has its descriptor.
///
/// Every call names the offset that it reads or writes. The file's own offset, which all copies of the
/// descriptor share, is never used.
package struct MemoryFile: ~Copyable, Sendable {
  /// The descriptor, for calls that borrow it.
  package let descriptor: Descriptor

  /// Creates an empty file. The name shows below /proc/PID/fd and need not be unique.
  package init(named name: String) throws(SystemError) {
    descriptor = Descriptor(adopting: try system("memfd_create \(name)") { unsafe clinux_memory_file(name) })
  }

  /// Takes over a memory file that was created elsewhere.
  ///
  /// - Throws: EINVAL if the descriptor is not a memory file. The descriptor is closed then.
  package init(adopting descriptor: consuming Descriptor) throws(SystemError) {
    guard Self.isMemoryFile(descriptor.number) else { throw SystemError(call: "adopt memory file", code: EINVAL) }
    self.descriptor = descriptor
  }

  /// Returns whether the descriptor is a memory file: a regular file that has no name in any folder and supports seals.
  ///
  /// A deleted file of a tmpfs cannot be distinguished from a memory file, and serves as well.
  package static func isMemoryFile(_ number: Int32) -> Bool {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 0 && clinux_is_sealed(number) >= 0
  }

  /// Returns the length in bytes.
  package func length() throws(SystemError) -> Int {
    var status = stat()
    let number = descriptor.number
    try system("fstat") { unsafe fstat(number, &status) }
    return Int(status.st_size)
  }

  /// Sets the length in bytes. Bytes beyond the length are cut off. New bytes are zero and take no memory yet.
  ///
  /// - Throws: EPERM if the file is sealed.
  package func resize(to length: Int) throws(SystemError) {
    let number = descriptor.number
    try system("ftruncate") { ftruncate(number, off_t(length)) }
  }

  /// Writes all of the bytes from `offset` on. The file grows if they do not fit.
  ///
  /// - Throws: EPERM if the file is sealed.
  package func write(_ bytes: [UInt8], at offset: Int = 0) throws(SystemError) {
    try descriptor.overwrite(with: bytes, at: offset)
  }

  /// Reads up to `count` bytes from `offset` on, fewer if the file ends before.
  package func read(count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
    // The array is never larger than the content, whatever the caller asks for.
    var bytes = [UInt8](repeating: 0, count: max(0, min(count, try length() - max(0, offset))))
    let filled = try descriptor.read(into: &bytes, at: offset)
    return Array(bytes.prefix(filled))
  }

  /// Reads the whole file.
  ///
  /// - Throws: EFBIG if the file is longer than `limit` bytes.
  package func readWhole(limit: Int) throws(SystemError) -> [UInt8] {
    let length = try length()
    guard length <= limit else { throw SystemError(call: "read memory file", code: EFBIG) }
    return try read(count: length, at: 0)
  }

  /// Frees the memory of a range, which then reads as zeros. The length stays (fallocate(2), FALLOC_FL_PUNCH_HOLE).
  ///
  /// - Throws: EPERM if the file is sealed, EINVAL if the range is empty or begins before the file.
  package func punchHole(at offset: Int, length: Int) throws(SystemError) {
    let number = descriptor.number
    try system("fallocate") { clinux_punch_hole(number, off_t(offset), off_t(length)) }
  }

  /// Seals the content and the length, so that no process can change them any more, not even this
  /// one (F_ADD_SEALS, fcntl(2)).
  ///
  /// - Throws: EBUSY while a writable mapping exists, EPERM if another process has sealed the seals before.
  package func seal() throws(SystemError) {
    if isSealed { return }
    let number = descriptor.number
    try system("fcntl F_ADD_SEALS") { clinux_seal(number) }
  }

  /// Whether no process can change the content or the length any more.
  package var isSealed: Bool { clinux_is_sealed(descriptor.number) == 1 }
}
