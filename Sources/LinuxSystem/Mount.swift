/// A mounted file system (proc_pid_mountinfo(5)).
package struct Mount: Equatable, Sendable {
  /// The path of the mount point.
  package let path: String
  /// Whether the mount or its file system is read-only.
  package let isReadOnly: Bool

  /// The maximum length of a list of mounts in bytes: enough for thousands of them.
  private static let longest = 1 << 20

  /// Returns the mount that contains a path, for the mount namespace of a process.
  ///
  /// - Parameter process: The process ID, or `self`.
  /// - Returns: Nil if the path or the mounts cannot be read.
  package static func containing(_ path: String, for process: String) -> Mount? {
    guard let real = (try? PathStatus.resolved(path)) ?? nil,
      case .bytes(let bytes)? = try? ConfigurationAccess.read(path: "/proc/\(process)/mountinfo", limit: longest)
    else { return nil }
    return containing(real, in: String(decoding: bytes, as: UTF8.self))
  }

  /// Returns the mount that contains a path.
  ///
  /// - Parameters:
  ///   - path: An absolute path without symbolic links.
  ///   - list: The content of `/proc/PID/mountinfo`.
  /// - Returns: Nil if no mount contains the path.
  package static func containing(_ path: String, in list: String) -> Mount? {
    let mounts = list.split(separator: "\n").compactMap(parse).filter { mount in
      mount.path == "/" || path == mount.path || path.hasPrefix("\(mount.path)/")
    }
    // Of several mounts on one point, the last one hides the others.
    return mounts.max { $0.path.utf8.count < $1.path.utf8.count }.flatMap { longest in
      mounts.last { $0.path == longest.path }
    }
  }

  /// Parses a line: the fifth field is the mount point, the sixth has the options of the mount, and the last one has
  /// those of the file system.
  private static func parse(_ line: Substring) -> Mount? {
    let fields = line.split(separator: " ")
    guard fields.count >= 10, let last = fields.last else { return nil }
    let options = fields[5].split(separator: ",") + last.split(separator: ",")
    return Mount(path: decoded(fields[4]), isReadOnly: options.contains("ro"))
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
