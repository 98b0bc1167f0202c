import IdentityCore
import LinuxSystem
import Systemd

/// Connections that are closed after a time: those with their last answer, and those with an answer that is not read.
final class DrainQueue {
  /// The connections, oldest first, each with the time since which it is in the queue, in microseconds of the monotonic
  /// clock.
  private var waiting: [(token: ConnectionToken, since: UInt64)] = []
  private var timer: EventSource?
  private let loop: EventLoop
  private let close: (ConnectionToken) -> Void

  /// The time in microseconds.
  private let pause: UInt64

  /// - Parameters:
  ///   - milliseconds: the time after which a connection is closed.
  ///   - close: closes a connection, if it is not closed yet.
  init(_ loop: EventLoop, after milliseconds: Int, close: @escaping (ConnectionToken) -> Void) {
    self.loop = loop
    pause = UInt64(milliseconds) * 1_000
    self.close = close
  }

  /// Adds a connection.
  func append(_ token: ConnectionToken) throws(SystemdError) {
    waiting.append((token, Clock.monotonicMicroseconds))
    guard waiting.count == 1 else { return }
    if let timer { return timer.arm(after: pause) }
    timer = try loop.timer(after: pause) { [unowned self] in closeDue() }
  }

  /// Closes the connections whose time is over.
  private func closeDue() {
    let now = Clock.monotonicMicroseconds
    let due = waiting.prefix { now - $0.since >= pause }
    waiting.removeFirst(due.count)
    for (token, _) in due { close(token) }
    if let next = waiting.first { timer?.arm(after: max(pause - (now - next.since), 1_000)) }
  }
}
