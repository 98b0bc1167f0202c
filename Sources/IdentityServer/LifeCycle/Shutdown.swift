import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem
import Sessions
import Systemd

/// The stop of the daemon: answers the requests that have arrived, closes or parks each connection, and then has the
/// writer close the store.
final class Shutdown {
  private let connections: ConnectionTable
  private let service: ConnectionService
  private let closer: ConnectionCloser
  private let handover: Handover
  private let arrivals: Arrivals
  private let uses: AppUses
  private let writer: WriterChannel
  private let loop: EventLoop
  private let log: LogSink
  /// The exit status on which the service manager starts the daemon again; nil if it would not.
  private let restartStatus: Int32?
  /// Accepts the connections and serves the requests that are pending when a stop begins.
  private var serveLast: () -> Void = {}
  private var exitStatus: Int32 = 0
  /// The timers of the stop.
  private var timers: [EventSource] = []

  init(
    _ connections: ConnectionTable, _ service: ConnectionService, _ closer: ConnectionCloser, _ handover: Handover,
    _ arrivals: Arrivals, _ uses: AppUses, writer: WriterChannel, loop: EventLoop, log: LogSink, restartStatus: Int32?
  ) {
    self.connections = connections
    self.service = service
    self.closer = closer
    self.handover = handover
    self.arrivals = arrivals
    self.uses = uses
    self.writer = writer
    self.loop = loop
    self.log = log
    self.restartStatus = restartStatus
  }

  /// Makes SIGTERM and SIGINT begin the stop.
  ///
  /// - Parameter serveLast: accepts the connections and serves the requests that are pending when a stop begins.
  /// - Returns: the watches of the signals.
  func watchSignals(serveLast: @escaping () -> Void) throws -> [EventSource] {
    self.serveLast = serveLast
    return try [SIGTERM, SIGINT].map { signal in try loop.watch(signal: signal) { [unowned self] in begin() } }
  }

  /// Whether the daemon serves, and no stop has begun.
  var hasNotBegun: Bool { closer.stage == .running }

  /// Begins the stop. ``closeStoreIfDone()`` continues.
  private func begin() {
    guard closer.stage == .running else { return }
    ServiceManager.notify(["STOPPING=1", "STATUS=Stopping."])
    log(.stopping)
    serveLast()
    closer.enter(handover.isEnabled ? .handingOver : .closingConnections)
    do {
      timers.append(
        try loop.timer(after: UInt64(Bound.stopMilliseconds) * 1_000) { [unowned self] in
          closer.closeRest()
          closeStoreIfDone()
        })
      if closer.stage == .handingOver {
        timers.append(
          try loop.timer(after: UInt64(Bound.handoverMilliseconds) * 1_000, accuracy: 1_000) { [unowned self] in
            guard closer.stage == .handingOver else { return }
            closer.enter(.handoverDue)
            for connection in connections.all { service.advance(connection) }
            closeStoreIfDone()
          })
      }
    } catch {
      log(.noStopTimer("\(error)"))
    }
    for connection in connections.all {
      if connection.session.isDraining { closer.close(connection) } else { service.advance(connection) }
    }
    closeStoreIfDone()
  }

  /// Stops, so that the service manager starts the daemon again and hands the connections over.
  func restart() {
    guard let restartStatus, closer.stage == .running else { return }
    log(.store(.restarting))
    exitStatus = restartStatus
    begin()
  }

  /// Tells the writer to close the store once the daemon stops and each connection is closed or parked. The writer's
  /// last report ends the loop.
  func closeStoreIfDone() {
    guard closer.stage != .running, closer.stage != .closingStore, closer.isDone else { return }
    closer.enter(.closingStore)
    uses.reportFurther()
    writer.send(.stop)
  }

  /// Ends the loop after the writer has closed the store.
  func finish() {
    arrivals.establishAll()
    handover.finish()
    loop.exit(status: exitStatus)
  }
}
