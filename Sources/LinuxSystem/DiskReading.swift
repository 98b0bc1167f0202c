import CLinux
import Glibc

/// A file's content as read from the disk, not from the page cache.
///
/// After a failed write, the page cache holds content that is not on the disk, and returns that content as long as
/// the pages stay in the cache (fsync(2), "Errors"). So the file's pages are written back and dropped from the
/// cache before the file is read.
package struct DiskReading: Equatable, Sendable {
  /// The source from which the file's readers get the content from now on.
  package enum Source: Equatable, Sendable {
    /// The disk.
    case disk
    /// The page cache, at least in part: the pages could not be dropped, and direct I/O was not possible.
    case cache
  }

  /// The source from which the file's readers get the content from now on.
  package private(set) var source = Source.disk
  /// The error of fsync(2), or of the comparison with the disk, which means that an earlier write to the file is not on
  /// the disk. Nil if the disk has all writes.
  package private(set) var lostWrite: SystemError?

  /// The number of bytes read at a time, a multiple of the alignment that O_DIRECT requires (open(2)).
  private static let chunk = 1 << 20
  /// The number of further attempts to drop pages that are being written, and the pause before each in microseconds.
  private static let looks = 4
  private static let pause: UInt32 = 5_000

  /// Reads a whole regular file.
  ///
  /// After a failed sync the pages stay in the cache: they may be all that is left of the file, because a file system that
  /// failed can have metadata that is not on the disk either.
  ///
  /// - Parameters:
  ///   - drops: whether the pages are dropped; false on a file system that turned read-only.
  ///   - lostWrite: the error of a sync in an earlier attempt, which the kernel does not report again. Receives that of
  ///     this attempt, also if the attempt fails.
  /// - Returns: nil if there is no regular file with the name.
  /// - Throws: the error of opening the file or of a failed read.
  package static func read(
    _ name: String, in folder: borrowing Folder, drops: Bool, _ lostWrite: inout SystemError?
  ) throws(SystemError) -> DiskReading? {
    let file: Descriptor
    do {
      file = try folder.open(name, flags: O_RDONLY | O_NONBLOCK)
    } catch  where error.code == ENOENT || error.code == ELOOP {
      // Readers of the file refuse anything but a regular file, with a better error.
      return nil
    }
    let status = try file.status(name: name)
    guard status.isRegular else { return nil }
    return try DiskReading(of: file, name, Int(status.size), in: folder, drops: drops, &lostWrite)
  }

  /// Reads a whole regular file in a single attempt.
  package static func read(_ name: String, in folder: borrowing Folder) throws(SystemError) -> DiskReading? {
    var lostWrite: SystemError?
    return try read(name, in: folder, drops: true, &lostWrite)
  }

  private init(
    of file: borrowing Descriptor, _ name: String, _ length: Int, in folder: borrowing Folder, drops: Bool,
    _ lost: inout SystemError?
  ) throws(SystemError) {
    let number = file.number
    if (try? system("fstatfs \(name)", { Int(clinux_is_in_memory(number)) })) == 1 { return }
    do {
      try file.synchronize(name: name)
    } catch {
      // The kernel reports each failed write once.
      lost = error
    }
    lostWrite = lost
    var buffered = try AlignedBuffer(Self.chunk)
    let drops = drops && lostWrite == nil
    if !drops || !Self.drop(file, length) {
      // Some file systems never drop pages, for example overlayfs on tmpfs. So direct I/O is tried first. Waiting for
      // pages that are in use is only worthwhile if direct I/O is not possible.
      switch try Self.compare(file, name, length, in: folder, &buffered) {
      case .same: return
      case .different:
        lostWrite =
          lostWrite ?? SystemError(call: "read \(name): the page cache holds data that the disk lacks", code: EIO)
        source = .cache
      case .unknown: if !drops || !Self.dropPatiently(file, length) { source = .cache }
      }
    }
    var offset = 0
    while offset < length {
      let count = try buffered.read(file, at: offset, name)
      guard count > 0 else { break }
      offset += count
    }
  }

  /// Drops the pages of a file from the page cache.
  ///
  /// - Returns: whether no page is left.
  private static func drop(_ file: borrowing Descriptor, _ length: Int) -> Bool {
    let number = file.number
    // posix_fadvise() does not report whether pages were dropped, so the next call counts the pages that are left.
    _ = posix_fadvise(number, 0, 0, POSIX_FADV_DONTNEED)
    return clinux_cached_pages(number, length) == 0
  }

  private static func dropPatiently(_ file: borrowing Descriptor, _ length: Int) -> Bool {
    for _ in 0..<looks {
      usleep(pause)
      if drop(file, length) { return true }
    }
    return false
  }

  /// The result of comparing the page cache with the disk.
  private enum Comparison {
    case same, different
    /// Direct I/O is not possible. A file system that turned read-only refuses it while pages wait to be written.
    case unknown
  }

  /// Compares the page cache with the disk.
  ///
  /// - Throws: the error of reading through the page cache.
  private static func compare(
    _ file: borrowing Descriptor, _ name: String, _ length: Int, in folder: borrowing Folder,
    _ buffered: inout AlignedBuffer
  ) throws(SystemError) -> Comparison {
    guard let direct = try? folder.openAroundCache(name) else { return .unknown }
    var stored = try AlignedBuffer(chunk)
    var offset = 0
    while offset < length {
      let count = try buffered.read(file, at: offset, name)
      guard count > 0 else { return .same }
      guard let found = try? stored.read(direct, at: offset, name) else { return .unknown }
      guard found == count, stored.isSame(as: buffered, count) else { return .different }
      offset += count
    }
    return .same
  }
}

/// Memory with the alignment that O_DIRECT requires.
@safe private struct AlignedBuffer: ~Copyable {
  private let start: UnsafeMutableRawPointer
  private let length: Int
  /// The number of bytes that were read into the buffer at a time, at most.
  private var used = 0

  init(_ length: Int) throws(SystemError) {
    var start: UnsafeMutableRawPointer?
    guard unsafe posix_memalign(&start, 4_096, length) == 0, let start = unsafe start else {
      throw SystemError(call: "allocate a buffer", code: ENOMEM)
    }
    unsafe self.start = start
    self.length = length
  }

  // The file may have a key.
  deinit {
    unsafe explicit_bzero(start, used)
    unsafe free(start)
  }

  /// Fills the buffer from an offset of a file on. Returns fewer bytes only at the end of the file.
  mutating func read(_ file: borrowing Descriptor, at offset: Int, _ name: String) throws(SystemError) -> Int {
    let (number, start, length) = unsafe (file.number, start, length)
    let count = try system("read \(name)") { unsafe pread(number, start, length, off_t(offset)) }
    used = max(used, count)
    return count
  }

  func isSame(as other: borrowing AlignedBuffer, _ count: Int) -> Bool {
    unsafe memcmp(start, other.start, count) == 0
  }
}

extension Descriptor {
  /// Returns the status of the open file.
  package func status(name: String) throws(SystemError) -> FileStatus {
    var status = stat()
    let number = number
    try system("fstat \(name)") { unsafe fstat(number, &status) }
    return FileStatus(status)
  }
}
