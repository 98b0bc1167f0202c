import Glibc

/// What a path stands for, learned without opening it (stat(2)).
package struct PathStatus: Equatable, Sendable {
  /// What kind of file it is.
  package enum Kind: String, Sendable {
    case folder, regular, socket, link, other
  }

  /// What kind of file it is.
  package let kind: Kind
  /// The user it belongs to.
  package let owner: UInt32
  /// The group it belongs to.
  package let group: UInt32
  /// Its permission bits, with the sticky bit and those that set user and group.
  package let mode: UInt32
  /// Its length in bytes.
  package let size: Int64

  /// Puts one together.
  package init(_ kind: Kind, owner: UInt32, group: UInt32, mode: UInt32, size: Int64 = 0) {
    self.kind = kind
    self.owner = owner
    self.group = group
    self.mode = mode
    self.size = size
  }

  /// Looks at a path.
  ///
  /// - Parameter followsLink: whether what a symbolic link leads to is meant, and not the link.
  /// - Returns: nil where there is nothing.
  package static func of(_ path: String, followsLink: Bool = true) throws(SystemError) -> PathStatus? {
    var status = stat()
    do {
      try system("stat \(path)") {
        unsafe fstatat(AT_FDCWD, path, &status, followsLink ? 0 : AT_SYMLINK_NOFOLLOW)
      }
    } catch  where error.code == ENOENT || error.code == ENOTDIR {
      return nil
    }
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFDIR: .folder
      case S_IFREG: .regular
      case S_IFSOCK: .socket
      case S_IFLNK: .link
      default: .other
      }
    return PathStatus(
      kind, owner: status.st_uid, group: status.st_gid, mode: status.st_mode & 0o7777, size: Int64(status.st_size))
  }

  /// The path that a path leads to when every symbolic link on it is followed (realpath(3)); nil where it leads to nothing.
  package static func resolved(_ path: String) throws(SystemError) -> String? {
    guard let target = unsafe realpath(path, nil) else {
      let code = errno
      guard code == ENOENT || code == ENOTDIR else { throw SystemError(call: "realpath \(path)", code: code) }
      return nil
    }
    defer { unsafe free(target) }
    return unsafe String(cString: target)
  }
}

/// The room on a file system for those who are not root (statvfs(3)).
package struct FileSystemSpace: Equatable, Sendable {
  /// Bytes that are free.
  package let freeBytes: UInt64
  /// Files that can still be made; nil where the file system has no bound of its own.
  package let freeFiles: UInt64?

  /// Puts one together.
  package init(freeBytes: UInt64, freeFiles: UInt64?) {
    self.freeBytes = freeBytes
    self.freeFiles = freeFiles
  }

  /// Asks the file system that a path is on.
  package init(of path: String) throws(SystemError) {
    var room = statvfs()
    try system("statvfs \(path)") { unsafe statvfs(path, &room) }
    freeBytes = UInt64(room.f_bavail) * UInt64(room.f_frsize)
    freeFiles = room.f_files == 0 ? nil : UInt64(room.f_favail)
  }
}
