import Foundation

/// Ends the daemons and removes their folder whatever ends this program: Ctrl-C, a trap, or SIGKILL.
///
/// It is a shell that waits for the end of its input. The kernel closes that together with this process, and the shell,
/// in a process group of its own, goes on.
final class Guardian {
  /// Everything that a benchmark writes is in here.
  let folder: URL
  private var folders = 0
  /// How the servers were started, each name once.
  private(set) var started: [String] = []
  private var names: Set<String> = []
  private let shell = Process()
  private let input = Pipe()

  /// A number may be another process's by now: only one that was started with the folder in its arguments is killed.
  /// Until it is gone it may write into the folder; a zombie has no arguments any more.
  private static let script = """
    trap '' HUP INT TERM
    processes=
    while read -r process; do processes="$processes $process"; done
    for process in $processes; do
      while grep -qsF -e "$1/" "/proc/$process/cmdline"; do kill -KILL "$process"; sleep 0.01; done
    done
    rm -rf -- "$1"
    """

  /// Makes the folder and starts the shell. Other users get through it to the sockets, but see nothing.
  init() throws {
    let name = "identitybench-\(UUID().uuidString.prefix(8))"
    folder = FileManager.default.temporaryDirectory.appending(path: name).standardizedFileURL
    shell.executableURL = URL(filePath: "/bin/sh")
    shell.arguments = ["-c", Self.script, "sh", folder.path]
    shell.standardInput = input
    shell.standardOutput = FileHandle.nullDevice
    shell.standardError = FileHandle.nullDevice
    // No server may have the shell's input too: the shell would wait for its end.
    guard fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else {
      throw Failure("fcntl: \(errno)")
    }
    try shell.run()
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o711])
  }

  /// A number that it has not given out yet, for a folder.
  func next() -> Int {
    folders += 1
    return folders
  }

  /// Keeps how a server is started, without what differs from run to run.
  func note(_ server: MeasuredServer) {
    guard names.insert(server.name).inserted else { return }
    let words = server.arguments.map { word in
      let word = word.replacing(server.folder.path, with: "DIR")
      return word.isEmpty || word.contains(" ") ? "'\(word)'" : word
    }
    let configuration = server.configuration.replacing(server.folder.path, with: "DIR").split(separator: "\n")
    started.append(
      "\(server.name): \(words.joined(separator: " "))"
        + (configuration.isEmpty ? "" : " (\(configuration.joined(separator: "; ")))"))
  }

  /// Has one more process ended at the end.
  func watch(_ process: Int32) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(process)\n".utf8)) }

  /// Ends all daemons, removes the folder, and waits for that.
  func end() {
    // It fails only where it is closed already.
    try? input.fileHandleForWriting.close()
    shell.waitUntilExit()
  }
}
