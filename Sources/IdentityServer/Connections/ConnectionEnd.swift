import IdentityCore
import LinuxSystem
import Systemd

// The ways in which a connection ends.
extension Server {
  /// Ends a connection whose last answer is sent.
  ///
  /// If a socket is closed with unread input, the kernel reports a reset to the client, and the answer could be lost.
  /// So unless the client has ended its writing side, this side is shut down for writing, and input is read and
  /// discarded for a moment.
  func end(_ connection: Connection) {
    guard !connection.session.isDraining else { return }
    guard !connection.session.isOver, stop == .running else { return close(connection) }
    do {
      try connection.descriptor.shutdownWriting()
      connection.session.beginDraining()
      rest(connection)
      try draining.append(connection.token)
      // Events are edge-triggered: the kernel does not report this input again.
      if connection.mayHaveInput { waitForTurn(connection) }
    } catch {
      drop(connection, "\(error)")
    }
  }

  /// Reads and discards input, up to its end or to ``Bound/drainedBytes``.
  func drain(_ connection: Connection) {
    do {
      guard let count = try connection.take(into: received, atMost: received.count) else { return }
      if count == 0 || connection.session.discard(count) > Bound.drainedBytes { return close(connection) }
      if connection.mayHaveInput { waitForTurn(connection) }
    } catch {
      drop(connection, "\(error)")
    }
  }

  /// Logs the failure of a connection, and closes it.
  func drop(_ connection: Connection, _ reason: String) {
    say(.connectionFailed(app: connection.peer.app, processID: connection.peer.processID, reason: reason))
    close(connection)
  }

  /// Closes a connection. Changes that it requested are still made.
  func close(_ connection: Connection) {
    memory?.forget(connection.token.slot)
    // The service manager's duplicate would keep the client waiting and the socket in the readiness set. After a
    // shutdown the service manager drops its duplicate. A failure means that the socket is gone already.
    if connection.isStored {
      try? connection.descriptor.shutdownBoth()
      if connection.interest != nil { try? readiness.remove(connection.descriptor.number) }
    }
    if upload.isTaken { upload.drop(of: connection.token) }
    connections.remove(connection)
    measurements.keepRequests(of: connection)
    if let process = connection.process.take() {
      lastProcess = consume process
    } else {
      processes.remove(connection.token, of: PeerProcessTable.Key(connection.peer))
    }
    if connection.session.isParked { parked -= 1 }
    endSubscription(of: connection)
    countOutput(of: connection)
    finishStop()
  }
}

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
  func append(_ token: ConnectionToken) throws {
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
