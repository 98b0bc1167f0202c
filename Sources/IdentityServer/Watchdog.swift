import LinuxSystem
import Systemd

/// Whether both threads make progress, as far as one tick after another can tell.
///
/// The loop proves itself by coming here at all, the writer by answering a heartbeat. A writer that waits for the disk
/// counts as alive: a restart would not make the disk faster.
struct ThreadProgress: Equatable {
  private var asked: UInt64 = 0
  private var answered: UInt64 = 0

  /// What a tick comes to.
  struct Tick: Equatable {
    /// Whether the service manager may be told that the daemon lives.
    let isAlive: Bool
    /// The heartbeat to send to the writer; nil while the last one is not answered.
    let heartbeat: UInt64?
  }

  /// Looks at both threads.
  mutating func tick(writerIsInStorage: Bool) -> Tick {
    guard answered == asked else { return Tick(isAlive: writerIsInStorage, heartbeat: nil) }
    asked += 1
    return Tick(isAlive: true, heartbeat: asked)
  }

  /// The writer has answered.
  mutating func take(_ heartbeat: UInt64) { answered = heartbeat }
}

/// Tells the service manager's watchdog that the daemon lives, three times in each interval.
final class Watchdog {
  private let inbox: Mailbox<WriterMessage>
  private let activity: WriterActivity
  private let pause: UInt64
  private var timer: EventSource?
  private var progress = ThreadProgress()

  /// Starts feeding; the interval is in microseconds.
  init(
    interval: UInt64, loop: EventLoop, inbox: Mailbox<WriterMessage>, activity: WriterActivity
  ) throws(SystemdError) {
    self.inbox = inbox
    self.activity = activity
    pause = interval / 3
    timer = try loop.timer(after: 0) { [unowned self] in tick() }
  }

  /// The writer has answered.
  func take(_ heartbeat: UInt64) { progress.take(heartbeat) }

  private func tick() {
    let tick = progress.tick(writerIsInStorage: activity.isInStorage)
    if tick.isAlive { ServiceManager.notify(["WATCHDOG=1"]) }
    if let heartbeat = tick.heartbeat { inbox.send(.heartbeat(heartbeat)) }
    timer?.arm(after: pause)
  }
}
