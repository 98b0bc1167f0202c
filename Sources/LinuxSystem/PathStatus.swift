import CLinux
import Glibc

/// The status of a path, read without opening the file (stat(2)).
package struct PathStatus: Equatable, Sendable {
  /// The type of a file.
  package enum Kind: String, Sendable {
    case folder, regular, socket, link, other
  }

  /// The type of the file.
  package let kind: Kind
  /// The user that owns the file.
  package let owner: UInt32
  /// The group that owns the file.
  package let group: UInt32
  /// The permission bits, including the sticky bit and the set-user-ID and set-group-ID bits.
  package let mode: UInt32
  /// The length in bytes.
  package let size: Int64
  /// The time of the last change of the file or its attributes, in seconds since 1970.
  package let changed: Int64

  package init(_ kind: Kind, owner: UInt32, group: UInt32, mode: UInt32, size: Int64 = 0, changed: Int64 = 0) {
    self.kind = kind
    self.owner = owner
    self.group = group
    self.mode = mode
    self.size = size
    self.changed = changed
  }

  /// Reads the status of a path.
  ///
  /// - Parameter followsLink: whether to return the status of a symbolic link's target instead of the link's own.
  /// - Returns: nil if there is no file.
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
      kind, owner: status.st_uid, group: status.st_gid, mode: status.st_mode & 0o7777, size: Int64(status.st_size),
      changed: Int64(status.st_ctim.tv_sec))
  }

  /// Returns a path with all symbolic links resolved (realpath(3)), or nil if the path leads to no file.
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

/// The free space on a file system for users other than root (statvfs(3)).
package struct FileSystemSpace: Equatable, Sendable {
  /// The number of free bytes.
  package let freeBytes: UInt64
  /// The number of files that can still be created; nil if the file system has no limit of its own.
  package let freeFiles: UInt64?

  package init(freeBytes: UInt64, freeFiles: UInt64?) {
    self.freeBytes = freeBytes
    self.freeFiles = freeFiles
  }

  /// Reads the free space on the file system that contains a path.
  package init(of path: String) throws(SystemError) {
    var room = statvfs()
    try system("statvfs \(path)") { unsafe statvfs(path, &room) }
    freeBytes = UInt64(room.f_bavail) * UInt64(room.f_frsize)
    freeFiles = room.f_files == 0 ? nil : UInt64(room.f_favail)
  }
}
