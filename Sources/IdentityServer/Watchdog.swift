import LinuxSystem
import Systemd

/// Tells the service manager's watchdog that the daemon lives: only while both threads make progress.
///
/// The loop proves itself by coming here at all, the writer by answering a heartbeat. A writer that waits for the disk
/// counts as alive: a restart would not make the disk faster.
final class Watchdog {
  private let inbox: Mailbox<WriterMessage>
  private let activity: WriterActivity
  private let pause: UInt64
  private var timer: EventSource?
  private var asked: UInt64 = 0
  private var answered: UInt64 = 0

  /// Starts feeding, three times in each interval, in microseconds.
  init(interval: UInt64, loop: EventLoop, inbox: Mailbox<WriterMessage>, activity: WriterActivity) throws(SystemdError)
  {
    self.inbox = inbox
    self.activity = activity
    pause = interval / 3
    timer = try loop.timer(after: 0) { [unowned self] in tick() }
  }

  /// The writer has answered.
  func take(_ heartbeat: UInt64) { answered = heartbeat }

  private func tick() {
    if answered == asked || activity.isInStorage { ServiceManager.notify(["WATCHDOG=1"]) }
    if answered == asked {
      asked += 1
      inbox.send(.heartbeat(asked))
    }
    timer?.arm(after: pause)
  }
}
