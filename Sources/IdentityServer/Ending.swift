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
      draining.append((connection.token, Clock.monotonicMicroseconds))
      try armDrainTimer()
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

  private func armDrainTimer() throws {
    let pause = UInt64(Bound.drainMilliseconds) * 1_000
    if draining.count > 1 { return }
    if let drainTimer { return drainTimer.arm(after: pause) }
    drainTimer = try loop.timer(after: pause) { [unowned self] in closeDrained() }
  }

  /// Closes the connections whose time for discarding input is over.
  private func closeDrained() {
    let pause = UInt64(Bound.drainMilliseconds) * 1_000
    let now = Clock.monotonicMicroseconds
    let due = draining.prefix { now - $0.since >= pause }
    draining.removeFirst(due.count)
    for (token, _) in due { if let connection = connections[token] { close(connection) } }
    if let next = draining.first { drainTimer?.arm(after: max(pause - (now - next.since), 1_000)) }
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
    if hasUpload, upload?.token == connection.token { upload = nil }
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
