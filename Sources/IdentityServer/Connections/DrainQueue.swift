import IdentityCore
import LinuxSystem
import Systemd

/// Connections that are closed a moment after their last answer; see ``Bound/drainMilliseconds``.
final class DrainQueue {
  /// The connections, oldest first, each with the time of its last answer in microseconds of the monotonic clock.
  private var waiting: [(token: ConnectionToken, since: UInt64)] = []
  private var timer: EventSource?
  private let loop: EventLoop
  private let close: (ConnectionToken) -> Void

  private static let pause = UInt64(Bound.drainMilliseconds) * 1_000

  /// - Parameter close: closes a connection, if it is not closed yet.
  init(_ loop: EventLoop, close: @escaping (ConnectionToken) -> Void) {
    self.loop = loop
    self.close = close
  }

  /// Adds a connection whose last answer is sent.
  func append(_ token: ConnectionToken) throws(SystemdError) {
    waiting.append((token, Clock.monotonicMicroseconds))
    guard waiting.count == 1 else { return }
    if let timer { return timer.arm(after: Self.pause) }
    timer = try loop.timer(after: Self.pause) { [unowned self] in closeDue() }
  }

  /// Closes the connections whose time is over.
  private func closeDue() {
    let now = Clock.monotonicMicroseconds
    let due = waiting.prefix { now - $0.since >= Self.pause }
    waiting.removeFirst(due.count)
    for (token, _) in due { close(token) }
    if let next = waiting.first { timer?.arm(after: max(Self.pause - (now - next.since), 1_000)) }
  }
}
