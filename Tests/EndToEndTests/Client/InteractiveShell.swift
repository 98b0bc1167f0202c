import Foundation
import TestSupport

/// An interactive shell with the completions in `packaging/completions`, on a terminal that script(1) creates.
///
/// In this shell, `identityctl` is a function that prints its arguments: the words into which the shell split a
/// completed line.
final class InteractiveShell {
  /// A shell and its configuration.
  enum Kind: String, CaseIterable {
    case bash
    case bashWithHelpers = "bash with bash-completion"
    case bashWithoutBreaks = "bash that breaks words only at white space"
    case zsh
    case fish
  }

  private static let completions = Document.root.appending(path: "packaging/completions").path

  let folder: URL
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var shown = Data()
  private var read = 0

  /// Starts the shell in a new folder, which is its home directory, and sets the path of the daemon's socket.
  init(_ kind: Kind, socket: String) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "shell-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let file = folder.appending(path: "start").path
    try Data(Self.start(kind).utf8).write(to: URL(filePath: file))
    try FileManager.default.createSymbolicLink(atPath: folder.path + "/.zshrc", withDestinationPath: "start")
    let command =
      switch kind {
      case .bash, .bashWithHelpers, .bashWithoutBreaks: "exec bash --noprofile --rcfile \(file) -i"
      case .zsh: "exec zsh -d -i"
      case .fish: "exec fish --no-config --init-command 'source \(file)' --interactive"
      }
    process.executableURL = URL(filePath: "/usr/bin/env")
    // A shell that hangs must fail the test.
    process.arguments = ["timeout", "120", "script", "--quiet", "--command", command, "/dev/null"]
    let path = "\(DaemonUnderTest.binaries.path):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
    process.environment = ProcessInfo.processInfo.environment.merging([
      "IDENTITYD_SOCKET": socket, "SHELL": "/bin/bash", "TERM": "dumb", "HOME": folder.path, "ZDOTDIR": folder.path,
      "PATH": path, "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": folder.path, "XDG_DATA_HOME": folder.path,
      "TMPDIR": folder.path,
    ]) { $1 }
    process.currentDirectoryURL = folder
    process.standardInput = input
    process.standardOutput = output
    try process.runUnmasked()
    _ = try words()
  }

  deinit {
    // An interactive shell ignores SIGTERM. At the end of its input it writes its history and exits at once.
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }

  /// Returns the start-up script of the shell. The last command of the script shows that the shell is ready.
  private static func start(_ kind: Kind) -> String {
    let show = "{ printf '<%s>' \"$@\"; echo END; }\n"
    return switch kind {
    case .bash: "source \(completions)/identityctl.bash\nidentityctl() \(show)identityctl ready\n"
    case .bashWithHelpers:
      "source /usr/share/bash-completion/bash_completion\n" + start(.bash)
    case .bashWithoutBreaks: "COMP_WORDBREAKS=$' \\t\\n'\n" + start(.bash)
    case .zsh:
      "fpath=(\(completions) $fpath)\nautoload -U compinit\ncompinit -u -D\nidentityctl() \(show)identityctl ready\n"
    case .fish:
      "source \(completions)/identityctl.fish\n"
        + "function identityctl; printf '<%s>' $argv; echo END; end\nfunction fish_prompt; echo '> '; end\nidentityctl ready\n"
    }
  }

  /// Types the beginning of a line, TAB for completion, and the end of the line.
  ///
  /// - Returns: the words into which the shell split the completed line.
  func complete(_ line: String) throws -> [String] {
    try input.fileHandleForWriting.write(contentsOf: Data("identityctl \(line)\t".utf8))
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    return try words()
  }

  /// Waits for the next words that the shell prints, and returns them.
  private func words() throws -> [String] {
    while true {
      let lines = shown.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
      let found = lines.filter { $0.hasPrefix("<") && $0.hasSuffix(">END") }
      if found.count > read {
        read += 1
        return found[read - 1].dropFirst().dropLast(4).components(separatedBy: "><")
      }
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failure("no words came: \(String(decoding: shown, as: UTF8.self))") }
      shown += data.filter { $0 != UInt8(ascii: "\r") }
    }
  }
}
