import CLinux
import Glibc

/// Facts that the kernel reports about processes.
package enum ProcessFacts {
  /// Returns the ID of the cgroup of a process, in the unified hierarchy (PIDFD_GET_INFO).
  ///
  /// The kernel never reuses a cgroup ID within one boot.
  ///
  /// - Parameter process: a pidfd, so that no other process can be meant.
  /// - Returns: nil before Linux 6.13, or if the process has ended.
  package static func controlGroup(of process: borrowing Descriptor) -> UInt64? {
    let descriptor = process.number
    var group: UInt64 = 0
    return unsafe clinux_process_group(descriptor, &group) == 0 ? group : nil
  }

  /// Returns the path of a process's cgroup in the unified hierarchy, as in `/proc/PID/cgroup` (cgroups(7)).
  ///
  /// - Parameter process: The process ID; `self` for this process.
  /// - Returns: nil if the process has none, or if there is no such process.
  package static func controlGroup(ofProcess process: String) throws(SystemError) -> String? {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: "/proc/\(process)/cgroup", limit: 65_536) else {
      return nil
    }
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("0::") }
    return line.map { String($0.dropFirst(3)) }
  }

  /// Returns the start time of a process in clock ticks since boot, field 22 of `/proc/PID/stat` (proc(5)).
  ///
  /// Process ID and start time together identify one process of a boot.
  ///
  /// - Returns: nil if there is no such process, or if the process is not visible to this one.
  package static func startTime(of processID: Int32) throws(SystemError) -> UInt64? {
    let path = "/proc/\(processID)/stat"
    // The line has 51 short values and one short name, so one read returns the whole line.
    var line = [UInt8](repeating: 0, count: 4_096)
    do throws(SystemError) {
      let file = Descriptor(adopting: try system("open \(path)") { unsafe clinux_open(path, O_RDONLY, 0) })
      let count = try file.read(into: &line) ?? 0
      guard let time = startTime(in: line[..<count]) else {
        throw SystemError(call: "read \(path)", code: EBADMSG)
      }
      return time
    } catch  where [ENOENT, ESRCH, EACCES, EPERM].contains(error.code) {
      // ESRCH means that the process ended between open and read. EACCES and EPERM mean that /proc
      // is mounted with hidepid=1.
      return nil
    }
  }

  /// Returns field 22 of the line. The process chooses the name in parentheses, which may contain blanks and
  /// parentheses, so the fields are counted from the last `)`, which is followed by field 3, the state.
  private static func startTime(in line: ArraySlice<UInt8>) -> UInt64? {
    guard let close = line.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = line[(close + 1)...].split(separator: UInt8(ascii: " "))
    guard fields.count > 19 else { return nil }
    return UInt64(String(decoding: fields[19], as: UTF8.self))
  }
}
