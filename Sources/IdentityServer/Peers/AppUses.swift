import IdentityCore
import LinuxSystem
import Systemd

/// The use of apps without a manifest: the loop sees apps connect, and the writer records each app once a day.
final class AppUses {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let writer: WriterChannel
  /// The days after which unused and suspended apps are uninstalled.
  private var forgetting: ForgetPolicy
  /// The apps that connected since the last report to the writer.
  private var apps: Set<Text> = []
  /// Whether this run has reported any use, which also records the day as a day of operation.
  private var hasReported = false
  private var timer: EventSource?

  init(_ state: CommittedState, _ connections: ConnectionTable, _ writer: WriterChannel, _ settings: ServerSettings) {
    self.state = state
    self.connections = connections
    self.writer = writer
    forgetting = settings.forgetting
  }

  /// Starts the timer that tells the writer at intervals which apps were used.
  func start(_ loop: EventLoop) throws(SystemdError) {
    timer = try loop.timer(after: UInt64(Bound.useMilliseconds) * 1_000) { [unowned self] in
      report()
      timer?.arm(after: UInt64(Bound.useMilliseconds) * 1_000)
    }
  }

  /// Applies new settings.
  func use(_ settings: ServerSettings) { forgetting = settings.forgetting }

  /// Notes that a peer's app was used. Only the use of installed apps without a manifest is noted.
  func note(_ peer: Peer) {
    guard peer.app.isUnclaimedApp, state.registry.apps[peer.app] != nil else { return }
    apps.insert(peer.app)
  }

  /// Tells the writer of further uses. Does nothing before the timer's first report: a short run counts neither as a day
  /// of operation nor as a use of apps.
  func reportFurther() { if hasReported { report() } }

  /// Tells the writer which apps were used since the last call. An app with an open connection counts as used.
  private func report() {
    for connection in connections.all { note(connection.peer) }
    hasReported = true
    writer.send(.used(apps, forgetting))
    apps = []
  }
}
