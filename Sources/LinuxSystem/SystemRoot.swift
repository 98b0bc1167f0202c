import CLinux
import Glibc

/// The root folder of a system, such as a mounted image. Its files are found as that system would find them: a symbolic
/// link, even to an absolute path, is followed below the root, and nothing leads out of it (RESOLVE_IN_ROOT, openat2(2)).
package struct SystemRoot: ~Copyable {
  /// The path of the root, without a slash at its end. Empty for the root of this system.
  private let path: String
  private let descriptor: Descriptor

  /// Opens the root of a system. Follows a symbolic link to it.
  package init(_ given: String) throws(SystemError) {
    var trimmed = given[...]
    while trimmed.utf8.last == UInt8(ascii: "/") { trimmed.removeLast() }
    path = String(trimmed)
    descriptor = Descriptor(
      adopting: try system("open \(given)") { unsafe clinux_open("\(given)/.", O_RDONLY | O_DIRECTORY, 0) })
  }

  /// Returns the path of a file from outside of the system, for messages.
  ///
  /// - Parameter name: the path below the root, without a slash at its beginning.
  package func path(of name: String) -> String { "\(path)/\(name)" }

  /// Opens a folder below the root; nil if there is none.
  package func folder(_ name: String) throws(SystemError) -> Folder? {
    guard let folder = try open(name, O_RDONLY | O_DIRECTORY) else { return nil }
    return Folder(adopting: folder, path: path(of: name))
  }

  /// Reads a whole regular file below the root; nil if there is none.
  ///
  /// - Throws: EFBIG if the file is longer than `limit` bytes, EINVAL if it is not a regular file.
  package func read(_ name: String, limit: Int) throws(SystemError) -> [UInt8]? {
    guard let file = try open(name, O_RDONLY | O_NONBLOCK) else { return nil }
    return try file.readWhole(limit: limit, name: path(of: name))
  }

  private func open(_ name: String, _ flags: Int32) throws(SystemError) -> Descriptor? {
    let number = descriptor.number
    let path = path(of: name)
    do {
      // RestrictSUIDSGID= of systemd forbids openat2(2), which nothing needs where all paths begin at the root.
      let isOwn = self.path.isEmpty
      return Descriptor(
        adopting: try system("open \(path)") {
          isOwn ? unsafe Glibc.open(path, flags | O_CLOEXEC) : unsafe clinux_open_below(number, name, flags)
        })
    } catch  where error.code == ENOENT {
      return nil
    }
  }
}

extension Folder {
  /// Returns the names in the folder in byte order. Leaves out names that are not UTF-8.
  package func names() throws(SystemError) -> [String] {
    let listed = try open(".", flags: O_RDONLY | O_DIRECTORY).release()
    guard let stream = unsafe fdopendir(listed) else {
      let code = errno
      _ = close(listed)
      throw SystemError(call: "fdopendir \(path)", code: code)
    }
    return try unsafe ConfigurationAccess.names(readAndClosed: stream, path)
  }

  /// Gives a file in the folder to the owner of the folder, who is another user if root created the file.
  package func giveToOwner(_ name: String) throws(SystemError) {
    var own = stat()
    let number = number
    try system("fstat \(path)") { unsafe fstat(number, &own) }
    try system("chown \(path)/\(name)") { unsafe fchownat(number, name, own.st_uid, own.st_gid, AT_SYMLINK_NOFOLLOW) }
  }
}
