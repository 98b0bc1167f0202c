import Foundation

/// Ends the daemons and brokers, and removes their folder, however this program ends: by Ctrl-C, a trap or SIGKILL.
///
/// The guardian is a shell that waits for the end of its input. The kernel closes the input when this process ends, and
/// the shell goes on in its own process group.
final class Guardian {
  /// The folder for all files of a benchmark.
  let folder: URL
  private var folders = 0
  private let shell = Process()
  private let input = Pipe()

  /// All processes with the folder in their arguments are killed. The script waits until they are gone, because they
  /// might still write into the folder. A zombie has no arguments, and those of grep(1) are without the folder.
  private static let script = """
    trap '' HUP INT TERM
    cat >/dev/null
    while files=$(printf '%s/' "$1" | grep -lsF -f - /proc/[0-9]*/cmdline); do
      for file in $files; do file=${file%/cmdline}; kill -KILL "${file#/proc/}"; done
      sleep 0.01
    done
    rm -rf -- "$1"
    """

  /// Creates the folder and starts the shell. Other users can reach the sockets through the folder, but cannot list it.
  init() throws {
    let name = "bench-\(UUID().uuidString.prefix(8))"
    folder = FileManager.default.temporaryDirectory.appending(path: name).standardizedFileURL
    shell.executableURL = URL(filePath: "/bin/sh")
    shell.arguments = ["-c", Self.script, "sh", folder.path]
    shell.standardInput = input
    shell.standardOutput = FileHandle.nullDevice
    shell.standardError = FileHandle.nullDevice
    // No server may inherit this end of the pipe: the shell would then never see the end of its input.
    guard fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0 else {
      throw BenchError.system("fcntl")
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

  /// Ends all daemons, removes the folder, and waits for both.
  func end() {
    // Closing fails only if the pipe is closed already.
    try? input.fileHandleForWriting.close()
    shell.waitUntilExit()
  }
}
