import Glibc
import IdentityCore
import LinuxSystem
import Systemd

// The loop's sources, configuration reload, and stop.
extension Server {
  func addSources() throws {
    try readiness.add(listener.number, .read, token: LoopToken.listener)
    // Edge-triggered: each ring is reported once, so the bell need not be reset, which would take another system call.
    try readiness.add(outbox.descriptor, [.read, .once], token: LoopToken.reports)
    try readiness.add(loop.descriptor, .read, token: LoopToken.sources)
    freshTimer = try loop.timer(after: UInt64.max / 2, accuracy: 1_000) { [unowned self] in settleConnections() }
    sources.append(
      try loop.timer(after: UInt64(Bound.releaseMemoryMilliseconds) * 1_000) { [unowned self] in
        inbox.send(.release)
        ProcessMemory.releaseStack()
      })
    try addUseTimer()
    for signal in [SIGTERM, SIGINT] {
      sources.append(try loop.watch(signal: signal) { [unowned self] in beginStop() })
    }
    sources.append(try loop.watch(signal: SIGHUP) { [unowned self] in reloadConfiguration() })
    if let interval = ServiceManager.watchdogMicroseconds() {
      watchdog = try Watchdog(interval: interval, loop: loop, inbox: inbox, activity: activity)
    }
  }

  // MARK: Reload

  private func reloadConfiguration() {
    guard stop == .running else { return }
    // The service manager waits for READY=1 after a successful and after a failed reload (sd_notify(3)).
    ServiceManager.notify(["RELOADING=1", "MONOTONIC_USEC=\(Clock.monotonicMicroseconds)"])
    if let new = reload() {
      settings = new
      attestation.use(new)
      connections.use(new.limits)
      inbox.send(.limits(new.limits))
      appFolders?.use(new.appDirectories)
      // As at a stop: a short run counts neither as a day of operation nor as a use of apps.
      if usedApps.hasReported { recordUses() }
      say(.configurationLoaded)
      announceReady()
    } else {
      publishedStatus = nil
      ServiceManager.notify([
        "READY=1", "STATUS=Configuration refused, the previous one stays in force; see the journal.",
      ])
    }
  }

  // MARK: Stop

  /// Stops accepting, answers the requests that have arrived, closes the store, and ends the loop.
  private func beginStop() {
    guard stop == .running else { return }
    ServiceManager.notify(["STOPPING=1", "STATUS=Stopping."])
    say(.stopping)
    // Connections and requests made before the signal are in the sockets by now, so they are taken in once more.
    var accepted = 0
    while accepted < Bound.lastAccepts, acceptConnection() { accepted += 1 }
    listens(false)
    takeLastTurns()
    stop = memory == nil ? .finishing : .handingOver
    do {
      stopTimer = try loop.timer(after: UInt64(Bound.stopMilliseconds) * 1_000) { [unowned self] in
        for connection in connections.all where !connection.session.isParked { close(connection) }
        finishStop()
      }
      if stop == .handingOver {
        let pause = UInt64(Bound.handoverMilliseconds) * 1_000
        handoverTimer = try loop.timer(after: pause, accuracy: 1_000) { [unowned self] in
          guard stop == .handingOver else { return }
          stop = .handoverDue
          for connection in connections.all { advance(connection) }
          finishStop()
        }
      }
    } catch {
      say(.noStopTimer("\(error)"))
    }
    for connection in connections.all {
      if connection.session.isDraining { close(connection) } else { advance(connection) }
    }
    finishStop()
  }

  /// Leaves a connection to the next run of the daemon. This run does no more work for the connection.
  func park(_ connection: Connection) {
    connection.session.park()
    parked += 1
    // Events from here on are for the next run.
    try? watch(connection)
    finishStop()
  }

  /// Tells the writer to close the store once each connection is closed or parked. The writer's last report ends
  /// the loop.
  func finishStop() {
    guard stop != .running, stop != .closingStore, connections.count == parked else { return }
    stop = .closingStore
    // Without an earlier record of uses, the run was short. A short run counts neither as a day of operation nor as a
    // use of apps.
    if usedApps.hasReported { recordUses() }
    inbox.send(.stop)
  }

  // MARK: Status

  /// Tells the service manager that the daemon is ready.
  func announceReady() {
    let status = currentStatus
    publishedStatus = status
    // Logged, because the service manager terminates a service that does not report readiness.
    if let error = ServiceManager.notify(["READY=1", status.notification]) { say(.managerNotTold("\(error)")) }
  }

  /// Sends the status to the service manager if it has changed.
  func publishStatus() {
    let status = currentStatus
    guard stop == .running, status != publishedStatus else { return }
    publishedStatus = status
    ServiceManager.notify([status.notification])
  }

  private var currentStatus: PublishedStatus {
    PublishedStatus(apps: registry.apps.count, device: registry[.device]?.origin, store: condition)
  }
}

/// The status line in `systemctl status`.
struct PublishedStatus: Equatable {
  let apps: Int
  let device: Origin?
  let store: StoreCondition

  /// The assignment for sd_notify(3).
  var notification: String {
    let device = device?.rawValue ?? "not made yet"
    return "STATUS=Serving; apps: \(apps); device identifier: \(device); store: \(store.name)."
  }
}
