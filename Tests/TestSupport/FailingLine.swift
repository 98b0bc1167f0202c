import Foundation
import LinuxSystem

/// A TCP line from a loopback port to a broker, which can fail in the ways of a real one.
package final class FailingLine: Sendable {
  /// The state of the line.
  package enum State: Sendable {
    case works
    /// Each connection is reset.
    case reset
    /// Connections are accepted, and nothing is answered.
    case silent
    /// The present connections carry nothing any more, and neither end hears of that. Later ones work.
    case halfOpen
    /// Few bytes pass at a time.
    case slow
  }

  private struct Present: Sendable {
    var state = State.works
    /// Counts the changes of the state.
    var number = 0
    var attempts = 0
    var isOver = false
  }

  /// The port of the near end.
  package let port: UInt16
  private let present = Locked(Present())

  /// Opens a line to a loopback port.
  package init(to target: UInt16) throws {
    let (number, port) = try BrokerUnderTest.listener()
    self.port = port
    Thread.detachNewThread { [present] in
      let listener = Descriptor(adopting: number)
      while !present.withLock({ $0.isOver }) {
        guard Self.isReadable(listener.number) else { continue }
        let near = accept(listener.number, nil, nil)
        guard near >= 0 else { continue }
        present.withLock { $0.attempts += 1 }
        Thread.detachNewThread { Self.carry(Descriptor(adopting: near), to: target, present) }
      }
    }
  }

  deinit { present.withLock { $0.isOver = true } }

  /// The number of connections so far.
  package var attempts: Int { present.withLock { $0.attempts } }

  /// Changes the state. The present connections end, except on a half-open line.
  package func change(to state: State) {
    present.withLock {
      $0.state = state
      $0.number += 1
    }
  }

  private static func isReadable(_ descriptor: Int32) -> Bool {
    (try? TimedWait.wait(for: descriptor, until: Clock.monotonicMicroseconds + 20_000)) == .readable
  }

  private static func carry(_ near: consuming Descriptor, to target: UInt16, _ present: Locked<Present>) {
    let began = present.withLock { $0 }
    guard began.state != .reset, let far = try? BrokerUnderTest.connection(to: target) else { return reset(near) }
    var isFrozen = began.state == .silent
    while true {
      let now = present.withLock { $0 }
      if now.isOver { return }
      if now.number != began.number {
        switch now.state {
        case .halfOpen: isFrozen = true
        case .reset: return reset(near)
        // A connection that was frozen stays so until its device gives up.
        case .works, .silent, .slow: if !isFrozen || began.state == .silent { return }
        }
      }
      guard !isFrozen else {
        usleep(20_000)
        continue
      }
      guard pass(near, far, began.state == .slow), pass(far, near, began.state == .slow) else { return }
    }
  }

  /// Carries the bytes that have arrived. Returns whether the connection goes on.
  private static func pass(_ from: borrowing Descriptor, _ to: borrowing Descriptor, _ isSlow: Bool) -> Bool {
    guard (try? TimedWait.wait(for: from.number, until: Clock.monotonicMicroseconds + 1_000)) == .readable else {
      return true
    }
    var bytes = [UInt8](repeating: 0, count: isSlow ? 64 : 65_536)
    guard let count = try? from.read(into: &bytes), count > 0 else { return false }
    if isSlow { usleep(10_000) }
    return (try? to.sendAll(Array(bytes[..<count]))) != nil
  }

  private static func reset(_ connection: consuming Descriptor) {
    var option = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(
      connection.number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }
}
