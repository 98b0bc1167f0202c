import CLinux
import Glibc

/// Reads a file from the disk, not from the page cache.
///
/// After a write that failed, the page cache holds content that the disk does not have, and hands it out as long as the pages
/// stay there (fsync(2), "Errors"). So the file's pages are written and dropped from the cache, and then the file is read.
package struct DiskReading: Equatable, Sendable {
  /// The source of what the file's readers see from now on.
  package enum Source: Equatable, Sendable {
    /// The disk.
    case disk
    /// The page cache, in part at least: the pages could not be dropped, and the disk could not be read around it.
    case cache
  }

  /// See ``Source``.
  package private(set) var source = Source.disk
  /// The error of fsync(2): something that was written to the file earlier is not on the disk. Nil where all of it is.
  package private(set) var lostWrite: SystemError?

  /// How much is read at a time, in bytes: a multiple of what O_DIRECT asks for (open(2)).
  private static let chunk = 1 << 20
  /// How often, and after how many microseconds, pages that are being written are looked at again.
  private static let looks = 4
  private static let pause: UInt32 = 5_000

  /// Reads a whole regular file.
  ///
  /// - Returns: nil where there is no such file.
  /// - Throws: the error of a read that failed, and that of opening.
  package static func read(_ name: String, in folder: borrowing Folder) throws(SystemError) -> DiskReading? {
    let file: Descriptor
    do {
      file = try folder.open(name, flags: O_RDONLY | O_NONBLOCK)
    } catch  where error.code == ENOENT || error.code == ELOOP {
      // What is no regular file is refused by those who read it, with a better word.
      return nil
    }
    let status = try file.status(name: name)
    guard status.isRegular else { return nil }
    return try DiskReading(of: file, name, Int(status.size), in: folder)
  }

  private init(of file: borrowing Descriptor, _ name: String, _ length: Int, in folder: borrowing Folder)
    throws(SystemError)
  {
    let number = file.number
    if try system("fstatfs \(name)", { Int(clinux_is_in_memory(number)) }) == 1 { return }
    do {
      try file.synchronize(name: name)
    } catch {
      // The kernel tells each failed write once. What is on the disk now is what counts.
      lostWrite = error
    }
    var buffered = try AlignedBuffer(Self.chunk)
    if try !Self.drop(file, name, length) {
      // Some file systems never let go of pages, as overlayfs on tmpfs. The disk is read around the cache there, and only
      // where that is not possible either it is worth to wait for pages that somebody has in use.
      if try Self.isSame(file, name, length, in: folder, &buffered) { return }
      guard try Self.dropPatiently(file, name, length) else {
        source = .cache
        return
      }
    }
    var place = 0
    while place < length {
      let count = try buffered.read(file, at: place, name)
      guard count > 0 else { break }
      place += count
    }
  }

  /// Drops the pages of a file.
  ///
  /// - Returns: whether none is left.
  private static func drop(_ file: borrowing Descriptor, _ name: String, _ length: Int) throws(SystemError) -> Bool {
    let number = file.number
    // Whether it does anything is seen below.
    _ = posix_fadvise(number, 0, 0, POSIX_FADV_DONTNEED)
    return try system("mincore \(name)", { clinux_cached_pages(number, length) }) == 0
  }

  private static func dropPatiently(_ file: borrowing Descriptor, _ name: String, _ length: Int) throws(SystemError)
    -> Bool
  {
    for _ in 0..<looks {
      usleep(pause)
      if try drop(file, name, length) { return true }
    }
    return false
  }

  /// Compares what the page cache has with the disk.
  ///
  /// - Returns: false where the disk cannot be read around the cache.
  /// - Throws: EIO where they differ.
  private static func isSame(
    _ file: borrowing Descriptor, _ name: String, _ length: Int, in folder: borrowing Folder,
    _ buffered: inout AlignedBuffer
  ) throws(SystemError) -> Bool {
    let direct: Descriptor
    do {
      direct = try folder.openAroundCache(name)
    } catch {
      return false
    }
    var stored = try AlignedBuffer(chunk)
    var place = 0
    while place < length {
      let count = try buffered.read(file, at: place, name)
      guard count > 0 else { return true }
      guard try stored.read(direct, at: place, name) == count, stored.isSame(as: buffered, count) else {
        throw SystemError(call: "read \(name): the page cache has what the disk does not have", code: EIO)
      }
      place += count
    }
    return true
  }
}

/// Memory as O_DIRECT asks for it.
@safe private struct AlignedBuffer: ~Copyable {
  private let start: UnsafeMutableRawPointer
  private let length: Int

  init(_ length: Int) throws(SystemError) {
    var start: UnsafeMutableRawPointer?
    guard unsafe posix_memalign(&start, 4_096, length) == 0, let start = unsafe start else {
      throw SystemError(call: "allocate a buffer", code: ENOMEM)
    }
    unsafe self.start = start
    self.length = length
  }

  deinit { unsafe free(start) }

  /// Fills it from a place of a file on; fewer bytes come at the file's end alone.
  mutating func read(_ file: borrowing Descriptor, at place: Int, _ name: String) throws(SystemError) -> Int {
    let (number, start, length) = unsafe (file.number, start, length)
    return try system("read \(name)") { unsafe pread(number, start, length, off_t(place)) }
  }

  func isSame(as other: borrowing AlignedBuffer, _ count: Int) -> Bool {
    unsafe memcmp(start, other.start, count) == 0
  }
}

extension Descriptor {
  /// What is known of the open file.
  package func status(name: String) throws(SystemError) -> FileStatus {
    var status = stat()
    let number = number
    try system("fstat \(name)") { unsafe fstat(number, &status) }
    return FileStatus(status)
  }
}
