import Glibc
import IdentityCore
import IdentityStore
import LinuxSystem
import Sessions
import Systemd

/// The life of the daemon between its start and its stop: the watches of folders and files, the watchdog, and reloads of
/// the configuration.
final class LifeCycle {
  private let state: CommittedState
  private let shutdown: Shutdown
  private let status: ManagerStatus
  private let writer: WriterChannel
  private let uses: AppUses
  private let loop: EventLoop
  private let log: LogSink
  /// Reads the configuration again.
  private let reload: () throws(ConfigurationRefusal) -> ServerSettings

  // Sources of the loop. A source ends with the last reference to it.
  private var sources: [EventSource] = []
  private var appFolders: AppFolders?
  private var stateWatch: StateWatch?
  private var watchdog: Watchdog?

  init(
    _ state: CommittedState, _ shutdown: Shutdown, _ status: ManagerStatus, _ writer: WriterChannel, _ uses: AppUses,
    loop: EventLoop, log: LogSink, reload: @escaping () throws(ConfigurationRefusal) -> ServerSettings
  ) {
    self.state = state
    self.shutdown = shutdown
    self.status = status
    self.writer = writer
    self.uses = uses
    self.loop = loop
    self.log = log
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
    sources += try shutdown.watchSignals(serveLast: serveLast)
    sources.append(try loop.watch(signal: SIGHUP) { [unowned self] in reloadConfiguration(apply) })
    if let interval = ServiceManager.watchdogMicroseconds() {
      watchdog = try Watchdog(interval: interval, loop: loop, inbox: writer.inbox, activity: writer.activity)
    }
  }

  /// Continues a stop that has begun.
  func goOnStopping() { shutdown.closeStoreIfDone() }

  // MARK: Reports

  /// Takes in the parts of a report of the writer that concern the folders, the watchdog and the service manager.
  func note(_ report: WriterReport) {
    if let heartbeat = report.heartbeat { watchdog?.noteAnswer(to: heartbeat) }
    if let survey = report.survey { appFolders?.noteSurvey(isInOrder: survey.faults.isEmpty) }
    if let condition = report.condition { stateWatch?.note(condition) }
    if report.store?.isStartDue == true { shutdown.restart() }
    if report.condition != nil || report.results.changes.contains(where: \.change.isShown) { status.publish() }
  }

  // MARK: Reload

  private func reloadConfiguration(_ apply: (Result<ServerSettings, ConfigurationRefusal>) -> Void) {
    guard shutdown.hasNotBegun else { return }
    // The service manager waits for READY=1 after a successful and after a failed reload (sd_notify(3)).
    ServiceManager.notify(["RELOADING=1", "MONOTONIC_USEC=\(Clock.monotonicMicroseconds)"])
    do throws(ConfigurationRefusal) {
      let new = try reload()
      status.isConfigurationRefused = false
      apply(.success(new))
      appFolders?.use(new.appDirectories)
      // Behind the survey, so that no app is uninstalled as unused that a new manifest claims.
      uses.reportFurther()
      log(.configurationLoaded)
    } catch {
      status.isConfigurationRefused = true
      apply(.failure(error))
      log(.configurationRefused(error.reason))
    }
    status.announceReady()
  }
}
