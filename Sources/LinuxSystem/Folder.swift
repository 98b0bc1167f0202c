import CLinux
import Glibc

/// An open folder: files in it are reached by name from its descriptor, and symbolic links are never followed.
package struct Folder: ~Copyable, Sendable {
  /// The path it was opened by, for messages.
  package let path: String
  private let descriptor: Descriptor

  /// Opens a folder; a symbolic link in its place is refused.
  package init(path given: String) throws(SystemError) {
    // Behind a slash at the end the kernel would follow a link all the same.
    var trimmed = given[...]
    while trimmed.utf8.count > 1, trimmed.utf8.last == UInt8(ascii: "/") { trimmed.removeLast() }
    let path = String(trimmed)
    descriptor = Descriptor(
      adopting: try system("open \(path)") { unsafe clinux_open(path, O_RDONLY | O_DIRECTORY, 0) })
    self.path = path
  }

  /// Makes the folders of a path that are missing, each with this mode.
  package static func create(path: String, mode: UInt32) throws(SystemError) {
    var made = ""
    for part in path.split(separator: "/", omittingEmptySubsequences: true) {
      let parent = made.isEmpty ? (path.hasPrefix("/") ? "/" : ".") : made
      made += (path.hasPrefix("/") || !made.isEmpty ? "/" : "") + part
      if unsafe mkdir(made, mode) == 0 {
        // Else all that is ever synced in it could go with its name. A link above it is followed.
        try Folder(path: "\(parent)/.").synchronize()
      } else if errno != EEXIST {
        let code = errno
        var status = stat()
        // A folder above may be closed to us, and there all the same.
        if unsafe stat(made, &status) != 0 { throw SystemError(call: "mkdir \(made)", code: code) }
      }
    }
  }

  /// The path of the folder that a path leads through last, with a slash at its end: a link to it is followed.
  package static func path(around path: String) -> String {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[...$0]) } ?? "./"
  }

  /// Owner and permission bits of the folder itself.
  package func ownerAndMode() throws(SystemError) -> (owner: UInt32, mode: UInt32) {
    var status = stat()
    let number = descriptor.number
    try system("fstat \(path)") { unsafe fstat(number, &status) }
    return (status.st_uid, status.st_mode & 0o7777)
  }

  /// Looks whether this process may make files in the folder (faccessat(2)).
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

  /// Opens a file in the folder to read it around the page cache (O_DIRECT, open(2)).
  func openAroundCache(_ name: String) throws(SystemError) -> Descriptor {
    let number = descriptor.number
    return Descriptor(adopting: try system("open \(path)/\(name)") { unsafe clinux_openat_direct(number, name) })
  }

  /// Whether the path that the folder was opened by leads to it still.
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

  /// Makes an empty file; one that is there already is refused.
  package func create(_ name: String, mode: UInt32) throws(SystemError) {
    _ = try open(name, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode)
  }

  /// Reads a regular file whole; nil where there is none.
  ///
  /// - Throws: EFBIG where it is longer than `limit` bytes, EINVAL where it is no regular file.
  package func read(_ name: String, limit: Int) throws(SystemError) -> [UInt8]? {
    do {
      let file = try open(name, flags: O_RDONLY | O_NONBLOCK)
      return try file.readWhole(limit: limit, name: "\(path)/\(name)")
    } catch  where error.code == ENOENT {
      return nil
    }
  }

  /// Writes a file so that after a power cut either the old or the new content is there, and after this call the new.
  package func replace(_ name: String, with bytes: [UInt8], mode: UInt32) throws(SystemError) {
    let draft = name + ".new"
    try remove(draft)
    let file = try open(draft, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    var written = 0
    while written < bytes.count { written += try file.write(bytes, from: written) ?? 0 }
    try file.synchronize(name: "\(path)/\(draft)")
    try rename(draft, to: name)
    try synchronize()
  }

  /// Renames a file, replacing what has the new name. Not durable before ``synchronize()``.
  package func rename(_ name: String, to new: String) throws(SystemError) {
    let number = descriptor.number
    try system("rename \(path)/\(name)") { unsafe renameat(number, name, number, new) }
  }

  /// Removes a file; one that is not there is no failure. Not durable before ``synchronize()``.
  package func remove(_ name: String) throws(SystemError) {
    let number = descriptor.number
    do {
      try system("unlink \(path)/\(name)") { unsafe unlinkat(number, name, 0) }
    } catch  where error.code == ENOENT {
      return
    }
  }

  /// What a name stands for now; nil where there is nothing.
  package func status(of name: String) throws(SystemError) -> FileStatus? {
    var status = stat()
    let number = descriptor.number
    do {
      try system("stat \(path)/\(name)") { unsafe fstatat(number, name, &status, AT_SYMLINK_NOFOLLOW) }
    } catch  where error.code == ENOENT {
      return nil
    }
    return FileStatus(status)
  }

  /// Makes the names in the folder durable.
  package func synchronize() throws(SystemError) { try descriptor.synchronize(name: path) }
}

/// What is known of a file without opening it.
package struct FileStatus: Equatable, Sendable {
  /// The file system and the number in it: together they name one file.
  package let device: UInt64
  /// See `device`.
  package let inode: UInt64
  /// Its length in bytes.
  package let size: Int64
  /// When its content was written last, in nanoseconds: a new file may get the number of one that is gone.
  private let modified: Int64
  private let type: mode_t

  /// Whether it is a regular file.
  package var isRegular: Bool { type == S_IFREG }

  /// Why a file may not be put in its place; nil for a regular file. Another would not be what its name is there for.
  var replacementFault: Int32? {
    switch type {
    case S_IFREG: nil
    case S_IFDIR: EISDIR
    case S_IFLNK: ELOOP
    default: EINVAL
    }
  }

  /// Whether both are one file, whatever is in it.
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
  /// Makes the content durable.
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
    // A byte more than there should be, so that the end is seen at once; what the kernel makes up says that it is empty.
    var chunk = [UInt8](repeating: 0, count: min(max(Int(status.st_size) + 1, 4_096), 65_536))
    // It may be a key; what is made of the content is the caller's concern.
    defer { chunk.wipe() }
    while let count = try read(into: &chunk), count > 0 {
      content.appendWiping(chunk.span.extracting(..<count))
      guard content.count <= limit else { throw SystemError(call: "read \(name)", code: EFBIG) }
    }
    return content
  }

  /// Cuts the file to nothing.
  package func truncate(name: String) throws(SystemError) {
    let number = number
    try system("ftruncate \(name)") { ftruncate(number, 0) }
  }
}
