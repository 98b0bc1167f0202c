import Foundation
import TestSupport

/// A bash on a terminal that runs the commands of a document one after the other.
///
/// The shell runs in a sandbox of bubblewrap(1). All files are read-only except in a fresh `/tmp`, there is no network,
/// and no process outlives the sandbox. Inside, the user is always user 1000, on the same machine, with Debian 12.
final class DocumentShell {
  /// The output while a command runs, including that of background processes.
  struct Output {
    /// The exit status of the command.
    var status = 0
    /// The lines in the order of their arrival.
    var lines: [String] = []
  }

  /// A checkout with its release build, in which the shell starts.
  private static let checkout = "/tmp/checkout"
  /// The files that define the user and the machine.
  private static let files = [
    "/etc/passwd": "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp/tour:/bin/bash\n",
    "/etc/group": "root:x:0:\nuser:x:1000:\n",
    "/etc/machine-id": "5c8b1f0e6a0d4a51b1d3a7e2f94c6b08\n",
    "/usr/lib/os-release": "ID=debian\nVERSION_ID=\"12\"\n",
  ]
  /// Reads commands from descriptor 9, and prints the exit status of each.
  ///
  /// Waits for a killed job: until bash notices its end, the number of the job is in use. No person types as fast.
  private static let loop = #"""
    while IFS= read -r -u 9 typed; do
      eval "$typed" </dev/null 9<&-
      printf '\036%d\n' $?
      case $typed in "kill %"*) wait ${typed#kill } 2>/dev/null ;; esac
    done
    """#

  private let folder = FileManager.default.temporaryDirectory.appending(path: "identityd-document-\(UUID().uuidString)")
  private let process = Process()
  private let commands: FileHandle
  private let input = Pipe()
  private var terminal: URL { folder.appending(path: "terminal") }
  /// The number of lines that have been returned.
  private var taken = 0

  /// Starts the shell. Types no command yet.
  init() throws {
    let manager = FileManager.default
    try manager.createDirectory(at: folder.appending(path: "tour"), withIntermediateDirectories: true)
    let pipe = folder.appending(path: "commands")
    guard try run(["mkfifo", pipe.path]).status == 0 else { throw Failure("\(pipe.path) cannot be made") }
    // Opened for reading too, so that opening does not wait for a reader. The shell ends when this descriptor
    // is closed.
    commands = try FileHandle(forUpdating: pipe)
    try Data().write(to: terminal)
    var options = Self.sandbox + ["--bind", folder.appending(path: "tour").path, "/tmp/tour"]
    for (path, text) in Self.files.sorted(by: { $0.key < $1.key }) {
      let file = folder.appending(path: URL(filePath: path).lastPathComponent)
      try Data(text.utf8).write(to: file)
      options += ["--ro-bind", file.path, path]
    }
    let words = ["bwrap"] + options + ["bash", "--norc", "-c", Self.loop]
    let script = words.map { "'\($0.replacing("'", with: "'\\''"))'" }.joined(separator: " ") + " 9<'\(pipe.path)'"
    try Data("exec \(script)\n".utf8).write(to: folder.appending(path: "start"))
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "script", "--quiet", "--flush", "--command", "exec bash \(folder.appending(path: "start").path)", "/dev/null",
    ]
    process.environment = ProcessInfo.processInfo.environment.merging([
      "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp/tour", "LANG": "C.UTF-8", "TERM": "dumb",
      "SHELL": "/bin/bash",
    ]) { $1 }
    process.environment?["IDENTITYD_SOCKET"] = nil
    process.standardInput = input
    process.standardOutput = try FileHandle(forWritingTo: terminal)
    try process.runUnmasked()
  }

  deinit {
    try? commands.close()
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }

  /// The options of the sandbox, except those that differ each time.
  private static var sandbox: [String] {
    let programs = DaemonUnderTest.binaries.path
    let sources = Document.root
    var options = [
      "--unshare-user", "--uid", "1000", "--gid", "1000", "--unshare-pid", "--unshare-net", "--unshare-ipc",
      "--unshare-cgroup-try", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
      "--tmpfs", "/tmp",
    ]
    // These folders may themselves be below /tmp.
    for path in [programs, sources.path] { options += ["--ro-bind", path, path] }
    options += ["--dir", "\(checkout)/.build", "--symlink", programs, "\(checkout)/.build/release"]
    for name in ["packaging", "systemd", "Sources", "Tests"] {
      options += ["--symlink", sources.appending(path: name).path, "\(checkout)/\(name)"]
    }
    // The folder in which a sanitizer reports its findings.
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
      guard let path = ProcessInfo.processInfo.environment[name]?.firstMatch(of: /log_path=([^:]+)\//)?.1 else {
        continue
      }
      options += ["--bind", String(path), String(path)]
    }
    return options + ["--chdir", checkout]
  }

  /// The reason why no sandbox can be made on this machine. Nil if one can be made.
  static let missing: String? = {
    do {
      let result = try run(["bwrap"] + sandbox + ["true"])
      return result.status == 0 ? nil : "bwrap makes no sandbox here: \(result.errors)"
    } catch {
      return "\(error)"
    }
  }()

  /// Starts a daemon in the background and tells `identityctl` its socket, as if the packages were installed.
  ///
  /// The shell shows nothing of this. The log of the daemon, which is in the journal of a real system, is discarded.
  func serve() throws {
    let commands = [
      "PATH=$PWD/.build/release:$PATH",
      "identityd --state-directory=/tmp/served/state --socket=/tmp/served/socket 2>/dev/null &",
      "export IDENTITYD_SOCKET=/tmp/served/socket",
      "until identityctl --quiet ping 2>/dev/null; do sleep 0.05; done",
    ]
    for command in commands {
      let output = try self.type(command) { _ in true }
      guard output.status == 0, output.lines.isEmpty else { throw Failure("'\(command)': \(output)") }
    }
  }

  /// Types a command. Waits until the command has ended and `isEnough` accepts the output.
  ///
  /// If `isEnough` never accepts it, returns the output when the tests' patience is over.
  func type(_ command: String, until isEnough: ([String]) -> Bool) throws -> Output {
    try commands.write(contentsOf: Data("\(command)\n".utf8))
    let deadline = Date(timeIntervalSinceNow: patience)
    while true {
      let (output, count, isOver) = try shown()
      if isOver, isEnough(output.lines) || Date() >= deadline {
        taken += count
        return output
      }
      guard Date() < deadline, process.isRunning else {
        throw Failure("'\(command)' did not end: \(output.lines.joined(separator: "\n"))")
      }
      usleep(10_000)
    }
  }

  /// Returns the output that has not been returned yet, its number of lines, and whether the command has ended.
  private func shown() throws -> (output: Output, count: Int, isOver: Bool) {
    let text = try String(contentsOf: terminal, encoding: .utf8).replacing("\r\n", with: "\n")
    var output = Output()
    var isOver = false
    let lines = text.components(separatedBy: "\n").dropLast().dropFirst(taken)
    for line in lines {
      let parts = line.components(separatedBy: "\u{1e}")
      // Strips the spaces at the end: no line in a file of this project has any.
      let text = String(parts[0].reversed().drop { $0 == " " }.reversed())
      if parts.count == 1 || !text.isEmpty { output.lines.append(text) }
      guard parts.count == 2 else { continue }
      isOver = true
      output.status = Int(parts[1]) ?? -1
    }
    return (output, lines.count, isOver)
  }
}
