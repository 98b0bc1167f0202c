import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem
import Sessions
import Systemd

/// The start, reload and stop of the daemon, and its notifications to the service manager.
final class LifeCycle {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let service: ConnectionService
  private let closer: ConnectionCloser
  private let handover: Handover
  private let writer: WriterChannel
  private let uses: AppUses
  private let loop: EventLoop
  private let log: LogSink
  /// Reads the configuration again.
  private let reload: () throws(ConfigurationRefusal) -> ServerSettings
  /// The exit status on which the service manager starts the daemon again; nil if it would not.
  private let restartStatus: Int32?
  /// Accepts the connections and serves the requests that are pending when a stop begins.
  private var serveLast: () -> Void = {}
  /// The exit status of the process after the stop.
  private(set) var exitStatus: Int32 = 0

  // Sources of the loop. A source ends with the last reference to it.
  private var sources: [EventSource] = []
  private var stopTimer: EventSource?
  private var handoverTimer: EventSource?
  private var appFolders: AppFolders?
  private var stateWatch: StateWatch?
  private var watchdog: Watchdog?
  /// Whether the last reload refused the configuration.
  private var isConfigurationRefused = false
  /// The status that the service manager shows; nil before the first one.
  private var publishedStatus: PublishedStatus?

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ service: ConnectionService, _ closer: ConnectionCloser,
    _ handover: Handover, _ writer: WriterChannel, _ uses: AppUses, _ loop: EventLoop, _ log: LogSink,
    restartStatus: Int32?, reload: @escaping () throws(ConfigurationRefusal) -> ServerSettings
  ) {
    self.state = state
    self.connections = connections
    self.service = service
    self.closer = closer
    self.handover = handover
    self.writer = writer
    self.uses = uses
    self.loop = loop
    self.log = log
    self.restartStatus = restartStatus
    self.reload = reload
  }

  // MARK: Start

  /// Watches the manifest folders. To be called before the first survey, so that a manifest added during the survey is
  /// not missed.
  func watchFolders(_ folders: [String], files: [String]) throws {
    appFolders = try AppFolders(
      folders, files: files, loop: loop, clock: { Clock.monotonicMicroseconds },
      survey: { [unowned self] in writer.send(.survey($0)) }, warn: { [unowned self] in log(.manifestFault($0)) })
  }

  /// Adds the watch on the mounts to the readiness set of the process, with ``LoopToken/mounts``.
  func watchMounts(in readiness: ReadinessSet) throws(SystemError) {
    guard let mounts = appFolders?.mounts else { return }
    try readiness.add(mounts.descriptor.number, [.urgent, .once], token: LoopToken.mounts)
  }

  /// Takes in that ``LoopToken/mounts`` is ready.
  func noteMount() { appFolders?.noteMount() }

  /// Watches the state directory for other programs that remove or replace files in it.
  func watchState(_ folder: String) throws {
    stateWatch = try StateWatch(
      folder, loop: loop, examine: { [unowned self] in writer.send(.examine) },
      warn: { log(.store(.unwatched("\($0)"))) })
    stateWatch?.note(state.condition)
  }

  /// Adds the loop's signals, timers and watches.
  ///
  /// - Parameters:
  ///   - apply: applies the settings of a reloaded configuration to the other parts of the loop, or notes its refusal.
  ///   - serveLast: accepts the connections and serves the requests that are pending when a stop begins.
  func start(apply: @escaping (Result<ServerSettings, ConfigurationRefusal>) -> Void, serveLast: @escaping () -> Void)
    throws
  {
    sources.append(
      try loop.timer(after: UInt64(Bound.releaseMemoryMilliseconds) * 1_000) { [unowned self] in
        writer.send(.release)
        ProcessMemory.releaseStack()
      })
    self.serveLast = serveLast
    for signal in [SIGTERM, SIGINT] {
      sources.append(try loop.watch(signal: signal) { [unowned self] in beginStop() })
    }
    sources.append(try loop.watch(signal: SIGHUP) { [unowned self] in reloadConfiguration(apply) })
    if let interval = ServiceManager.watchdogMicroseconds() {
      watchdog = try Watchdog(interval: interval, loop: loop, inbox: writer.inbox, activity: writer.activity)
    }
  }

  // MARK: Reports

  /// Takes in the parts of a report of the writer that concern the folders, the watchdog and the service manager.
  func note(_ report: WriterReport) {
    if let heartbeat = report.heartbeat { watchdog?.noteAnswer(to: heartbeat) }
    if let survey = report.survey { appFolders?.noteSurvey(isInOrder: survey.faults.isEmpty) }
    if let condition = report.condition { stateWatch?.note(condition) }
    if report.isStartDue { restart() }
    if report.condition != nil || report.changes.contains(where: \.change.isShown) { publishStatus() }
  }

  // MARK: Reload

  private func reloadConfiguration(_ apply: (Result<ServerSettings, ConfigurationRefusal>) -> Void) {
    guard closer.stage == .running else { return }
    // The service manager waits for READY=1 after a successful and after a failed reload (sd_notify(3)).
    ServiceManager.notify(["RELOADING=1", "MONOTONIC_USEC=\(Clock.monotonicMicroseconds)"])
    do throws(ConfigurationRefusal) {
      let new = try reload()
      isConfigurationRefused = false
      apply(.success(new))
      appFolders?.use(new.appDirectories)
      // Behind the survey, so that no app is uninstalled as unused that a new manifest claims.
      uses.reportFurther()
      log(.configurationLoaded)
    } catch {
      isConfigurationRefused = true
      apply(.failure(error))
      log(.configurationRefused(error.reason))
    }
    announceReady()
  }

  // MARK: Stop

  /// Begins the stop: answers the requests that have arrived, and has each connection closed or parked.
  /// ``closeStoreIfDone()`` continues.
  private func beginStop() {
    guard closer.stage == .running else { return }
    ServiceManager.notify(["STOPPING=1", "STATUS=Stopping."])
    log(.stopping)
    serveLast()
    closer.enter(handover.isEnabled ? .handingOver : .closingConnections)
    do {
      stopTimer = try loop.timer(after: UInt64(Bound.stopMilliseconds) * 1_000) { [unowned self] in
        closer.closeRest()
        closeStoreIfDone()
      }
      if closer.stage == .handingOver {
        let pause = UInt64(Bound.handoverMilliseconds) * 1_000
        handoverTimer = try loop.timer(after: pause, accuracy: 1_000) { [unowned self] in
          guard closer.stage == .handingOver else { return }
          closer.enter(.handoverDue)
          for connection in connections.all { service.advance(connection) }
          closeStoreIfDone()
        }
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
  private func restart() {
    guard let restartStatus, closer.stage == .running else { return }
    log(.store(.restarting))
    exitStatus = restartStatus
    beginStop()
  }

  /// Tells the writer to close the store once the daemon stops and each connection is closed or parked. The writer's
  /// last report ends the loop.
  func closeStoreIfDone() {
    guard closer.stage != .running, closer.stage != .closingStore, closer.isDone else { return }
    closer.enter(.closingStore)
    uses.reportFurther()
    writer.send(.stop)
  }

  // MARK: Status

  /// Tells the service manager that the daemon is ready.
  func announceReady() {
    let status = currentStatus
    publishedStatus = status
    // Logged, because the service manager terminates a service that does not report readiness.
    if let error = ServiceManager.notify(["READY=1", status.notification]) { log(.managerNotTold("\(error)")) }
  }

  /// Sends the status to the service manager if it has changed.
  private func publishStatus() {
    let status = currentStatus
    guard closer.stage == .running, status != publishedStatus else { return }
    publishedStatus = status
    ServiceManager.notify([status.notification])
  }

  private var currentStatus: PublishedStatus {
    PublishedStatus(
      isConfigurationRefused: isConfigurationRefused, apps: state.registry.apps.count,
      device: state.registry[.device]?.origin, store: state.condition)
  }
}

/// The status line in `systemctl status`.
struct PublishedStatus: Equatable {
  let isConfigurationRefused: Bool
  let apps: Int
  let device: Origin?
  let store: StoreCondition

  /// The assignment for sd_notify(3).
  var notification: String {
    // A damaged store cannot tell whether there is more than it shows.
    let isWhole = store.kind != .damaged && store.kind != .readError
    let device = device?.rawValue ?? (isWhole ? "not made yet" : "not known")
    let apps = isWhole ? "\(apps)" : "not known"
    let refused =
      isConfigurationRefused ? "Configuration refused, the previous one stays in force; see the journal. " : ""
    return "STATUS=\(refused)Serving; apps: \(apps); device identifier: \(device); store: \(store.name)."
  }
}

extension Change {
  /// Whether the change may alter the status that the service manager shows; see ``PublishedStatus``.
  fileprivate var isShown: Bool {
    switch self {
    case .tokenStored, .tokenDeleted, .itemStored, .itemDeleted, .version, .appUsed, .appUseForgotten, .dayBegan,
      .identifierForgotten, .fleetAdvanced, .fleetRecorded, .fleetForgotten, .backupTaken, .proofKeyStored,
      .proofKeyForgotten, .proofKeyLocked:
      false
    default: true
    }
  }
}
