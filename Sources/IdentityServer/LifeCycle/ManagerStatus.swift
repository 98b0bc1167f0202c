import IdentityCore
import IdentityStore
import Sessions
import Systemd

/// The notifications to the service manager: readiness, and the status line of `systemctl status`.
final class ManagerStatus {
  private let state: CommittedState
  private let closer: ConnectionCloser
  private let log: LogSink
  /// Whether the last reload refused the configuration.
  var isConfigurationRefused = false
  /// The status that the service manager shows; nil before the first one.
  private var published: PublishedStatus?

  init(_ state: CommittedState, _ closer: ConnectionCloser, _ log: LogSink) {
    self.state = state
    self.closer = closer
    self.log = log
  }

  /// Tells the service manager that the daemon is ready.
  func announceReady() {
    let status = current
    published = status
    // Logged, because the service manager terminates a service that does not report readiness.
    if let error = ServiceManager.notify(["READY=1", status.notification]) { log(.managerNotTold("\(error)")) }
  }

  /// Sends the status to the service manager if it has changed.
  func publish() {
    let status = current
    guard closer.stage == .running, status != published else { return }
    published = status
    ServiceManager.notify([status.notification])
  }

  private var current: PublishedStatus {
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
  var isShown: Bool {
    switch self {
    case .tokenStored, .tokenDeleted, .itemStored, .itemDeleted, .version, .appUsed, .appUseForgotten, .dayBegan,
      .identifierForgotten, .fleetAdvanced, .fleetRecorded, .fleetForgotten, .backupTaken, .proofKeyStored,
      .proofKeyForgotten, .proofKeyLocked:
      false
    default: true
    }
  }
}
