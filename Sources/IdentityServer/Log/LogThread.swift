package import LinuxSystem

/// A thread that writes the log, so that the logging thread never waits for the receiver of the log.
package final class LogThread {
  private let desk: Desk
  private var thread: Thread?

  /// Starts the thread.
  ///
  /// - Parameter write: writes one entry, which may block, and returns whether it was written. Called only by the
  ///   thread.
  package init(write: sending @escaping (LogEntry) -> Bool) throws(SystemError) {
    let desk = try Desk()
    self.desk = desk
    thread = try Thread(named: "log") { desk.work(write) }
  }

  /// Queues an entry, or drops it if too many are waiting. Never blocks.
  package func put(_ entry: LogEntry) { desk.put(entry) }

  /// The numbers of entries that wait, and that are missing.
  package var backlog: LogBacklog { desk.backlog }

  /// Waits until the waiting entries are written, and ends the thread. No entry may be queued afterwards.
  ///
  /// A thread that does not finish in time may be blocked in the kernel forever. It is detached, and ends with
  /// the process.
  ///
  /// - Returns: whether every entry was processed in time.
  @discardableResult
  package func finish(within milliseconds: Int) -> Bool {
    guard let thread = thread.take() else { return true }
    let deadline = Clock.monotonicMicroseconds + UInt64(milliseconds) * 1_000
    guard desk.close(until: deadline) else {
      thread.detach()
      return false
    }
    thread.join()
    return true
  }
}

/// The numbers of log entries that wait, and that are missing.
package struct LogBacklog: Equatable, Sendable {
  /// The number of entries that wait to be written.
  package let waiting: Int
  /// The number of entries lost since the start.
  package let lost: Int
  /// The number of entries suppressed since the start, because their principal caused too many.
  package let suppressed: Int

  package init(waiting: Int, lost: Int, suppressed: Int) {
    self.waiting = waiting
    self.lost = lost
    self.suppressed = suppressed
  }
}

/// The state shared by both threads. The lock is never held while an entry is written.
private final class Desk: Sendable {
  private let queue = Locked(LogQueue())
  private let bell: Wakeup
  private let done: Wakeup

  init() throws(SystemError) {
    bell = try Wakeup(blocking: true)
    done = try Wakeup(blocking: false)
  }

  var backlog: LogBacklog {
    queue.withLock { LogBacklog(waiting: $0.count, lost: $0.lost, suppressed: $0.suppressed) }
  }

  func put(_ entry: LogEntry) {
    let now = Clock.monotonicMicroseconds
    if queue.withLock({ $0.put(entry, now: now) }) { bell.ring() }
  }

  /// - Returns: whether the thread was done before the deadline.
  func close(until deadline: UInt64) -> Bool {
    queue.withLock { $0.close() }
    bell.ring()
    return (try? TimedWait.wait(for: done.descriptor.number, until: deadline)) == .readable
  }

  /// Runs the thread's loop.
  func work(_ write: (LogEntry) -> Bool) {
    defer { done.ring() }
    while true {
      let now = Clock.monotonicMicroseconds
      switch queue.withLock({ $0.take(now: now) }) {
      case .entry(let entry, let loss):
        if write(entry) { queue.withLock { $0.noteWritten() } } else { queue.withLock { $0.noteLost(loss) } }
      case .nothing(let deadline):
        // Released, because the wait is often long.
        ProcessMemory.releaseStack()
        wait(until: deadline)
      case .end: return
      }
    }
  }

  /// Waits for the bell, or until a deadline, if there is one. Without memory for the deadline, waits for the bell.
  private func wait(until deadline: UInt64?) {
    if let deadline, (try? TimedWait.wait(for: bell.descriptor.number, until: deadline)) == .timeUp { return }
    bell.wait()
  }
}
