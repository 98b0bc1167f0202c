import CLinux
import Glibc

/// What the kernel tells of other processes.
package enum ProcessFacts {
  /// The number of the control group that a process is in, in the unified hierarchy (PIDFD_GET_INFO). The kernel gives no
  /// number twice in one boot.
  ///
  /// - Parameter process: stands for the process, so no other one can be meant.
  /// - Returns: nil before Linux 6.13, and where the process has ended.
  package static func controlGroup(of process: borrowing Descriptor) -> UInt64? {
    let descriptor = process.number
    var group: UInt64 = 0
    return unsafe clinux_process_group(descriptor, &group) == 0 ? group : nil
  }

  /// The path of this process's control group in the unified hierarchy, as `/proc/self/cgroup` has it (cgroups(7)); nil
  /// where it is in none.
  package static func ownControlGroup() throws(SystemError) -> String? {
    guard case .bytes(let bytes) = try ConfigurationAccess.read(path: "/proc/self/cgroup", limit: 65_536) else {
      return nil
    }
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("0::") }
    return line.map { String($0.dropFirst(3)) }
  }

  /// When a process was started: field 22 of `/proc/PID/stat`, in clock ticks since boot (proc(5)). Together with its
  /// number it names one process of this boot.
  ///
  /// - Returns: nil where there is no such process, or none that can be seen from here.
  package static func startTime(of processID: Int32) throws(SystemError) -> UInt64? {
    let path = "/proc/\(processID)/stat"
    // The line has 52 numbers and one short name, and comes whole in one read.
    var line = [UInt8](repeating: 0, count: 4_096)
    do throws(SystemError) {
      let file = Descriptor(adopting: try system("open \(path)") { unsafe clinux_open(path, O_RDONLY, 0) })
      let count = try file.read(into: &line) ?? 0
      guard let time = startTime(in: line[..<count]) else {
        throw SystemError(call: "read \(path)", code: EBADMSG)
      }
      return time
    } catch  where [ENOENT, ESRCH, EACCES, EPERM].contains(error.code) {
      // ESRCH: it went between the two calls. The last two: /proc is mounted with hidepid=1.
      return nil
    }
  }

  /// The name in parentheses is the process's own choice, blanks and parentheses included, so the fields are counted from
  /// the last `)`: the state, field 3, comes behind it.
  private static func startTime(in line: ArraySlice<UInt8>) -> UInt64? {
    guard let close = line.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    let fields = line[(close + 1)...].split(separator: UInt8(ascii: " "))
    guard fields.count > 19 else { return nil }
    return UInt64(String(decoding: fields[19], as: UTF8.self))
  }
}
