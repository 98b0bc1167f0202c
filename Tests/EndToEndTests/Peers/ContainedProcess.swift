import Foundation
import TestSupport

/// The mount point of the unified cgroup hierarchy, at a path where libsystemd looks for it. Nil if there is none.
let controlGroups = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].first {
  FileManager.default.fileExists(atPath: "\($0)/cgroup.controllers")
}

let canMakeControlGroups: Bool = {
  guard isRoot, let controlGroups else { return false }
  let folder = "\(controlGroups)/\(controlGroupName())"
  return unsafe mkdir(folder, 0o755) == 0 && rmdir(folder) == 0
}()

/// A cgroup for a test, in a separate slice. The name is one that a container runtime or a service manager
/// would choose.
final class ControlGroup {
  /// The folder of the cgroup.
  let path: String
  private let slice: String

  /// Creates the cgroup. The name may be a path with several components.
  init(_ name: String) throws {
    guard let controlGroups else { throw Failure("there is no unified hierarchy") }
    slice = "\(controlGroups)/\(controlGroupName()).slice"
    path = "\(slice)/\(name)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    var folder = path
    while folder.count >= slice.count {
      // The last process of the cgroup may still be exiting.
      for _ in 0..<100 where unsafe rmdir(folder) != 0 && errno == EBUSY { usleep(10_000) }
      folder = URL(filePath: folder).deletingLastPathComponent().path
    }
  }
}

/// A process of a user in a cgroup. The process sleeps until this object is released.
final class SleepingProcess {
  private let process = Process()

  /// Starts the process and waits until it has entered the cgroup and executes `sleep`.
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

/// Options of unshare(1) for the namespaces of a process (namespaces(7)).
enum Namespaces {
  /// No option: the process stays in the namespaces of the test.
  static let own: [String] = []
  /// A PID namespace alone, as `PrivatePIDs=` and bubblewrap create it.
  static let process = ["--pid", "--fork", "--kill-child"]
  /// All namespaces of a container, except a user namespace: the users are those of the host.
  static let container = process + ["--mount", "--net", "--ipc", "--uts", "--cgroup"]
  /// A user namespace in which the process is root. Outside, the process keeps its user.
  static let user = ["--user", "--map-root-user"]
}

extension DaemonUnderTest {
  /// Sends requests from a process in a cgroup and in namespaces, as a user.
  ///
  /// - Parameters:
  ///   - group: the cgroup. Nil for the cgroup of the test.
  ///   - user: the user that the process becomes before it enters a user namespace.
  /// - Returns: the lines of all answers.
  func ask(
    _ requests: [String], in group: ControlGroup?, _ namespaces: [String] = Namespaces.container, as user: Int
  ) throws -> [String] {
    let lines = try contained(requests, at: socket, in: group, namespaces, as: user)
    guard lines.count(where: { !$0.hasPrefix("*") }) == requests.count else { throw Failure("\(lines)") }
    return lines
  }

  /// Connects from a process in a container and returns the lines that the daemon sends unasked. The process sends no
  /// request, because a refused peer may be unable to write.
  func greeting(in group: ControlGroup, _ namespaces: [String] = Namespaces.container, as user: Int) throws -> [String]
  {
    try contained([], at: socket, in: group, namespaces, as: user)
  }
}

/// Sends requests to a socket from a process in a cgroup and in namespaces, as a user, and returns the received lines.
///
/// A refused process may be unable to write, so its requests may be missing.
func contained(
  _ requests: [String], at socket: String, in group: ControlGroup?, _ namespaces: [String], as user: Int
) throws -> [String] {
  let enters = group == nil ? "" : #"echo $$ >"$0/cgroup.procs" && "#
  var command = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--bounding-set=-all"]
  // Root may create any namespace, and does so before it becomes the user. A user namespace is created by the user.
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
