import Attestation
import IdentityCore
import LinuxSystem
import Sessions
import Systemd

/// The ways in which connections end, and the stage of the daemon's stop, which ends all of them.
final class ConnectionCloser {
  private let connections: ConnectionTable
  private let scheduler: TurnScheduler
  private let local: LocalRequests
  private let publisher: Publisher
  private let handover: Handover
  private let processes: PeerProcesses
  private let measurements: Measurements
  private let readiness: ReadinessSet
  private let loop: EventLoop
  private let log: LogSink
  /// Connections whose remaining input is discarded after their last answer.
  private lazy var draining = DrainQueue(loop) { [unowned self] token in
    if let connection = connections[token] { close(connection) }
  }
  /// The stage of the daemon's stop. Once it is not `running`, no request is read.
  private(set) var stage = StopStage.running
  /// The number of connections that are ready for the handover to the next run.
  private var parked = 0

  init(
    _ connections: ConnectionTable, _ scheduler: TurnScheduler, _ local: LocalRequests, _ publisher: Publisher,
    _ handover: Handover, _ processes: PeerProcesses, measurements: Measurements, readiness: ReadinessSet,
    loop: EventLoop, log: LogSink
  ) {
    self.connections = connections
    self.scheduler = scheduler
    self.local = local
    self.publisher = publisher
    self.handover = handover
    self.processes = processes
    self.measurements = measurements
    self.readiness = readiness
    self.loop = loop
    self.log = log
  }

  // MARK: One connection

  /// Ends a connection whose last answer is sent.
  ///
  /// If a socket is closed with unread input, the kernel reports a reset to the client, and the answer could be lost.
  /// So unless the client has ended its writing side, this side is shut down for writing, and input is read and
  /// discarded for a moment.
  func end(_ connection: Connection) {
    guard !connection.session.isDraining else { return }
    guard !connection.session.reading.isOver, stage == .running else { return close(connection) }
    do {
      try connection.descriptor.shutdownWriting()
      connection.session.beginDraining()
      handover.markAtRest(connection)
      try draining.append(connection.token)
      // Events are edge-triggered: the kernel does not report this input again.
      if connection.readiness.hasInput { scheduler.enqueue(connection) }
    } catch {
      drop(connection, error)
    }
  }

  /// Notes that the client has gone, or ended both directions. Closes the connection if only its answer was awaited, and
  /// may wait for that of another client.
  ///
  /// - Returns: whether the connection is closed.
  func hangUp(_ connection: Connection) -> Bool {
    connection.session.hangUp()
    guard connection.session.isFailing else { return false }
    close(connection)
    return true
  }

  /// Reads and discards input, up to its end or to ``Bound/drainedBytes``.
  func drain(_ connection: Connection, through buffer: borrowing ByteBuffer) {
    do {
      guard let count = try connection.receive(into: buffer, atMost: buffer.count) else { return }
      if count == 0 || connection.session.discard(count) > Bound.drainedBytes { return close(connection) }
      if connection.readiness.hasInput { scheduler.enqueue(connection) }
    } catch {
      drop(connection, error)
    }
  }

  /// Logs the failure of a connection, and closes it.
  func drop(_ connection: Connection, _ error: any Error) {
    log(
      .connectionFailed(
        app: connection.peer.app, processID: connection.peer.processID, reason: "\(error)",
        by: connection.held.originator))
    close(connection)
  }

  /// Closes a connection. Changes that it requested are still made.
  func close(_ connection: Connection) {
    handover.forget(connection)
    // The service manager's duplicate would keep the client waiting and the socket in the readiness set. After a
    // shutdown the service manager drops its duplicate. A failure means that the socket is gone already.
    if connection.establishment.isKept {
      try? connection.descriptor.shutdownBoth()
      if connection.readiness.watched != nil { try? readiness.remove(connection.descriptor.number) }
    }
    local.forget(connection)
    connections.remove(connection)
    measurements.keepRequests(of: connection)
    processes.remove(connection)
    if connection.session.isParked { parked -= 1 }
    publisher.endSubscription(of: connection)
  }

  /// Leaves a connection to the next run of the daemon. This run does no more work for the connection.
  func park(_ connection: Connection) {
    connection.session.park()
    parked += 1
  }

  // MARK: The end of a process

  /// Ends a connection whose process has ended, after its pending requests are answered.
  func orphan(_ token: ConnectionToken) {
    guard let connection = connections[token], markOrphan(connection) else { return }
    // Queued, because one process may leave a thousand connections.
    scheduler.enqueue(connection)
  }

  /// Notes that the process of a connection has ended. Input sent before is still answered. Later input is not from that
  /// process.
  ///
  /// - Returns: whether the end of the process matters for the connection.
  @discardableResult
  func markOrphan(_ connection: Connection) -> Bool {
    guard connection.session.reading == .open, !connection.session.isDraining else { return false }
    connection.session.endProcess(unread: (try? connection.descriptor.unread()) ?? 0)
    publisher.endSubscription(of: connection)
    return true
  }

  // MARK: The stop

  /// Begins or continues the daemon's stop.
  func enter(_ stage: StopStage) { self.stage = stage }

  /// Whether every connection is closed or parked.
  var isDone: Bool { connections.count == parked }

  /// Closes the connections that are not parked.
  func closeRest() { for connection in connections.all where !connection.session.isParked { close(connection) } }
}
