import Glibc
import IdentityCore
import LinuxSystem
import Systemd

// The sources of the loop, and the life of the process.
extension Server {
  func addSources() throws {
    try readiness.add(listener.number, .read, token: LoopToken.listener)
    // Told of each ring once, so the bell has not to be reset, which would be one more call to the kernel.
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
      sources.append(try loop.watch(signal: signal) { [unowned self] in stop() })
    }
    sources.append(try loop.watch(signal: SIGHUP) { [unowned self] in reloadConfiguration() })
    if let interval = ServiceManager.watchdogMicroseconds() {
      watchdog = try Watchdog(interval: interval, loop: loop, inbox: inbox, activity: activity)
    }
  }

  // MARK: Reload

  private func reloadConfiguration() {
    guard !isStopping else { return }
    // The service manager waits for READY=1 whatever comes of it (sd_notify(3)).
    ServiceManager.notify(["RELOADING=1", "MONOTONIC_USEC=\(Clock.monotonicMicroseconds)"])
    if let new = reload() {
      settings = new
      attestation.use(new)
      connections.use(new.limits)
      inbox.send(.limits(new.limits))
      appFolders?.use(new.appDirectories)
      recordUses()
      say(.configurationLoaded)
      announceReady()
    } else {
      publishedStatus = nil
      ServiceManager.notify([
        "READY=1", "STATUS=Configuration refused, the last good one is in force; see the journal.",
      ])
    }
  }

  // MARK: Stop

  /// Takes no new connection, answers what has arrived, closes the store, and ends the loop.
  private func stop() {
    guard !isStopping else { return }
    ServiceManager.notify(["STOPPING=1", "STATUS=Stopping."])
    say(.stopping)
    // Whoever connected and asked before the signal is in the sockets by now: one last look.
    var accepted = 0
    while accepted < Bound.lastAccepts, acceptConnection() { accepted += 1 }
    listens(false)
    takeLastTurns()
    isStopping = true
    do {
      stopTimer = try loop.timer(after: UInt64(Bound.stopMilliseconds) * 1_000) { [unowned self] in
        for connection in connections.all where !connection.isParked { close(connection) }
        finishStop()
      }
      if handsOver {
        let pause = UInt64(Bound.handoverMilliseconds) * 1_000
        handoverTimer = try loop.timer(after: pause, accuracy: 1_000) { [unowned self] in
          isHandoverDue = true
          for connection in connections.all { advance(connection) }
          finishStop()
        }
      }
    } catch {
      say(.noStopTimer("\(error)"))
    }
    for connection in connections.all { if connection.isDraining { close(connection) } else { advance(connection) } }
    finishStop()
  }

  /// Nothing more is done with a connection: the next run of the daemon goes on with it.
  func park(_ connection: Connection) {
    connection.isParked = true
    parked += 1
    // What the kernel would tell of it now is for the next run.
    try? watch(connection)
    finishStop()
  }

  /// Once the last connection is closed, or rests, the writer closes the store, and its last report ends the loop.
  func finishStop() {
    guard isStopping, connections.count == parked, !hasSentStop else { return }
    hasSentStop = true
    // A short run counts for no day, and what was used in it neither.
    if hasRecordedUses { recordUses() }
    inbox.send(.stop)
  }

  // MARK: Status

  /// Tells the service manager that the daemon serves.
  func announceReady() {
    let status = currentStatus
    publishedStatus = status
    // It waits for that, and will end what it did not hear of.
    if let error = ServiceManager.notify(["READY=1", status.notification]) { say(.managerNotTold("\(error)")) }
  }

  /// Tells the service manager, where what it shows is no longer true.
  func publishStatus() {
    let status = currentStatus
    guard !isStopping, status != publishedStatus else { return }
    publishedStatus = status
    ServiceManager.notify([status.notification])
  }

  private var currentStatus: PublishedStatus {
    PublishedStatus(apps: registry.apps.count, device: registry[.device]?.origin, store: condition)
  }
}

/// What `systemctl status` shows.
struct PublishedStatus: Equatable {
  let apps: Int
  let device: Origin?
  let store: StoreCondition

  /// In the form of sd_notify(3).
  var notification: String {
    let device = device?.rawValue ?? "not asked for yet"
    return "STATUS=Serving; apps: \(apps); device identifier: \(device); store: \(store.name)."
  }
}
