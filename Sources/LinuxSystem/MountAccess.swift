import Glibc

/// Whether a mount and its file system can be written, as the mount namespace of this process shows them
/// (mount_namespaces(7)).
///
/// A mount has a read-only flag of its own beside that of its file system. `mount -o remount,rw` clears the flag of the
/// file system for every mount, but the flag of the mount only in the namespace of the command. The copy of the mount
/// in another namespace, such as that of a service, stays read-only.
package struct MountAccess: Equatable, Sendable {
  /// Whether the mount is read-only in this namespace.
  package let isMountReadOnly: Bool
  /// Whether the file system is read-only, and thus each of its mounts.
  package let isFileSystemReadOnly: Bool

  /// Finds the mount with an ID in the text of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
  ///
  /// Nil if there is no line with this ID.
  init?(mount id: Substring, in mounts: String) {
    func isReadOnly(_ options: Substring?) -> Bool { options?.split(separator: ",").contains("ro") == true }
    for line in mounts.split(separator: "\n") where line.prefix(while: { $0 != " " }) == id {
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      // Optional fields end with a hyphen. Behind it are the type, the source and the options of the file system.
      guard words.count > 6, let end = words[6...].firstIndex(of: "-"), words.count > end + 3 else { return nil }
      isMountReadOnly = isReadOnly(words[5])
      isFileSystemReadOnly = isReadOnly(words[end + 3])
      return
    }
    return nil
  }
}

extension Folder {
  /// Returns the access of the mount that the folder is on, or nil if /proc does not show it.
  package func mountAccess() -> MountAccess? {
    guard let facts = Self.text(of: "fdinfo/\(number)"), let mounts = Self.text(of: "mountinfo"),
      let line = facts.split(separator: "\n").first(where: { $0.hasPrefix("mnt_id:") }),
      let id = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last
    else { return nil }
    return MountAccess(mount: id, in: mounts)
  }

  private static func text(of file: String) -> String? {
    guard let folder = try? Folder(path: "/proc/self/."),
      let bytes = (try? folder.read(file, limit: longestFacts)) ?? nil
    else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The limit for the list of all mounts, in bytes: a line has some 200 bytes, and a machine with many containers
  /// thousands of lines.
  private static let longestFacts = 4_194_304
}
