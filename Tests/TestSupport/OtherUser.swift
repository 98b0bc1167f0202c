import Foundation

/// A connection of another user, held open by socat(1).
package final class OtherUser {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  package init(_ user: Int, of daemon: DaemonUnderTest) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "socat", "-t", "20", "-",
      "UNIX-CONNECT:\(daemon.socket)",
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.runUnmasked()
  }

  package func send(_ request: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data("\(request)\n".utf8))
  }

  /// Sends one request and returns the first bytes that arrive.
  package func ask(_ request: String) throws -> String {
    try send(request)
    return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
  }

  /// Sends `quit` and returns all text up to the end of the connection.
  package func quit() throws -> String {
    try send("quit")
    try input.fileHandleForWriting.close()
    return try rest()
  }

  /// Returns all text up to the end of the connection. The daemon must close it.
  package func rest() throws -> String {
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return text
  }

  /// Closes the connection.
  package func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
