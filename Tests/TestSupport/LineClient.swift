import Foundation
import LinuxSystem

/// A minimal client: a socket and lines.
package final class Client {
  private let socket: Descriptor
  private var received = ReceivedLines()

  package convenience init(_ path: String) throws { self.init(try UnixSocket.connect(to: path)) }

  /// Connects from a socket with an abstract name, as systemd does for `LoadCredential=`.
  package convenience init(_ path: String, from name: String) throws {
    let socket = try boundSocket(SOCK_STREAM, to: "\0" + name)
    try connect(socket, to: path)
    self.init(socket)
  }

  private init(_ connected: consuming Descriptor) {
    socket = connected
    // A daemon that never answers must fail the test, not hang it.
    var limit = timeval(tv_sec: Int(patience), tv_usec: 0)
    unsafe setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  package func send(_ text: String) throws { try send(Array(text.utf8)) }

  package func send(_ bytes: [UInt8]) throws { try socket.sendAll(bytes) }

  /// Shuts down the writing side of the connection.
  package func endWriting() throws { try socket.shutdownWriting() }

  /// Returns the number of bytes up to the end of the stream, and whether they are all zero.
  package func zeros() throws -> (count: Int, areAll: Bool) {
    var (count, areAll) = (0, true)
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while let read = try socket.read(into: &chunk), read > 0 {
      count += read
      areAll = areAll && chunk[..<read].allSatisfy { $0 == 0 }
    }
    return (count, areAll)
  }

  /// Returns the next line without its line feed. Nil at the end of the stream.
  package func line() throws -> String? {
    try received.next {
      var chunk = [UInt8](repeating: 0, count: 65_536)
      guard let count = try socket.read(into: &chunk) else { throw Failure("no answer within \(patience) s") }
      return chunk[..<count]
    }
  }

  /// Whether the socket has bytes that were not received yet, or has ended.
  package var hasInput: Bool {
    var watched = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&watched, 1, 0) > 0
  }

  /// Returns the lines of the next answer.
  package func answer() throws -> [String] {
    var lines: [String] = []
    while let line = try line() {
      lines.append(line)
      if !line.hasPrefix("*") { return lines }
    }
    throw Failure("the connection ended after \(lines)")
  }

  /// Sends one request and returns the lines of its answer.
  package func ask(_ request: String) throws -> [String] {
    try send(request + "\n")
    return try answer()
  }

  /// Returns all lines up to the end of the stream.
  package func rest() throws -> [String] {
    var lines: [String] = []
    while let line = try line() { lines.append(line) }
    return lines
  }
}

/// A daemon or model that takes a request line and returns the lines of its answer.
package protocol LineAsking {
  func ask(_ request: String) throws -> [String]
}

extension Client: LineAsking {}

extension LineAsking {
  /// Sends `subscribe` and returns the lines of its answer without the epoch, which differs in each store.
  package func subscribe(_ words: String = "") throws -> [String] {
    try ask(words.isEmpty ? "subscribe" : "subscribe \(words)").map { line in
      line.hasPrefix("OK ") ? line.components(separatedBy: " epoch=")[0] : line
    }
  }
}
