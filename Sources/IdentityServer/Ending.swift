import IdentityCore
import LinuxSystem
import Systemd

// The end of a connection.
extension Server {
  /// Ends a connection whose last answer is sent.
  ///
  /// Closing over data that the client still sends would make its kernel report a reset, and the answer could be lost to
  /// it. So a client that has not ended its writing is told that nothing more comes, and is listened to for a moment.
  func end(_ connection: Connection) {
    guard !connection.isDraining else { return }
    guard !connection.hasEnded, !connection.isHungUp, !isStopping else { return close(connection) }
    do {
      try connection.descriptor.shutdownWriting()
      connection.isDraining = true
      rest(connection)
      draining.append((connection.token, Clock.monotonicMicroseconds))
      try armDrainTimer()
      // The kernel does not tell again of what it told already.
      if connection.mayHaveInput { waitForTurn(connection) }
    } catch {
      drop(connection, "\(error)")
    }
  }

  /// Throws away what still comes, up to the client's end or a bound.
  func drain(_ connection: Connection) {
    do {
      guard let count = try connection.take(into: received, atMost: received.count) else { return }
      connection.drained += count
      if count == 0 || connection.drained > Bound.drainedBytes { return close(connection) }
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

  /// Closes those that had their moment.
  private func closeDrained() {
    let pause = UInt64(Bound.drainMilliseconds) * 1_000
    let now = Clock.monotonicMicroseconds
    let due = draining.prefix { now - $0.since >= pause }
    draining.removeFirst(due.count)
    for (token, _) in due { if let connection = connections[token] { close(connection) } }
    if let next = draining.first { drainTimer?.arm(after: max(pause - (now - next.since), 1_000)) }
  }

  /// Ends a connection that failed.
  func drop(_ connection: Connection, _ reason: String) {
    say(.connectionFailed(app: connection.peer.app, processID: connection.peer.processID, reason: reason))
    close(connection)
  }

  /// Closes a connection. Changes of it that are under way are still made.
  func close(_ connection: Connection) {
    memory?.forget(connection.token.slot)
    // The service manager's copy would keep the client waiting, and the kernel telling of it: the manager lets go of what
    // has hung up. A socket that is gone already has no need of it.
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
    if connection.isParked { parked -= 1 }
    endSubscription(of: connection)
    countOutput(of: connection)
    finishStop()
  }
}
