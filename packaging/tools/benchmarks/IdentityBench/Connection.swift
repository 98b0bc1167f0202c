import Foundation
import LinuxSystem

/// A client with only a socket and lines, for requests that differ from each other.
final class Connection {
  let socket: Descriptor
  /// The bytes received last. `filled` is their number, and `taken` the number of processed bytes. No room before there
  /// are any, because there are thousands of connections.
  private var chunk: [UInt8] = []
  private var filled = 0
  private var taken = 0
  /// The last replies that were waited for, with their rows and line feeds.
  private(set) var received: [UInt8] = []

  init(to path: String) throws { socket = try Self.open(path) }

  /// Opens a socket on which no read waits for more than a minute: a server that never answers must not hang a benchmark.
  static func open(_ path: String) throws -> Descriptor {
    let socket = try UnixSocket.connect(to: path)
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    unsafe setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    return socket
  }

  func send(_ lines: [UInt8]) throws { try socket.sendAll(lines) }

  /// Waits for this number of replies, which are then in ``received``.
  func receive(replies count: Int = 1) throws {
    received.removeAll(keepingCapacity: true)
    var missing = count
    var isAtStart = true
    var isRow = false
    while missing > 0 {
      if taken == filled { try receiveSome() }
      if isAtStart { isRow = chunk[taken] == UInt8(ascii: "*") }
      let end = chunk[taken..<filled].firstIndex(of: UInt8(ascii: "\n"))
      let next = end.map { $0 + 1 } ?? filled
      received += chunk[taken..<next]
      taken = next
      isAtStart = end != nil
      if isAtStart, !isRow { missing -= 1 }
    }
  }

  /// Sends request lines and waits for their replies.
  func ask(_ lines: [UInt8], replies count: Int = 1) throws {
    try send(lines)
    try receive(replies: count)
  }

  /// Sends a request without its line feed.
  ///
  /// - Returns: the reply with its rows.
  @discardableResult
  func ask(_ request: String) throws -> String {
    try ask(Array("\(request)\n".utf8))
    return String(decoding: received, as: UTF8.self)
  }

  /// Returns the time to send request lines and receive their replies, in microseconds.
  func time(_ lines: [UInt8]) throws -> Double {
    let started = nanoseconds()
    try ask(lines)
    return Double(nanoseconds() - started) / 1e3
  }

  /// Checks the replies received last.
  ///
  /// - Parameter expected: the beginning of each line.
  func check(_ expected: [String]) throws {
    let lines = received.split(separator: UInt8(ascii: "\n"))
    guard lines.count == expected.count, zip(lines, expected).allSatisfy({ $0.starts(with: $1.utf8) }) else {
      let text = String(decoding: received.prefix(2_000), as: UTF8.self)
      throw BenchError("'\(text)' came where '\(expected.joined(separator: "…\n"))…' was expected")
    }
  }

  /// Sends many requests, 500 together. The next ones are sent before the last are answered.
  func fill(_ count: Int, _ line: (Int) -> String) throws {
    var underWay = 0
    for first in stride(from: 0, to: count + 500, by: 500) {
      let numbers = min(first, count)..<min(first + 500, count)
      try send(Array(numbers.map(line).joined().utf8))
      try receive(replies: underWay)
      try check(Array(repeating: "OK", count: underWay))
      underWay = numbers.count
    }
  }

  private func receiveSome() throws {
    if chunk.isEmpty { chunk = [UInt8](repeating: 0, count: 4_096) }
    guard let count = try socket.read(into: &chunk) else { throw BenchError("no answer within 60 s") }
    guard count > 0 else { throw BenchError("the daemon closed the connection") }
    filled = count
    taken = 0
  }
}
