import CLinux
import Glibc

/// Access to files that an administrator placed, by path and through symbolic links, as the administrator meant them.
package enum ConfigurationAccess {
  /// The content of a path.
  package enum Content: Equatable, Sendable {
    /// There is no file.
    case missing
    /// The path leads to /dev/null, so the file is masked, as in systemd.unit(5).
    case masked
    case bytes([UInt8])
  }

  /// The device number of /dev/null: major 1, minor 3 (Documentation/admin-guide/devices.txt of Linux).
  private static let nullDevice: dev_t = 1 << 8 | 3

  /// Reads a file.
  ///
  /// - Throws: EFBIG if the file is longer than `limit` bytes, EINVAL if it is neither a regular file nor /dev/null.
  package static func read(path: String, limit: Int) throws(SystemError) -> Content {
    var status = stat()
    do {
      try system("stat \(path)") { unsafe stat(path, &status) }
    } catch  where error.code == ENOENT || error.code == ENOTDIR {
      return .missing
    }
    if status.st_mode & S_IFMT == S_IFCHR, status.st_rdev == nullDevice { return .masked }
    let file = Descriptor(
      adopting: try system("open \(path)") { unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) })
    return .bytes(try file.readWhole(limit: limit, name: path))
  }

  /// Returns the names in a folder in byte order, or nil if there is no folder. Leaves out names that are not UTF-8.
  package static func names(in path: String) throws(SystemError) -> [String]? {
    guard let stream = unsafe opendir(path) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw SystemError(call: "opendir \(path)", code: errno)
    }
    return try unsafe names(readAndClosed: stream, path)
  }

  /// Reads the names from an open stream, and closes the stream.
  static func names(readAndClosed stream: OpaquePointer, _ path: String) throws(SystemError) -> [String] {
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        if errno != 0 { throw SystemError(call: "readdir \(path)", code: errno) }
        return names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
      }
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let name, name != ".", name != ".." { names.append(name) }
    }
  }
}
