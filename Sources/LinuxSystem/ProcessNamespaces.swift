import Glibc

/// Whether other processes are in the namespaces of this one, as far as that can be seen without privilege (namespaces(7)).
///
/// Which namespace a process is in can be read by its tracers alone (`/proc/PID/ns`, ptrace(2)). Everybody can read how deep
/// its PID namespace is, and which users its user namespace has.
package struct ProcessNamespaces: Sendable {
  /// How many PID namespaces this process has a number in, from that of `/proc` on.
  private let depth: Int
  /// The users that this process's namespace has.
  private let users: [UInt8]

  /// Looks at this process.
  package init() throws(SystemError) {
    guard let depth = try Self.depth(in: "/proc/self/status"), let users = try Self.bytes(of: "/proc/self/uid_map")
    else {
      throw SystemError(call: "read /proc/self/status", code: EBADMSG)
    }
    self.depth = depth
    self.users = users
  }

  /// Whether a process is in a PID namespace below this one's, or in a user namespace with other users.
  ///
  /// The caller has to make sure that the process lived until after this: one of the files is found by its number.
  ///
  /// - Parameters:
  ///   - process: stands for the process (pidfd_open(2)).
  ///   - number: its number.
  /// - Throws: where the file that tells of the descriptor cannot be read.
  package func hasOthers(_ process: borrowing Descriptor, number: Int32) throws(SystemError) -> Bool {
    if let depth = try Self.depth(in: "/proc/self/fdinfo/\(process.number)"), depth > self.depth { return true }
    // Closed to us where /proc is mounted with hidepid=.
    guard let users = try Self.bytes(of: "/proc/\(number)/uid_map") else { return false }
    return users != self.users
  }

  /// How many numbers `NSpid:` has (proc_pid_status(5); for the descriptor of a process, proc_pid_fdinfo(5)).
  private static func depth(in path: String) throws(SystemError) -> Int? {
    guard let bytes = try bytes(of: path) else { return nil }
    let name = Array("NSpid:".utf8)
    let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: name) }
    return line?.dropFirst(name.count).split { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }.count
  }

  /// A file of the kernel's, whole; nil where it is not there, or not for us.
  private static func bytes(of path: String) throws(SystemError) -> [UInt8]? {
    do {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
      return bytes
    } catch  where [ENOENT, ESRCH, EACCES, EPERM].contains(error.code) {
      return nil
    }
  }
}
