import Foundation
import TestSupport
import Testing

/// A command on its own terminal, which script(1) creates.
final class ClientTerminal {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var shown = ""
  /// The output after the text that was last waited for.
  private var unseen = ""

  /// Runs the client, then shows its exit status and the settings of the terminal.
  convenience init(_ socket: String, _ command: String) throws {
    try self.init(socket, script: "trap : INT QUIT; (echo pid $BASHPID; exec \(command)); echo status $?; stty -a")
  }

  init(_ socket: String, script: String) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    // A command that hangs fails the test.
    process.arguments = ["timeout", "60", "script", "--quiet", "--command", script, "/dev/null"]
    process.environment = ProcessInfo.processInfo.environment.merging([
      "IDENTITYD_SOCKET": socket, "SHELL": "/bin/bash", "NO_COLOR": "1",
    ]) { $1 }
    process.standardInput = input
    process.standardOutput = output
    try process.runUnmasked()
  }

  deinit { if process.isRunning { process.terminate() } }

  /// Waits until the terminal shows `prompt`, then types `text`.
  func type(_ text: String, after prompt: String) throws {
    while true {
      if let place = unseen.range(of: prompt) {
        unseen = String(unseen[place.upperBound...])
        break
      }
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failure("'\(prompt)' did not come: \(shown)") }
      shown += String(decoding: data, as: UTF8.self)
      unseen += String(decoding: data, as: UTF8.self)
    }
    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
  }

  /// Sends a signal to the client.
  func kill(_ signal: Int32) throws {
    let number = try #require(shown.firstMatch(of: /pid (\d+)/).flatMap { Int32($0.1) })
    Glibc.kill(number, signal)
  }

  /// Waits for the command to end.
  ///
  /// - Returns: all text that the terminal showed.
  func end() throws -> String {
    shown += String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return shown
  }
}
