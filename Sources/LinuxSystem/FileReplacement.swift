import Glibc

/// A file that takes its place once it is whole: until then what was there stays, and a power cut leaves one or the other.
package struct FileReplacement: Sendable {
  /// The file, where a symbolic link led to it the one that it led to.
  package let path: String
  /// What it is written to first.
  private let draft: String
  private let folder: String

  /// Looks whether the file can be replaced; nothing is changed yet.
  ///
  /// - Throws: EISDIR or EINVAL where something stands there that is no regular file, and why the folder cannot be written.
  package init(of given: String) throws(SystemError) {
    guard !given.isEmpty, given.utf8.last != UInt8(ascii: "/") else {
      throw SystemError(call: "create \(given)", code: given.isEmpty ? ENOENT : EISDIR)
    }
    let path = try Self.target(of: given)
    let folder = Folder.path(around: path)
    try system("create a file in \(folder)") { unsafe faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) }
    var random = Entropy()
    draft = "\(path).\(String(try random.next(), radix: 16)).new"
    self.path = path
    self.folder = folder
  }

  /// Where the bytes go. Only a regular file is ever replaced: another would not be what its name is there for.
  private static func target(of path: String) throws(SystemError) -> String {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else {
      if errno == ENOENT { return path }
      throw SystemError(call: "stat \(path)", code: errno)
    }
    let isLink = status.st_mode & S_IFMT == S_IFLNK
    if isLink { try system("stat \(path)") { unsafe stat(path, &status) } }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return isLink ? try resolved(path) : path
    case S_IFDIR: throw SystemError(call: "replace \(path)", code: EISDIR)
    default: throw SystemError(call: "replace \(path)", code: EINVAL)
    }
  }

  private static func resolved(_ path: String) throws(SystemError) -> String {
    guard let resolved = unsafe realpath(path, nil) else { throw SystemError(call: "resolve \(path)", code: errno) }
    defer { unsafe free(resolved) }
    return unsafe String(cString: resolved)
  }

  /// Makes the new file beside the old one.
  ///
  /// - Parameter mode: who may read it, whatever the process's mask is; this user alone where nothing is said.
  package func begin(mode: UInt32 = 0o600) throws(SystemError) -> Descriptor {
    let file = Descriptor(
      adopting: try system("create \(draft)") {
        unsafe Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      })
    let number = file.number
    if mode != 0o600 { try system("change the mode of \(draft)") { fchmod(number, mode) } }
    return file
  }

  /// Puts the new file in the place of the old one; after this call it is on disk.
  package func finish(_ file: consuming Descriptor) throws(SystemError) {
    try file.synchronize(name: draft)
    // The folder first: once the file has its name, nothing should fail that can fail before.
    let holder = Descriptor(
      adopting: try system("open \(folder)") { unsafe Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    try system("rename \(draft) to \(path)") { unsafe Glibc.rename(draft, path) }
    do {
      try holder.synchronize(name: folder)
    } catch  where error.code == EINVAL {
      // Some file systems have no such thing for folders.
    }
  }

  /// Removes the new file where it has not taken its place.
  package func discard() { _ = unsafe unlink(draft) }
}

extension Descriptor {
  /// Writes everything to a file.
  package func writeAll(_ bytes: [UInt8]) throws(SystemError) {
    var written = 0
    while written < bytes.count { written += try write(bytes, from: written) ?? 0 }
  }
}
