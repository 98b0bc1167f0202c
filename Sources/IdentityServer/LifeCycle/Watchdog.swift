import LinuxSystem
import Systemd

/// The progress of both threads, judged from tick to tick.
///
/// The tick itself proves that the loop makes progress. The writer proves it by answering a heartbeat. A writer that
/// waits for the disk counts as alive, because a restart would not make the disk faster.
struct ThreadProgress: Equatable {
  private var asked: UInt64 = 0
  private var answered: UInt64 = 0

  /// The result of a tick.
  struct Tick: Equatable {
    /// Whether the service manager may be told that the daemon is alive.
    let isAlive: Bool
    /// The heartbeat to send to the writer; nil while the last one is unanswered.
    let heartbeat: UInt64?
  }

  /// Checks both threads.
  mutating func tick(writerIsInStorage: Bool) -> Tick {
    guard answered == asked else { return Tick(isAlive: writerIsInStorage, heartbeat: nil) }
    asked += 1
    return Tick(isAlive: true, heartbeat: asked)
  }

  /// Notes the writer's answer to a heartbeat.
  mutating func noteAnswer(to heartbeat: UInt64) { answered = heartbeat }
}

/// The notifications to the service manager's watchdog that the daemon is alive, sent three times in each interval.
final class Watchdog {
  private let inbox: Mailbox<WriterMessage>
  private let activity: WriterActivity
  private let pause: UInt64
  private var timer: EventSource?
  private var progress = ThreadProgress()

  /// Starts the notifications. The interval is in microseconds.
  init(
    interval: UInt64, loop: EventLoop, inbox: Mailbox<WriterMessage>, activity: WriterActivity
  ) throws(SystemdError) {
    self.inbox = inbox
    self.activity = activity
    pause = interval / 3
    timer = try loop.timer(after: 0) { [unowned self] in tick() }
  }

  /// Notes the writer's answer to a heartbeat.
  func noteAnswer(to heartbeat: UInt64) { progress.noteAnswer(to: heartbeat) }

  private func tick() {
    let tick = progress.tick(writerIsInStorage: activity.isInStorage)
    if tick.isAlive { ServiceManager.notify(["WATCHDOG=1"]) }
    if let heartbeat = tick.heartbeat { inbox.send(.heartbeat(heartbeat)) }
    timer?.arm(after: pause)
  }
}
