import IdentityCore
import LinuxSystem
import Systemd

/// Connections that arrive: accepts one in a turn, serves its first turn, and establishes it a moment later. Most have
/// closed by then.
final class Arrivals {
  private let admission: Admission
  private let connections: ConnectionTable
  private let service: ConnectionService
  private let scheduler: TurnScheduler
  /// The accepted connections that are not established, oldest first.
  private var new = ConnectionQueue()
  private var timer: EventSource?
  /// Whether a connection waits to be accepted.
  private(set) var isDue = false

  init(
    _ admission: Admission, _ connections: ConnectionTable, _ service: ConnectionService, _ scheduler: TurnScheduler
  ) {
    self.admission = admission
    self.connections = connections
    self.service = service
    self.scheduler = scheduler
  }

  /// Begins to accept connections, and to queue those that are due to be established, ``Bound/establishMilliseconds``
  /// after the first of them was accepted.
  func start(_ loop: EventLoop) throws {
    try admission.open()
    timer = try loop.timer(after: UInt64.max / 2, accuracy: 1_000) { [unowned self] in enqueueNew() }
  }

  /// Notes that a connection waits to be accepted.
  func note() { isDue = true }

  /// Accepts a pending connection, if there is one, and serves its first turn. If its principal has no time left, the
  /// connection is only watched, and served in a turn of the principal.
  ///
  /// - Returns: whether there was one.
  @discardableResult
  func acceptOne() -> Bool {
    isDue = false
    return admission.acceptOne { connection in
      append(connection)
      if connections.isOverdrawn(connection.share) {
        service.beginToWatch(connection)
      } else {
        service.begin(connection)
      }
    }
  }

  /// Accepts the connections that are pending when the daemon stops, and no others.
  func acceptLast() {
    var accepted = 0
    while accepted < Bound.lastAccepts, acceptOne() { accepted += 1 }
    admission.close()
  }

  /// Establishes all connections that are not established.
  func establishAll() {
    enqueueNew()
    for share in connections.allShares { service.establish(of: share, atMost: .max) { false } }
  }

  private func append(_ connection: Connection) {
    new.append(connection.token)
    guard new.count == 1 else { return }
    timer?.arm(after: UInt64(Bound.establishMilliseconds) * 1_000)
  }

  /// Queues the accepted connections that are still open to be established in turns of their principals.
  private func enqueueNew() {
    while let token = new.popFirst() {
      if let connection = connections[token] { scheduler.enqueueNew(connection) }
    }
    // A new queue, so that a burst of thousands of connections leaves no memory behind.
    new = ConnectionQueue()
  }
}
