package import FleetWire
package import IdentityClient
import IdentityCore
import LinuxSystem
package import Systemd

/// The service on a thread of its own, with a loop of its own.
///
/// A turn of the service waits for identityd as long as a commit takes, because nothing may follow from a fact that is not
/// on the disk. The loop of the process waits for nothing: meanwhile, it answers admins and watches for signals.
package final class ServiceThread {
  /// A message to the service.
  enum Message: Sendable {
    /// Carries out the request of a connection. An answer follows.
    case request(ControlRequest, of: ControlConnection.Number)
    /// Uses another configuration from now on.
    case use(FleetConfiguration)
    /// A heartbeat of the watchdog, to be returned.
    case heartbeat
    /// Ends the connections with the broker, and the thread.
    case stop
  }

  /// A report of the service.
  enum Report: Sendable {
    case answer(Result<ControlRequest.Answer, Refusal>, to: ControlConnection.Number)
    /// The state from now on. It precedes the answer to the request that has led to it.
    case state(ServiceState)
    /// identityd has answered for the first time, or another configuration is in use.
    case ready
    case heartbeat
    /// The thread ends, because it was told to or for this reason.
    case ended(reason: String?)
  }

  /// A report for the service manager.
  package enum Notice {
    /// The service has started, or uses another configuration.
    case ready
    /// The service has returned a heartbeat.
    case alive
    /// The service has stopped; with a reason if nobody has stopped it.
    case ended(reason: String?)
  }

  private let inbox: Mailbox<Message>
  private let outbox: Mailbox<Report>
  private var thread: Thread?
  private var source: EventSource?
  private let notify: (Notice) -> Void
  /// The state of the service.
  private(set) var state = ServiceState.unknown
  /// Called with the answer to the request of a connection.
  var answer: (Result<ControlRequest.Answer, Refusal>, ControlConnection.Number) -> Void = { _, _ in }

  /// Starts the service.
  ///
  /// - Parameters:
  ///   - loop: the loop of the process, in which everything here is called.
  ///   - notify: called with news for the service manager.
  package init(_ loop: EventLoop, _ settings: ServiceSettings, notify: @escaping (Notice) -> Void) throws {
    inbox = try Mailbox(blocking: false)
    outbox = try Mailbox(blocking: false)
    self.notify = notify
    source = try loop.watch(readable: outbox.descriptor) { [unowned self] in takeReports() }
    let (inbox, outbox) = (inbox, outbox)
    let work: @Sendable () -> Void = { Self.run(settings, inbox, outbox) }
    thread = try Thread(named: "service", work)
  }

  /// Has a request carried out. The answer follows in ``answer``. A connection has one request here at a time, so the bound
  /// of the connections bounds the requests.
  func carryOut(_ request: ControlRequest, of connection: ControlConnection.Number) {
    inbox.send(.request(request, of: connection))
  }

  /// Uses another configuration from now on. A notice follows.
  package func use(_ configuration: FleetConfiguration) { inbox.send(.use(configuration)) }

  /// Asks for a sign of life. A notice follows, unless the service waits for identityd.
  package func sendHeartbeat() { inbox.send(.heartbeat) }

  /// Stops the service. A notice follows.
  package func stop() { inbox.send(.stop) }

  /// Waits until the thread has ended.
  package func join() { if let thread = thread.take() { thread.join() } }

  private func takeReports() {
    for report in outbox.takeAll() {
      switch report {
      case .answer(let result, let connection): answer(result, connection)
      case .state(let state): self.state = state
      case .ready: notify(.ready)
      case .heartbeat: notify(.alive)
      case .ended(let reason): notify(.ended(reason: reason))
      }
    }
  }

  // MARK: The thread

  private static func run(_ settings: ServiceSettings, _ inbox: Mailbox<Message>, _ outbox: Mailbox<Report>) {
    do {
      let loop = try EventLoop()
      let service = try Service(loop, settings) { outbox.send($0) }
      let source = try loop.watch(readable: inbox.descriptor) {
        for message in inbox.takeAll() {
          switch message {
          case .request(let request, let connection):
            let result = Result { () throws(Refusal) in try service.answer(to: request) }
            outbox.send(.answer(result, to: connection))
          case .use(let configuration):
            service.use(configuration)
            outbox.send(.ready)
          case .heartbeat: outbox.send(.heartbeat)
          case .stop:
            service.stop()
            loop.exit(status: 0)
          }
        }
      }
      _ = try withExtendedLifetime((service, source)) { try loop.run() }
      outbox.send(.ended(reason: nil))
    } catch {
      outbox.send(.ended(reason: "\(error)"))
    }
  }
}

/// The settings of a run of the service.
package struct ServiceSettings: Sendable {
  let daemon: DaemonSocket
  let run: Run
  let configuration: FleetConfiguration
  let credentials: Credentials
  let log: ServiceLog

  /// - Parameters:
  ///   - daemon: the socket of identityd.
  ///   - run: the run of this process.
  package init(
    daemon: DaemonSocket, run: Run, configuration: FleetConfiguration, credentials: Credentials, log: ServiceLog
  ) {
    self.daemon = daemon
    self.run = run
    self.configuration = configuration
    self.credentials = credentials
    self.log = log
  }
}
