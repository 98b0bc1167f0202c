import Foundation
import Glibc
import TestSupport

/// A connection of a process of its own, as any user, that is kept over many requests.
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
    // The parent's ends of the other sides are closed, so that the end of the stream is seen.
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

  /// The next line without its end; nil at the end of the stream.
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

  /// The lines of the next answer; nil where the connection ends before it is whole.
  func answer() throws -> [String]? {
    var lines: [String] = []
    while let line = try line() {
      lines.append(line)
      if !line.hasPrefix("*") { return lines }
    }
    return nil
  }

  /// Nothing more comes from here: what is still to come is then the rest.
  func endWriting() throws { try input.fileHandleForWriting.close() }

  /// Sends one request and returns the lines of its answer.
  func ask(_ request: String) throws -> [String] {
    try send([request])
    guard let answer = try answer() else { throw Failure("the connection ended after '\(request)'") }
    return answer
  }
}
