import Foundation
import Glibc
import TestSupport

/// A connection of a separate process, as any user, that is held open over many requests.
final class PeerConnection: LineAsking {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var received = ReceivedLines()

  init(_ user: Int, group: Int? = nil, of daemon: DaemonUnderTest) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(user)", "--regid=\(group ?? user)", "--clear-groups", "socat", "-t", "20", "-",
      "UNIX-CONNECT:\(daemon.socket)",
    ]
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    // Closes the child's ends of the pipes in this process, so that the end of the stream is seen.
    try output.fileHandleForWriting.close()
    try input.fileHandleForReading.close()
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.terminate()
    process.waitUntilExit()
  }

  func send(_ requests: [String]) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(requests.map { "\($0)\n" }.joined().utf8))
  }

  /// Returns the next line without its line feed. Nil at the end of the stream.
  func line() throws -> String? {
    try received.next {
      // A daemon that never answers must fail the test, not hang it.
      var wanted = pollfd(fd: output.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&wanted, 1, Int32(patience * 1_000)) > 0 else {
        throw Failure("no answer within \(patience) s")
      }
      return output.fileHandleForReading.availableData
    }
  }

  /// Returns the lines of the next answer. Nil if the connection ends before the answer is complete.
  func answer() throws -> [String]? {
    var lines: [String] = []
    while let line = try line() {
      lines.append(line)
      if !line.hasPrefix("*") { return lines }
    }
    return nil
  }

  /// Sends no more requests. The remaining answers still arrive.
  func endWriting() throws { try input.fileHandleForWriting.close() }

  /// Sends one request and returns the lines of its answer.
  func ask(_ request: String) throws -> [String] {
    try send([request])
    guard let answer = try answer() else { throw Failure("the connection ended after '\(request)'") }
    return answer
  }
}
