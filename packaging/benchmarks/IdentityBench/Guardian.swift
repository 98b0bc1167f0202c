import Foundation

/// Ends the daemons and removes their folder however this program ends: by Ctrl-C, a trap or SIGKILL.
///
/// The guardian is a shell that waits for the end of its input. The kernel closes the input when this process ends, and
/// the shell goes on in its own process group.
final class Guardian {
  /// The folder for all files of a benchmark.
  let folder: URL
  private var folders = 0
  /// The commands that started the servers, one for each name.
  private(set) var started: [String] = []
  private var names: Set<String> = []
  private let shell = Process()
  private let input = Pipe()

  /// A process ID may have been reused, so only processes with the folder in their arguments are killed. The script
  /// waits until such a process is gone, because it might still write into the folder. A zombie has no arguments.
  private static let script = """
    trap '' HUP INT TERM
    processes=
    while read -r process; do processes="$processes $process"; done
    for process in $processes; do
      while grep -qsF -e "$1/" "/proc/$process/cmdline"; do kill -KILL "$process"; sleep 0.01; done
    done
    rm -rf -- "$1"
    """

  /// Creates the folder and starts the shell. Other users can reach the sockets through the folder, but cannot list it.
  init() throws {
    let name = "identitybench-\(UUID().uuidString.prefix(8))"
    folder = FileManager.default.temporaryDirectory.appending(path: name).standardizedFileURL
    shell.executableURL = URL(filePath: "/bin/sh")
    shell.arguments = ["-c", Self.script, "sh", folder.path]
    shell.standardInput = input
    shell.standardOutput = FileHandle.nullDevice
    shell.standardError = FileHandle.nullDevice
    // No server may inherit this end of the pipe: the shell would then never see the end of its input.
    guard fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else {
      throw Failure("fcntl: \(errno)")
    }
    try shell.run()
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o711])
  }

  /// Returns a number for a folder, a new one each time.
  func next() -> Int {
    folders += 1
    return folders
  }

  /// Records the command that starts a server, without the parts that differ between runs.
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

  /// Adds a process that the shell kills at the end.
  func watch(_ process: Int32) throws { try input.fileHandleForWriting.write(contentsOf: Data("\(process)\n".utf8)) }

  /// Ends all daemons, removes the folder, and waits for both.
  func end() {
    // Closing fails only if the pipe is closed already.
    try? input.fileHandleForWriting.close()
    shell.waitUntilExit()
  }
}
