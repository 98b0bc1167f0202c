import Glibc

/// A file that takes its place once it is whole: until then what was there stays, and a power cut leaves one or the other.
///
/// All is done by name in the folder that was opened at the beginning, and a symbolic link in the place of the file is
/// refused: whoever can write to the folder cannot lead the bytes anywhere else (symlink(7)). Links above it are followed.
package final class FileReplacement: Sendable {
  /// The path as it was given, for messages.
  package let path: String
  private let folder: Folder
  private let name: String
  /// What it is written to first.
  private let draft: String

  /// Looks whether the file can be replaced; nothing is changed yet.
  ///
  /// - Throws: EISDIR, ELOOP or EINVAL where a folder, a symbolic link or another thing that is no regular file stands there,
  ///   and why the folder cannot be written.
  package init(of path: String) throws(SystemError) {
    let name = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.index(after: $0)...] } ?? path[...]
    guard !name.isEmpty else {
      throw SystemError(call: "create \(path)", code: path.isEmpty ? ENOENT : EISDIR)
    }
    let folder = try Self.writableFolder(Folder.path(around: path))
    if let code = try folder.status(of: String(name))?.replacementFault {
      throw SystemError(call: "replace \(path)", code: code)
    }
    var random = Entropy()
    self.path = path
    self.folder = folder
    self.name = String(name)
    draft = "\(name).\(String(try random.next(), radix: 16)).new"
  }

  private static func writableFolder(_ path: String) throws(SystemError) -> Folder {
    do throws(SystemError) {
      // A link to the folder is followed.
      let folder = try Folder(path: "\(path).")
      try folder.requireWritable()
      return folder
    } catch {
      throw SystemError(call: "create a file in \(path)", code: error.code)
    }
  }

  /// Makes the new file beside the old one.
  ///
  /// - Parameter mode: who may read it, whatever the process's mask is; this user alone where nothing is said.
  package func begin(mode: UInt32 = 0o600) throws(SystemError) -> Descriptor {
    let file = try folder.open(draft, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    let number = file.number
    if mode != 0o600 { try system("change the mode of \(draft)") { fchmod(number, mode) } }
    return file
  }

  /// Puts the new file in the place of the old one; after this call it is on disk.
  package func finish(_ file: consuming Descriptor) throws(SystemError) {
    try file.synchronize(name: draft)
    // A link that took the place of the file meanwhile is replaced itself (rename(2)).
    try folder.rename(draft, to: name)
    do {
      try folder.synchronize()
    } catch  where error.code == EINVAL {
      // Some file systems have no such thing for folders.
    }
  }

  /// Removes the new file where it has not taken its place.
  package func discard() { try? folder.remove(draft) }
}

extension Descriptor {
  /// Writes everything to a file.
  package func writeAll(_ bytes: [UInt8]) throws(SystemError) {
    var written = 0
    while written < bytes.count { written += try write(bytes, from: written) ?? 0 }
  }
}
