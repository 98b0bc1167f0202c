import LinuxSystem

/// The two mailboxes between a connection's thread and its owner.
final class Mailboxes: Sendable {
  /// The reports that wait for the owner.
  private struct Waiting: Sendable {
    var reports: [BrokerConnection.Report] = []
    var bytes = 0
  }

  /// The size of the reports that wait, in bytes, from which on the thread reads no further message. TCP then holds the
  /// broker back.
  private static let mostBytes = 1 << 20
  /// The size from which on a message is not taken any more. Over TLS, the library may read many messages at once.
  static let bound = 4 << 20

  private let orders = Locked(OrderQueue())
  private let reports = Locked(Waiting())
  private let orderBell: Wakeup
  private let reportBell: Wakeup

  init() throws(SystemError) {
    orderBell = try Wakeup(blocking: false)
    reportBell = try Wakeup(blocking: false)
  }

  // MARK: The owner's end

  /// The descriptor that is readable while reports may wait.
  var reportDescriptor: Int32 { reportBell.descriptor.number }

  /// Gives an order and wakes the thread.
  func order(_ give: (inout OrderQueue) -> Void) {
    orders.withLock { give(&$0) }
    orderBell.ring()
  }

  /// Removes and returns all reports.
  func takeReports() -> [BrokerConnection.Report] {
    reportBell.wait()
    let (taken, wasFull) = reports.withLock { waiting in
      defer { waiting = Waiting() }
      return (waiting.reports, waiting.bytes >= Self.mostBytes)
    }
    if wasFull { orderBell.ring() }
    return taken
  }

  // MARK: The thread's end

  /// The descriptor that is readable after an order, and when there is room for reports again.
  var orderDescriptor: Int32 { orderBell.descriptor.number }
  /// Whether the thread may read further messages.
  var hasRoom: Bool { reports.withLock { $0.bytes < Self.mostBytes } }
  /// Whether another message fits.
  var isWithinBound: Bool { reports.withLock { $0.bytes < Self.bound } }
  /// Whether the connection has to end.
  var isClosed: Bool { orders.withLock { $0.isClosed } }
  /// Whether an order waits.
  var hasOrders: Bool { orders.withLock { !$0.isEmpty } }

  /// Resets the bell. To be called before the orders are read: a later order rings again.
  func resetOrderBell() { orderBell.wait() }

  /// Removes and returns the first order; nil if none waits.
  func nextOrder() -> OrderQueue.Order? { orders.withLock { $0.next() } }

  /// Adds a report and wakes the owner.
  func report(_ report: BrokerConnection.Report) {
    let isFirst = reports.withLock { waiting in
      waiting.reports.append(report)
      if case .received(let delivery) = report { waiting.bytes += delivery.size } else { waiting.bytes += 64 }
      return waiting.reports.count == 1
    }
    if isFirst { reportBell.ring() }
  }
}
