/// A mounted file system, as a mount namespace shows it (proc_pid_mountinfo(5), mount_namespaces(7)).
///
/// A mount has a read-only flag of its own beside that of its file system. `mount -o remount,rw` clears the flag of the
/// file system for every mount, but the flag of the mount only in the namespace of the command. The copy of the mount
/// in another namespace, such as that of a service, stays read-only.
package struct Mount: Equatable, Sendable {
  /// The path of the mount point.
  package let path: String
  /// Whether the mount is read-only in this namespace.
  package let isMountReadOnly: Bool
  /// Whether the file system is read-only, and thus each of its mounts.
  package let isFileSystemReadOnly: Bool
  private let id: Substring

  /// Whether nothing can be written through the mount.
  package var isReadOnly: Bool { isMountReadOnly || isFileSystemReadOnly }

  /// The maximum length of a list of mounts in bytes: a line has some 200 bytes, and a machine with many containers
  /// thousands of lines.
  private static let longestList = 4_194_304

  /// Returns the mount that contains a path, for the mount namespace of a process.
  ///
  /// - Parameter process: The process ID, or `self`.
  /// - Returns: Nil if the path or the mounts cannot be read.
  package static func containing(_ path: String, for process: String) -> Mount? {
    guard let real = (try? PathStatus.resolved(path)) ?? nil, let list = text(of: "/proc/\(process)/mountinfo") else {
      return nil
    }
    return containing(real, in: list)
  }

  /// Returns the mount that contains a path.
  ///
  /// - Parameters:
  ///   - path: An absolute path without symbolic links.
  ///   - list: The content of `/proc/PID/mountinfo`.
  /// - Returns: Nil if no mount contains the path.
  package static func containing(_ path: String, in list: String) -> Mount? {
    let mounts = mounts(in: list).filter { mount in
      mount.path == "/" || path == mount.path || path.hasPrefix("\(mount.path)/")
    }
    // Of several mounts on one point, the last one hides the others.
    return mounts.max { $0.path.utf8.count < $1.path.utf8.count }.flatMap { longest in
      mounts.last { $0.path == longest.path }
    }
  }

  /// Returns the mount with an ID.
  ///
  /// - Parameter list: The content of `/proc/PID/mountinfo`.
  static func identified(by id: Substring, in list: String) -> Mount? { mounts(in: list).first { $0.id == id } }

  fileprivate static func text(of path: String) -> String? {
    guard case .bytes(let bytes)? = try? ConfigurationAccess.read(path: path, limit: longestList) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func mounts(in list: String) -> [Mount] { list.split(separator: "\n").compactMap(Mount.init) }

  /// Parses a line. Returns nil if the line has another form.
  private init?(_ line: Substring) {
    func isReadOnly(_ options: Substring) -> Bool { options.split(separator: ",").contains("ro") }
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    // Optional fields end with a hyphen. Behind it are the type, the source and the options of the file system.
    guard words.count > 6, let end = words[6...].firstIndex(of: "-"), words.count > end + 3 else { return nil }
    id = words[0]
    path = Self.decoded(words[4])
    isMountReadOnly = isReadOnly(words[5])
    isFileSystemReadOnly = isReadOnly(words[end + 3])
  }

  /// Decodes `\NNN`, which stands for a byte of white space or a backslash.
  private static func decoded(_ field: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = Array(field.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8) {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Folder {
  /// Returns the mount that the folder is on; nil if /proc does not show it.
  package func mount() -> Mount? {
    guard let facts = Mount.text(of: "/proc/self/fdinfo/\(number)"), let list = Mount.text(of: "/proc/self/mountinfo"),
      let line = facts.split(separator: "\n").first(where: { $0.hasPrefix("mnt_id:") }),
      let id = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last
    else { return nil }
    return Mount.identified(by: id, in: list)
  }
}
