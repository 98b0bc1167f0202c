import CLinux
import Glibc

/// A file that is nowhere but in memory (memfd_create(2)), and lives as long as somebody has its descriptor.
///
/// Every call names the place that it reads or writes: the file's own offset, which all copies of the descriptor share,
/// is never used.
package struct MemoryFile: ~Copyable, Sendable {
  /// The descriptor, for calls that borrow it.
  package let descriptor: Descriptor

  /// Makes an empty one; the name shows below /proc/PID/fd and need not be unique.
  package init(named name: String) throws(SystemError) {
    descriptor = Descriptor(adopting: try system("memfd_create \(name)") { unsafe clinux_memory_file(name) })
  }

  /// Takes over one that somebody else made.
  ///
  /// - Throws: EINVAL where it is none, and closes it then.
  package init(adopting descriptor: consuming Descriptor) throws(SystemError) {
    guard Self.isMemoryFile(descriptor.number) else { throw SystemError(call: "adopt memory file", code: EINVAL) }
    self.descriptor = descriptor
  }

  /// Whether the descriptor is such a file: regular, with no name in any folder, and of a kind that can be sealed. A
  /// deleted file of a tmpfs cannot be told from it, and is none the worse.
  package static func isMemoryFile(_ number: Int32) -> Bool {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 0 && clinux_is_sealed(number) >= 0
  }

  /// Its length in bytes.
  package func length() throws(SystemError) -> Int {
    var status = stat()
    let number = descriptor.number
    try system("fstat") { unsafe fstat(number, &status) }
    return Int(status.st_size)
  }

  /// Makes it that many bytes long: what is beyond is cut off, what is new is zero and takes no memory yet.
  ///
  /// - Throws: EPERM once it is sealed.
  package func resize(to length: Int) throws(SystemError) {
    let number = descriptor.number
    try system("ftruncate") { ftruncate(number, off_t(length)) }
  }

  /// Writes all of the bytes from `offset` on; the file grows where they do not fit.
  ///
  /// - Throws: EPERM once it is sealed.
  package func write(_ bytes: [UInt8], at offset: Int = 0) throws(SystemError) {
    try descriptor.overwrite(with: bytes, at: offset)
  }

  /// Reads from `offset` on, up to `count` bytes; fewer where the file ends before.
  package func read(count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
    // No more room than there are bytes, whatever the caller asks for.
    var bytes = [UInt8](repeating: 0, count: max(0, min(count, try length() - max(0, offset))))
    let filled = try descriptor.read(into: &bytes, at: offset)
    return Array(bytes.prefix(filled))
  }

  /// Reads it from its first byte to its last.
  ///
  /// - Throws: EFBIG where it is longer than `limit` bytes.
  package func readWhole(limit: Int) throws(SystemError) -> [UInt8] {
    let length = try length()
    guard length <= limit else { throw SystemError(call: "read memory file", code: EFBIG) }
    return try read(count: length, at: 0)
  }

  /// Gives the memory of a stretch back; it reads as zero, and the length stays (fallocate(2), FALLOC_FL_PUNCH_HOLE).
  ///
  /// - Throws: EPERM once it is sealed, EINVAL where the stretch is empty or begins before the file.
  package func punchHole(at offset: Int, length: Int) throws(SystemError) {
    let number = descriptor.number
    try system("fallocate") { clinux_punch_hole(number, off_t(offset), off_t(length)) }
  }

  /// Lets nobody change content or length any more, this process included (F_ADD_SEALS, fcntl(2)).
  ///
  /// - Throws: EBUSY while it is mapped to be written, EPERM where others have sealed the seals before.
  package func seal() throws(SystemError) {
    if isSealed { return }
    let number = descriptor.number
    try system("fcntl F_ADD_SEALS") { clinux_seal(number) }
  }

  /// Whether nobody can change content or length any more.
  package var isSealed: Bool { clinux_is_sealed(descriptor.number) == 1 }
}
