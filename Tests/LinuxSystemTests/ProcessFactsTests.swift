import Foundation
import LinuxSystem
import TestSupport
import Testing

struct ProcessFactsTests {
  /// Returns the ticks since boot, from another source of the kernel: /proc/uptime, in hundredths of
  /// a second (proc(5)).
  private func ticksSinceBoot() throws -> UInt64 {
    let text = try String(contentsOfFile: "/proc/uptime", encoding: .utf8)
    let seconds = try #require(Double(text.split(separator: " ")[0]))
    return UInt64(seconds * Double(sysconf(Int32(_SC_CLK_TCK))))
  }

  /// Starts `sleep` under a file name, which becomes the name of the process.
  private func sleeper(_ name: String, in temporary: TemporaryFolder) throws -> Process {
    let file = temporary[name]
    if !FileManager.default.fileExists(atPath: file) {
      try FileManager.default.copyItem(atPath: "/bin/sleep", toPath: file)
    }
    let process = Process()
    process.executableURL = URL(filePath: file)
    process.arguments = ["60"]
    try process.run()
    return process
  }

  /// Kills a process. SIGTERM might be blocked, because a child inherits the signal mask of the thread that started it.
  private func end(_ process: Process) {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  @Test(arguments: ["plain", "a b", "x) S 1 2 3", ") ) )", "(((", "((a) (b))", "1 2 3 4 5 6 7 8"])
  func `row 37: the start time of a process is found, whatever its name`(name: String) throws {
    let temporary = try TemporaryFolder()
    let before = try ticksSinceBoot()
    let process = try sleeper(name, in: temporary)
    let after = try ticksSinceBoot()
    let number = process.processIdentifier
    defer { end(process) }
    // The kernel lets the parent continue just before it gives the process its name.
    #expect(
      try eventually { try String(contentsOfFile: "/proc/\(number)/comm", encoding: .utf8) == "\(name.prefix(15))\n" })
    let time = try #require(try ProcessFacts.startTime(of: number))
    // Both times are truncated to a hundredth of a second.
    #expect(time + 1 >= before && time <= after + 1, "\(before) \(time) \(after)")
    #expect(try ProcessFacts.startTime(of: number) == time)
  }

  @Test func `a process that has exited has no start time`() throws {
    let temporary = try TemporaryFolder()
    let process = try sleeper("sleeper", in: temporary)
    let number = process.processIdentifier
    #expect(try ProcessFacts.startTime(of: number) != nil)
    end(process)
    #expect(try ProcessFacts.startTime(of: number) == nil)
  }

  /// Whether the kernel is Linux 6.13 or later.
  private static let tellsGroups: Bool = {
    var names = utsname()
    guard unsafe uname(&names) == 0 else { return false }
    let release = unsafe withUnsafeBytes(of: names.release) { unsafe String(decoding: $0, as: UTF8.self) }
    let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 13)
  }()

  @Test(.enabled(if: tellsGroups, "kernels before 6.13 do not tell it"))
  func `the control group of a process is known until it exits`() throws {
    let temporary = try TemporaryFolder()
    let process = try sleeper("sleeper", in: temporary)
    let descriptor = try PeerCredentials.processDescriptor(number: process.processIdentifier)
    let text = try String(contentsOfFile: "/proc/\(process.processIdentifier)/cgroup", encoding: .utf8)
    let path = try #require(text.split(separator: "\n").first { $0.hasPrefix("0::") }).dropFirst(3)
    let group = ProcessFacts.controlGroup(of: descriptor)
    let folders = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].compactMap { mount -> UInt64? in
      var status = stat()
      return unsafe lstat("\(mount)\(path)", &status) == 0 ? UInt64(status.st_ino) : nil
    }
    #expect(group.map { folders.contains($0) } == true)
    end(process)
    let last = ProcessFacts.controlGroup(of: descriptor)
    #expect(last == nil)
  }

  @Test func `a descriptor that is no process has no control group`() throws {
    let pipe = try Pair.pipe()
    let group = ProcessFacts.controlGroup(of: pipe.reader)
    #expect(group == nil)
  }

  // pid_max is 2^22 at most (proc(5)).
  @Test(arguments: [0, -1, .min, .max, 1 << 22 + 1])
  func `an impossible process ID has no start time`(number: Int32) throws {
    #expect(try ProcessFacts.startTime(of: number) == nil)
  }

  @Test func `this process has a start time in the past`() throws {
    let time = try #require(try ProcessFacts.startTime(of: ProcessGuard.processID))
    #expect(time > 0)
    #expect(time <= (try ticksSinceBoot()) + 1)
  }
}
