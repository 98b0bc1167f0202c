import Glibc
package import LinuxSystem

/// A connection to a broker, on a thread of its own. Its first attempt is its only one, and its end is final.
///
/// The process has to ignore SIGPIPE. The connection ends with this object.
package final class BrokerConnection {
  /// Something that happened to a connection.
  package enum Report: Equatable, Sendable {
    /// The broker has accepted the connection.
    case connected
    /// The broker has acknowledged a subscription, and sends the retained messages.
    case subscribed(String)
    /// The broker has denied a subscription.
    case denied(String)
    /// The broker has sent a message.
    case received(Delivery)
    /// The broker has refused the credentials. This is the last report.
    case refused(String)
    /// The connection has ended, or was never made, for a reason in words. This is the last report.
    case ended(String)
  }

  private let mailboxes: Mailboxes

  /// Starts to connect. The thread resolves the name of the host, which can take long.
  package init(to access: BrokerAccess) throws(SystemError) {
    let mailboxes = try Mailboxes()
    self.mailboxes = mailboxes
    // Detached: the resolver cannot be interrupted, and nobody should wait for it.
    try Thread(named: "wire") { Wire(access, mailboxes).run() }.detach()
  }

  /// Waits until all closed connections have ended, at most a second.
  ///
  /// For the end of the process: OpenSSL must not be in use while the process exits.
  package static func waitForEnds() {
    for _ in 1...100 where Wire.running.withLock({ $0 > 0 }) { usleep(10_000) }
  }

  deinit { mailboxes.order { $0.close() } }

  /// The descriptor that is readable while reports may wait.
  package var descriptor: Int32 { mailboxes.reportDescriptor }

  /// Removes and returns all reports, oldest first.
  package func takeReports() -> [Report] { mailboxes.takeReports() }

  /// Subscribes to topics, also if the subscription exists: the broker then sends the retained messages again.
  ///
  /// A subscription is dropped if too many wait.
  package func subscribe(to filter: String) { mailboxes.order { $0.subscribe(to: filter) } }

  /// Publishes a message. It replaces one with the same topic that still waits, and is dropped if too many wait.
  package func publish(_ publication: Publication) { mailboxes.order { $0.publish(publication) } }
}
