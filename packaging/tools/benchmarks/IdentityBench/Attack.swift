import Foundation
import LinuxSystem

/// A user that takes as many resources of a daemon as it can get, until it is killed.
struct Attack {
  /// The method of an attack.
  enum Kind: String, CaseIterable {
    /// Endless requests on many connections.
    case reads
    /// The longest possible answers.
    case uuids
    /// Lists of as many items as an app may have.
    case lists
    /// Searches among as many items as a user may have, each with as many attributes as an item may have.
    case searches
    /// As many changes at a time as the daemon accepts.
    case changes
    /// Connections that subscribe or send requests and never read, and one connection that causes events.
    case deaf
    /// Connections that send one request and close.
    case connects
    /// As many connections as the daemon accepts, opened at once, kept for a moment, and closed at once.
    case storms
    /// Endless requests of many users that are subordinate to one.
    case subordinates
    /// As many proofs as a user may have: 20 a second.
    case proofs

    /// The number of users that take part.
    var users: UInt32 { self == .subordinates ? 300 : 1 }

    /// The largest ratio of the 99th percentiles of another user's reads, beside the attack and alone.
    var most: Double { self == .proofs ? 1.15 : 2 }
  }

  /// The number of connections that the daemon accepts from one user, except a few.
  private static let connections = 1_000
  private static let items = 1_000
  /// The number of items that a user may have, and of attributes that an item may have.
  private static let most = (items: 4_000, attributes: 64)

  private let kind: Kind
  private let socket: String

  init(_ kind: Kind, socket: String) {
    self.kind = kind
    self.socket = socket
  }

  /// Runs the attack, which never ends by itself.
  func run() throws {
    switch kind {
    case .reads: try flood((0..<Self.connections).map { _ in requests("get device", 500) })
    case .uuids: try flood((0..<Self.connections).map { _ in requests("get uuid count=10000", 20) })
    case .lists:
      try Connection(to: socket).fill(Self.items) { "item put service=s account=a\($0) label=l data=c2VjcmV0\n" }
      try flood((0..<Self.connections).map { _ in requests("item find service=s", 20) })
    case .searches:
      let names = (0..<Self.most.attributes).map { "attr.a\(10 + $0)=1" }
      try Connection(to: socket).fill(Self.most.items) {
        "item put service=q account=a\($0) data=c2VjcmV0 \(names.joined(separator: " "))\n"
      }
      // The last condition is not met. A search without a match is the longest one.
      let conditions = (names.dropFirst(2) + ["attr.z=1"]).joined(separator: " ")
      let dearest = [
        "item find \(conditions)", "item find attr.z=1", "item delete attr.z=1", "item find service=q limit=all",
      ]
      try flood(dearest.map { requests($0, 50) })
    case .changes:
      try flood((0..<Self.connections).map { requests("item put service=s account=a\($0) data=c2VjcmV0", 128) })
    case .deaf:
      let deaf = try (1..<Self.connections).map { number in
        let connection = try Flooding(
          socket, number.isMultiple(of: 2) ? "subscribe\n" : requests("history device", 500))
        connection.isDeaf = true
        return connection
      }
      try flood(deaf + [try Flooding(socket, requests("item put service=s account=a data=c2VjcmV0", 128))])
    case .subordinates: try flood((0..<3).map { _ in requests("get device", 500) })
    case .proofs:
      let connection = try Connection(to: socket)
      // Makes the key.
      guard try connection.ask("prove https://example.org").hasPrefix("OK ") else {
        throw BenchError("the daemon gives no proof")
      }
      try sayBegun()
      while true {
        usleep(50_000)
        try connection.ask("prove https://example.org")
      }
    case .storms:
      try sayBegun()
      while true {
        // Longer than the daemon takes connections for short-lived.
        let held = try (0..<Self.connections).map { _ in try Connection(to: socket) }
        usleep(60_000)
        withExtendedLifetime(held) {}
      }
    case .connects:
      try sayBegun()
      while true { try Connection(to: socket).ask("ping") }
    }
  }

  /// Tells the parent process that the attack begins.
  private func sayBegun() throws {
    guard StandardStream.output.write("begun\n") else { throw BenchError("standard output takes nothing") }
  }

  private func requests(_ line: String, _ count: Int) -> String { String(repeating: "\(line)\n", count: count) }

  private func flood(_ texts: [String]) throws { try flood(try texts.map { try Flooding(socket, $0) }) }

  private func flood(_ connections: [Flooding]) throws {
    try sayBegun()
    var waiting = connections.map { pollfd(fd: $0.socket.number, events: $0.events, revents: 0) }
    while true {
      guard unsafe poll(&waiting, nfds_t(waiting.count), -1) >= 0 else { throw BenchError.system("poll") }
      for index in waiting.indices where waiting[index].revents != 0 {
        try connections[index].goOn(waiting[index].revents)
        waiting[index].events = connections[index].events
      }
    }
  }
}

/// A connection that always has something to send.
private final class Flooding {
  let socket: Descriptor
  private let text: [UInt8]
  private var sent = 0
  private var chunk = [UInt8](repeating: 0, count: 1 << 18)
  /// Whether the connection never reads, and sends its text only once.
  var isDeaf = false

  init(_ path: String, _ text: String) throws {
    socket = try UnixSocket.connect(to: path)
    self.text = Array(text.utf8)
    guard fcntl(socket.number, F_SETFL, O_NONBLOCK) == 0 else { throw BenchError.system("fcntl") }
  }

  /// The events of poll(2) that the connection waits for.
  var events: Int16 {
    if isDeaf { return sent < text.count ? Int16(POLLOUT) : 0 }
    return Int16(POLLIN | POLLOUT)
  }

  func goOn(_ ready: Int16) throws {
    if ready & Int16(POLLIN) != 0, !isDeaf, try socket.read(into: &chunk) == 0 {
      throw BenchError("the daemon closed it")
    }
    guard ready & Int16(POLLOUT) != 0, let count = try socket.write(text, from: sent) else { return }
    sent += count
    if sent == text.count, !isDeaf { sent = 0 }
  }
}
