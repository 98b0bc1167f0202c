import Foundation
import IdentityWire
import LinuxSystem
import TestSupport
import Testing

@testable import IdentityClient

/// An event follower, tested against a fake daemon that plays a script.
struct EventFollowerTests {
  private let path = temporaryPath("identity-client-\(UUID().uuidString.prefix(13))")

  /// Starts a fake daemon. Each connection has its expected first request, and the reply that is sent before it ends.
  private func play(_ connections: [(request: String, reply: String)]) throws -> Played {
    let listener = try UnixSocket.listen(at: path, mode: 0o700, backlog: 5)
    let played = Played(listener, at: path, connections)
    played.start()
    return played
  }

  private func steps(_ count: Int, topics: [String] = [], since: Int64? = nil) throws -> [EventFollower.Step] {
    var follower = EventFollower(of: DaemonSocket(path), topics: topics, since: since)
    let patience = Patience(until: Clock.monotonicMicroseconds + 20_000_000, needsOutput: false)
    var steps: [EventFollower.Step] = []
    for _ in 0..<count { steps.append(try follower.next(patience)) }
    return steps
  }

  private func event(_ sequence: Int64, _ words: String) throws -> EventFollower.Step {
    guard case .event(_, let content)? = ReplyLine(Array("EVENT \(sequence) \(words)".utf8)) else {
      return try #require(nil, "\(words)")
    }
    return .event(ReceivedEvent(sequence: sequence, content: content))
  }

  @Test func `a partial line is no event, and the event is requested again`() throws {
    let played = try play([
      ("subscribe", "OK 3\nEVENT 4 a b\nEVENT 5 a b c=1"), ("subscribe since=4", "OK 4\nEVENT 5 a b c=12\n"),
    ])
    #expect(
      try steps(4) == [event(4, "a b"), .lost(.closed), .found, event(5, "a b c=12")])
    #expect(played.wrong().isEmpty)
  }

  @Test func `repeated events are left out, and lagged ones are fetched silently`() throws {
    let played = try play([
      ("subscribe x since=3", "OK 3\nEVENT 4 x b\nEVENT 9 lag missed=2 from=4\nEVENT 10 x b\n"),
      ("subscribe x since=4", "OK 4\nEVENT 4 x b\nEVENT 7 x b\nEVENT 9 x b\nEVENT 10 x b\n"),
    ])
    #expect(
      try steps(4, topics: ["x"], since: 3) == [event(4, "x b"), event(7, "x b"), event(9, "x b"), event(10, "x b")])
    #expect(played.wrong().isEmpty)
  }

  @Test func `a busy daemon is retried at any time`() throws {
    let played = try play([
      ("subscribe", "ERR busy full\n"), ("subscribe", "OK 3\nEVENT 4 a b\nERR busy full\n"),
      ("subscribe since=4", "OK 4\nEVENT 5 a b\n"),
    ])
    #expect(
      try steps(6) == [
        .lost(.busy("full")), .found, event(4, "a b"), .lost(.busy("full")), .found, event(5, "a b"),
      ])
    #expect(played.wrong().isEmpty)
  }

  @Test func `missed events are reported once the daemon is back`() throws {
    let played = try play([
      ("subscribe", "OK 8\n"), ("subscribe since=8", "ERR bad-argument since\nOK 2\nEVENT 3 a b\n"),
    ])
    #expect(
      try steps(4) == [.lost(.closed), .missed(.numberedAnew(after: 8)), .found, event(3, "a b")])
    #expect(played.wrong().isEmpty)
  }

  @Test func `a missing daemon at the beginning is a failure, and so is another protocol`() throws {
    #expect(throws: DaemonConnection.Failure.self) { try steps(1) }
    let played = try play([("subscribe", "OK 3\nHELLO\n")])
    #expect(throws: DaemonConnection.Failure.malformed("HELLO")) { try steps(1) }
    #expect(played.wrong().isEmpty)
  }

  @Test func `the timeout elapses with and without a daemon`() throws {
    let played = try play([("subscribe", "OK 3\n")])
    var follower = EventFollower(of: DaemonSocket(path), topics: [], since: nil)
    let deadline = Clock.monotonicMicroseconds + 200_000
    let patience = Patience(until: deadline, needsOutput: false)
    #expect(try follower.next(patience) == .lost(.closed))
    #expect(throws: DaemonConnection.Failure.timeUp) { try follower.next(patience) }
    #expect(Clock.monotonicMicroseconds >= deadline)
    #expect(played.wrong().isEmpty)
  }
}

/// A fake daemon that plays a script. It stops listening at the end of the script.
private final class Played: @unchecked Sendable {
  // Sendable because only `unexpected` changes, and `unexpected` is read after the thread has ended.
  private let listener: Int32
  private let path: String
  private let connections: [(request: String, reply: String)]
  private var unexpected: [String] = []
  private let done = DispatchSemaphore(value: 0)

  init(_ listener: consuming Descriptor, at path: String, _ connections: [(request: String, reply: String)]) {
    self.listener = listener.release()
    self.path = path
    self.connections = connections
  }

  func start() {
    Thread.detachNewThread { [self] in
      for connection in connections { serve(connection) }
      close(listener)
      UnixSocket.remove(path, ifStill: UnixSocket.identity(of: path))
      done.signal()
    }
  }

  /// Waits for the end of the script.
  ///
  /// - Returns: the requests that differ from the script, and a text for each connection that did not come.
  func wrong() -> [String] {
    done.wait()
    return unexpected
  }

  private func serve(_ connection: (request: String, reply: String)) {
    guard (try? TimedWait.wait(for: listener, until: Clock.monotonicMicroseconds + 20_000_000)) == .readable else {
      unexpected.append("nobody came for \(connection.request)")
      return
    }
    let accepted = Descriptor(adopting: accept(listener, nil, nil))
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = (try? accepted.read(into: &bytes)) ?? 0
    let request = String(decoding: bytes[..<count], as: UTF8.self)
    if request != connection.request + "\n" { unexpected.append(request) }
    try? accepted.sendAll(Array(connection.reply.utf8))
  }
}
