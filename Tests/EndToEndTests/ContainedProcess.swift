import Foundation
import TestSupport

/// Where groups can be made: the unified hierarchy, as libsystemd finds it.
let controlGroups = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].first {
  FileManager.default.fileExists(atPath: "\($0)/cgroup.controllers")
}

let canMakeControlGroups: Bool = {
  guard isRoot, let controlGroups else { return false }
  let folder = "\(controlGroups)/\(controlGroupName())"
  return unsafe mkdir(folder, 0o755) == 0 && rmdir(folder) == 0
}()

/// A control group of a test, as a runtime or a service manager would name it, in a slice of its own.
final class ControlGroup {
  /// Its folder.
  let path: String
  private let slice: String

  /// Makes the group. The name may have several parts.
  init(_ name: String) throws {
    guard let controlGroups else { throw Failure("there is no unified hierarchy") }
    slice = "\(controlGroups)/\(controlGroupName()).slice"
    path = "\(slice)/\(name)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    var folder = path
    while folder.count >= slice.count {
      // The last process may be on its way out.
      for _ in 0..<100 where unsafe rmdir(folder) != 0 && errno == EBUSY { usleep(10_000) }
      folder = URL(filePath: folder).deletingLastPathComponent().path
    }
  }
}

/// A process of a user in a control group, that does nothing until it is let go.
final class SleepingProcess {
  private let process = Process()

  /// Starts it, and waits until it is there.
  init(in group: ControlGroup, as user: Int) throws {
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = [
      "-c", #"echo $$ >"$0/cgroup.procs" && exec setpriv --reuid="$1" --regid="$1" --clear-groups sleep infinity"#,
      group.path, "\(user)",
    ]
    try process.runUnmasked()
    let deadline = Date(timeIntervalSinceNow: patience)
    while Date() < deadline {
      let status = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
      if status?.contains("Name:\tsleep") == true { return }
      usleep(1_000)
    }
    throw Failure("the process did not start")
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }
}

/// Namespaces of a process, as a container runtime gives it all of them (namespaces(7)).
enum Namespaces {
  /// Those of the test.
  static let own: [String] = []
  /// A PID namespace alone, as `PrivatePIDs=` and bubblewrap make one.
  static let process = ["--pid", "--fork", "--kill-child"]
  /// All that a container has when its users are those of the host.
  static let container = process + ["--mount", "--net", "--ipc", "--uts", "--cgroup"]
  /// A user namespace in which the process is root, and is the same user as before outside.
  static let user = ["--user", "--map-root-user"]
}

extension DaemonUnderTest {
  /// What a process is answered that connects from a control group, from namespaces, and as a user.
  ///
  /// - Parameters:
  ///   - group: nil for that of the test.
  ///   - user: the user that it becomes before it enters a user namespace.
  /// - Returns: a line each.
  func ask(
    _ requests: [String], in group: ControlGroup?, _ namespaces: [String] = Namespaces.container, as user: Int
  ) throws -> [String] {
    let lines = try lines(after: requests, in: group, namespaces, as: user)
    guard lines.count(where: { !$0.hasPrefix("*") }) == requests.count else { throw Failure("\(lines)") }
    return lines
  }

  /// What a process is told that connects and asks nothing. One that is refused may not be able to write any more, so it does
  /// not try.
  func greeting(in group: ControlGroup, as user: Int) throws -> [String] {
    try lines(after: [], in: group, Namespaces.container, as: user)
  }

  private func lines(
    after requests: [String], in group: ControlGroup?, _ namespaces: [String], as user: Int
  ) throws -> [String] {
    let enters = group == nil ? "" : #"echo $$ >"$0/cgroup.procs" && "#
    var command = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--bounding-set=-all"]
    // Root may make any namespace; a user namespace is made by the user.
    let unshares = namespaces.isEmpty ? [] : ["unshare"] + namespaces + ["--"]
    let isUsers = namespaces.contains("--user")
    command = isUsers ? command + unshares : unshares + command
    let result = try run(
      ["sh", "-c", #"\#(enters)exec "$@""#, group?.path ?? "sh"] + command
        + ["socat", "-t", "20", "-", "UNIX-CONNECT:\(socket)"],
      input: requests.map { "\($0)\n" }.joined())
    guard result.status == 0 else { throw Failure("\(result)") }
    return result.output.split(separator: "\n").map(String.init)
  }
}
