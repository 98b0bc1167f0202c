import Foundation

/// A connection of another user, held open by a program that copies lines.
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

  /// Sends one request and returns what comes of it at once.
  package func ask(_ request: String) throws -> String {
    try send(request)
    return String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
  }

  /// Says goodbye, and returns everything that came up to the end.
  package func quit() throws -> String {
    try send("quit")
    try input.fileHandleForWriting.close()
    return try rest()
  }

  /// Everything up to the end of the connection, which has to come by itself.
  package func rest() throws -> String {
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    return text
  }

  /// Ends the connection.
  package func end() throws {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
  }
}
