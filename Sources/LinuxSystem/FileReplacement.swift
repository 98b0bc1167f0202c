import Glibc

/// A file that atomically replaces another once its content is complete.
///
/// Until then the old file stays. A power cut leaves either the old file or the new one.
///
/// Every step uses a name in the folder that was opened at the start, and a symbolic link in place of the file
/// is refused. So nobody who can write to the folder can redirect the bytes (symlink(7)). Links in the path
/// above the file are followed, or by a privileged writer only those of root and of its own user.
package final class FileReplacement: Sendable {
  /// The path as given, for messages.
  package let path: String
  private let folder: Folder
  private let name: String
  /// The name of the temporary file that takes the bytes first.
  private let draft: String

  /// Checks whether the file can be replaced, without changing anything.
  ///
  /// - Parameters:
  ///   - path: the path of the file.
  ///   - followsLinksOfOthers: false for a privileged program that writes at a fixed path, below folders of others:
  ///     symbolic links of other users on the way to the file are refused then, with ELOOP.
  /// - Throws: EISDIR for a folder, ELOOP for a symbolic link, EINVAL for another file that is not regular, ENOENT for
  ///   an empty path; or the reason why the folder is not writable.
  package init(of path: String, followsLinksOfOthers: Bool = true) throws(SystemError) {
    let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.index(after: $0)...] } ?? path[...]
    guard !name.isEmpty else {
      throw SystemError(call: "create \(path)", code: path.isEmpty ? ENOENT : EISDIR)
    }
    let folder = try Self.writableFolder(Folder.path(around: path), followsLinksOfOthers: followsLinksOfOthers)
    if let code = try folder.status(of: String(name))?.replacementFault {
      throw SystemError(call: "replace \(path)", code: code)
    }
    var random = Entropy()
    self.path = path
    self.folder = folder
    self.name = String(name)
    draft = "\(name).\(String(try random.next(), radix: 16)).new"
  }

  private static func writableFolder(_ path: String, followsLinksOfOthers: Bool) throws(SystemError) -> Folder {
    guard followsLinksOfOthers else {
      let folder = try Folder(unredirected: path)
      try folder.requireWritable()
      return folder
    }
    do throws(SystemError) {
      // The dot makes the kernel follow a symbolic link to the folder.
      let folder = try Folder(path: "\(path).")
      try folder.requireWritable()
      return folder
    } catch {
      throw SystemError(call: "create a file in \(path)", code: error.code)
    }
  }

  /// Creates the temporary file next to the old one.
  ///
  /// - Parameter mode: the permission bits, regardless of the process's umask. By default only this user has access.
  package func begin(mode: UInt32 = 0o600) throws(SystemError) -> Descriptor {
    let file = try folder.open(draft, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    let number = file.number
    if mode != 0o600 { try system("change the mode of \(draft)") { fchmod(number, mode) } }
    return file
  }

  /// Moves the new file into the place of the old one. After this call the new file is on disk.
  package func finish(_ file: consuming Descriptor) throws(SystemError) {
    try file.synchronize(name: draft)
    // rename(2) replaces a symbolic link that has taken the place of the file meanwhile, without following the link.
    try folder.rename(draft, to: name)
    do {
      try folder.synchronize()
    } catch  where error.code == EINVAL {
      // Some file systems do not support fsync(2) for folders.
    }
  }

  /// Removes the temporary file if it has not replaced the old one.
  package func discard() { try? folder.remove(draft) }
}

extension Descriptor {
  /// Writes all of the bytes to a file.
  package func writeAll(_ bytes: [UInt8]) throws(SystemError) {
    var written = 0
    while written < bytes.count { written += try write(bytes, from: written) ?? 0 }
  }
}
