import CLinux
import Glibc

/// An open folder, whose files are reached by name from its descriptor. Symbolic links are never followed.
package struct Folder: ~Copyable, Sendable {
  /// The path that the folder was opened with, for messages.
  package let path: String
  private let descriptor: Descriptor
  /// The number of the folder's descriptor.
  var number: Int32 { descriptor.number }

  /// Opens a folder. Refuses a symbolic link in its place.
  package init(path given: String) throws(SystemError) {
    // With a slash at the end of the path, the kernel would follow a symbolic link in spite of O_NOFOLLOW.
    var trimmed = given[...]
    while trimmed.utf8.count > 1, trimmed.utf8.last == UInt8(ascii: "/") { trimmed.removeLast() }
    let path = String(trimmed)
    descriptor = Descriptor(
      adopting: try system("open \(path)") { unsafe clinux_open(path, O_RDONLY | O_DIRECTORY, 0) })
    self.path = path
  }

  /// Takes an open folder, and the path that led to it.
  init(adopting descriptor: consuming Descriptor, path: String) {
    self.path = path
    self.descriptor = descriptor
  }

  /// Creates the missing folders of a path, each with the given mode.
  package static func create(path: String, mode: UInt32) throws(SystemError) {
    var made = ""
    for part in path.split(separator: "/", omittingEmptySubsequences: true) {
      let parent = made.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : made
      made += (path.hasPrefix("/") || !made.isEmpty ? "/" : "") + part
      if unsafe mkdir(made, mode) == 0 {
        // Without this sync, a power cut could remove the new folder, with everything synced in it. The dot makes the
        // kernel follow a symbolic link to the parent.
        try Folder(path: "\(parent)/.").synchronize()
      } else if errno != EEXIST {
        let code = errno
        var status = stat()
        // mkdir() may be forbidden in a parent folder although the new folder already exists.
        if unsafe stat(made, &status) != 0 { throw SystemError(call: "mkdir \(made)", code: code) }
      }
    }
  }

  /// Returns the path of the folder that contains the file at a path, or `./` for a bare name.
  ///
  /// The result ends with a slash, so that the kernel follows a symbolic link to the folder.
  package static func path(around path: String) -> String {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? "./"
  }

  /// Returns the owner and the permission bits of the folder itself.
  package func ownerAndMode() throws(SystemError) -> (owner: UInt32, mode: UInt32) {
    var status = stat()
    let number = descriptor.number
    try system("fstat \(path)") { unsafe fstat(number, &status) }
    return (status.st_uid, status.st_mode & 0o7777)
  }

  /// Checks whether this process may create files in the folder (faccessat(2)), and throws if not.
  package func requireWritable() throws(SystemError) {
    let number = descriptor.number
    try system("create a file in \(path)") { unsafe faccessat(number, ".", W_OK | X_OK, AT_EACCESS) }
  }

  /// Opens a file in the folder.
  package func open(_ name: String, flags: Int32, mode: UInt32 = 0) throws(SystemError) -> Descriptor {
    let number = descriptor.number
    return Descriptor(
      adopting: try system("open \(path)/\(name)") { unsafe clinux_openat(number, name, flags, mode) })
  }

  /// Opens a file in the folder for reading around the page cache (O_DIRECT, open(2)).
  func openAroundCache(_ name: String) throws(SystemError) -> Descriptor {
    let number = descriptor.number
    return Descriptor(adopting: try system("open \(path)/\(name)") { unsafe clinux_openat_direct(number, name) })
  }

  /// Returns whether the path that the folder was opened with still leads to the folder.
  package func isInPlace() throws(SystemError) -> Bool {
    var (own, found) = (stat(), stat())
    let number = descriptor.number
    try system("fstat \(path)") { unsafe fstat(number, &own) }
    do {
      try system("stat \(path)") { unsafe stat(path, &found) }
    } catch  where [ENOENT, ENOTDIR, ELOOP].contains(error.code) {
      return false
    }
    return own.st_dev == found.st_dev && own.st_ino == found.st_ino
  }

  /// Creates an empty file. Refuses to open an existing one.
  package func create(_ name: String, mode: UInt32) throws(SystemError) {
    _ = try open(name, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode)
  }

  /// Reads a whole regular file, or returns nil if there is no file.
  ///
  /// - Throws: EFBIG if the file is longer than `limit` bytes, EINVAL if it is not a regular file.
  package func read(_ name: String, limit: Int) throws(SystemError) -> [UInt8]? {
    do {
      let file = try open(name, flags: O_RDONLY | O_NONBLOCK)
      return try file.readWhole(limit: limit, name: "\(path)/\(name)")
    } catch  where error.code == ENOENT {
      return nil
    }
  }

  /// Replaces a file atomically. A power cut leaves the old or the new content, and after a durable call only the new.
  ///
  /// - Parameter isDurable: false if the new content is durable only after ``synchronize()``.
  package func replace(_ name: String, with bytes: [UInt8], mode: UInt32, isDurable: Bool = true) throws(SystemError) {
    let draft = name + ".new"
    try remove(draft)
    let file = try open(draft, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    var written = 0
    while written < bytes.count { written += try file.write(bytes, from: written) ?? 0 }
    try file.synchronize(name: "\(path)/\(draft)")
    try rename(draft, to: name)
    if isDurable { try synchronize() }
  }

  /// Renames a file, and replaces a file that has the new name. Durable only after ``synchronize()``.
  package func rename(_ name: String, to new: String) throws(SystemError) {
    let number = descriptor.number
    try system("rename \(path)/\(name)") { unsafe renameat(number, name, number, new) }
  }

  /// Removes a file. A missing file is no failure. Durable only after ``synchronize()``.
  package func remove(_ name: String) throws(SystemError) {
    let number = descriptor.number
    do {
      try system("unlink \(path)/\(name)") { unsafe unlinkat(number, name, 0) }
    } catch  where error.code == ENOENT {
      return
    }
  }

  /// Returns the status of a file in the folder without following a symbolic link, or nil if there is no file.
  package func status(of name: String) throws(SystemError) -> FileStatus? {
    var status = stat()
    let number = descriptor.number
    // Without an error and its text: each commit asks for a file that is usually missing.
    var isMissing = false
    try system("stat \(path)/\(name)") {
      let result = unsafe fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW)
      isMissing = result == -1 && errno == ENOENT
      return isMissing ? 0 : result
    }
    return isMissing ? nil : FileStatus(status)
  }

  /// Syncs the names in the folder to disk.
  package func synchronize() throws(SystemError) { try descriptor.synchronize(name: path) }
}

/// The status of a file (stat(2)).
package struct FileStatus: Equatable, Sendable {
  /// The device number of the file system. Together with ``inode``, the device number identifies a file.
  package let device: UInt64
  /// The inode number in the file system; see ``device``.
  package let inode: UInt64
  /// The length in bytes.
  package let size: Int64
  /// The time of the last change to the content, in nanoseconds. A new file may get the inode number of a deleted one,
  /// and the time tells them apart.
  private let modified: Int64
  private let type: mode_t

  /// Whether the file is a regular file.
  package var isRegular: Bool { type == S_IFREG }
  /// Whether the file is a folder.
  package var isFolder: Bool { type == S_IFDIR }

  /// The errno value that says why the file may not be replaced; nil for a regular file.
  ///
  /// Anything but a regular file serves another purpose than the file that would replace it.
  var replacementFault: Int32? {
    switch type {
    case S_IFREG: nil
    case S_IFDIR: EISDIR
    case S_IFLNK: ELOOP
    default: EINVAL
    }
  }

  /// Returns whether both are the same file, regardless of the content.
  package func isSame(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }

  init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
    type = status.st_mode & S_IFMT
  }
}

extension Descriptor {
  /// Syncs the content to disk.
  package func synchronize(name: String) throws(SystemError) {
    let number = number
    try system("fsync \(name)") { fsync(number) }
  }

  /// Reads a regular file to its end.
  package func readWhole(limit: Int, name: String) throws(SystemError) -> [UInt8] {
    var status = stat()
    let number = number
    try system("fstat \(name)") { unsafe fstat(number, &status) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError(call: "read \(name)", code: EINVAL) }
    var content: [UInt8] = []
    // Room for all of a small file. Files that the kernel generates report a size of 0, hence the lower bound.
    var chunk = [UInt8](repeating: 0, count: min(max(Int(status.st_size) + 1, 4_096), 65_536))
    // The content may be a key. Wiping the returned array is up to the caller.
    defer { chunk.wipe() }
    while let count = try read(into: &chunk), count > 0 {
      content.appendWiping(chunk.span.extracting(..<count))
      guard content.count <= limit else { throw SystemError(call: "read \(name)", code: EFBIG) }
    }
    return content
  }

  /// Truncates the file to no bytes.
  package func truncate(name: String) throws(SystemError) {
    let number = number
    try system("ftruncate \(name)") { ftruncate(number, 0) }
  }
}
