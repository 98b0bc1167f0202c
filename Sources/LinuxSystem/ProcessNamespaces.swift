import CLinux
import Glibc

/// The namespaces of this process, to compare with those of others, as far as visible
/// without privilege (namespaces(7)).
///
/// Only a tracer of a process can read which namespaces the process is in (`/proc/PID/ns`, ptrace(2)). Everybody can
/// read the depth of its PID namespace and the user ID map of its user namespace.
package struct ProcessNamespaces: Sendable {
  /// The number of PID namespaces in which this process has an ID, counted from the namespace of `/proc`.
  private let depth: Int
  /// The user ID map of this process's user namespace.
  private let users: [UInt8]

  /// The errors for a file of a process that has ended or that this process may not see, as with `hidepid=` (proc(5)).
  private static let hidden = [ENOENT, ESRCH, EACCES, EPERM]

  /// Reads the namespaces of this process.
  package init() throws(SystemError) {
    guard let depth = try Self.depth(in: "/proc/self/status"), let users = try Self.bytes(of: "/proc/self/uid_map")
    else {
      throw SystemError(call: "read /proc/self/status", code: EBADMSG)
    }
    self.depth = depth
    self.users = users
  }

  /// Returns whether a process is in a PID namespace below this process's, or in a user namespace
  /// with another user ID map.
  ///
  /// The caller must make sure that the process outlives the call, because one of the files is found by process ID.
  ///
  /// - Parameters:
  ///   - process: a pidfd of the process (pidfd_open(2)).
  ///   - number: the process ID.
  /// - Throws: the error of reading a file in /proc, unless the file is missing or this process may not read it.
  package func hasOthers(_ process: borrowing Descriptor, number: Int32) throws(SystemError) -> Bool {
    if let depth = try Self.depth(in: "/proc/self/fdinfo/\(process.number)"), depth > self.depth { return true }
    return try hasOtherUsers(number: number)
  }

  /// Returns whether a process is in a user namespace with another user ID map.
  ///
  /// Of the namespaces that ``hasOthers(_:number:)`` compares, a process can only leave its user namespace. The PID
  /// namespace of a process never changes (pid_namespaces(7)).
  package func hasOtherUsers(number: Int32) throws(SystemError) -> Bool {
    // In C, because this is part of each connection of an admin, and strings cost more than the system calls.
    let isEqual = unsafe users.withUnsafeBufferPointer { users in
      unsafe clinux_has_user_map(number, users.baseAddress, users.count)
    }
    guard isEqual < 0 else { return isEqual == 0 }
    let code = errno
    guard Self.hidden.contains(code) else {
      throw SystemError(call: "read /proc/\(number)/uid_map", code: code)
    }
    return false
  }

  /// Returns how many IDs `NSpid:` lists (proc_pid_status(5); for a pidfd, proc_pid_fdinfo(5)).
  private static func depth(in path: String) throws(SystemError) -> Int? {
    guard let bytes = try bytes(of: path) else { return nil }
    let name = Array("NSpid:".utf8)
    let line = bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: name) }
    return line?.dropFirst(name.count).split { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }.count
  }

  /// Returns the content of a file in /proc, or nil if there is no file or this process may not read it.
  private static func bytes(of path: String) throws(SystemError) -> [UInt8]? {
    do {
      guard case .bytes(let bytes) = try ConfigurationAccess.read(path: path, limit: 65_536) else { return nil }
      return bytes
    } catch  where hidden.contains(error.code) {
      return nil
    }
  }
}
