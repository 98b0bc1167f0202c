import Foundation
import LinuxSystem

/// A client with only a socket and lines, which adds as little as possible to the measurement.
final class Connection {
  private let socket: Descriptor
  /// The bytes received last. `filled` is their number, and `taken` the number of processed bytes.
  private var chunk = [UInt8](repeating: 0, count: 1 << 16)
  private var filled = 0
  private var taken = 0
  /// The last replies that were waited for, with their rows and line feeds.
  private(set) var received: [UInt8] = []

  /// Connects to a daemon.
  init(to path: String) throws {
    socket = try UnixSocket.connect(to: path)
    // A daemon that never answers must not hang the benchmark.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    unsafe setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  /// Sends request lines.
  func send(_ lines: [UInt8]) throws { try socket.sendAll(lines) }

  /// Waits for this number of replies, which are then in ``received``.
  func receive(replies count: Int) throws {
    received.removeAll(keepingCapacity: true)
    var missing = count
    var isAtStart = true
    var isRow = false
    while missing > 0 {
      if taken == filled { try fill() }
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
  func ask(_ lines: [UInt8], replies count: Int) throws {
    try send(lines)
    try receive(replies: count)
  }

  /// Returns the time to send request lines and receive their replies, in microseconds.
  func time(_ lines: [UInt8], replies count: Int) throws -> Double {
    let started = ContinuousClock.now
    try ask(lines, replies: count)
    return (ContinuousClock.now - started).microseconds
  }

  /// Checks the replies received last.
  ///
  /// - Parameter expected: the beginning of each line.
  func check(_ expected: [[UInt8]]) throws {
    let lines = received.split(separator: UInt8(ascii: "\n"))
    guard lines.count == expected.count else {
      throw Failure("\(lines.count) lines came where \(expected.count) were expected")
    }
    for (line, beginning) in zip(lines, expected) where !line.starts(with: beginning) {
      throw Failure(
        "'\(String(decoding: line, as: UTF8.self))' came where '\(String(decoding: beginning, as: UTF8.self))…' was expected"
      )
    }
  }

  private func fill() throws {
    guard let count = try socket.read(into: &chunk) else { throw Failure("no answer within 60 s") }
    guard count > 0 else { throw Failure("the daemon closed the connection") }
    filled = count
    taken = 0
  }
}

extension Duration {
  /// The duration in microseconds.
  var microseconds: Double { Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12 }
}
