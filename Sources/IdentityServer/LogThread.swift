package import LinuxSystem

/// Writes the log in a thread of its own: whoever logs never waits for whoever takes it.
package final class LogThread {
  private let desk: Desk
  private var thread: Thread?

  /// Starts the thread.
  ///
  /// - Parameter write: writes one entry, for as long as that takes, and says whether it could. Called by the thread alone.
  package init(write: sending @escaping (LogEntry) -> Bool) throws(SystemError) {
    let desk = try Desk()
    self.desk = desk
    thread = try Thread(named: "log") { desk.work(write) }
  }

  /// Has an entry written, or drops it where too many wait already. Never waits.
  package func put(_ entry: LogEntry) { desk.put(entry) }

  /// What became of the entries so far.
  package var backlog: LogBacklog { desk.backlog }

  /// Has what waits written, and ends the thread. Nothing may be put any more.
  ///
  /// A thread that is not done in time may be in the kernel for good. It is left there, and ends with the process.
  ///
  /// - Returns: whether everything was attended to in time.
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

/// What became of log entries.
package struct LogBacklog: Equatable, Sendable {
  /// How many wait to be written.
  package let waiting: Int
  /// How many were lost since the start.
  package let lost: Int

  /// Says both.
  package init(waiting: Int, lost: Int) {
    self.waiting = waiting
    self.lost = lost
  }
}

/// What both threads know. The lock is never held while something is written.
private final class Desk: Sendable {
  private let queue = Locked(LogQueue())
  private let bell: Wakeup
  private let done: Wakeup

  init() throws(SystemError) {
    bell = try Wakeup(blocking: true)
    done = try Wakeup(blocking: false)
  }

  var backlog: LogBacklog { queue.withLock { LogBacklog(waiting: $0.count, lost: $0.lost) } }

  func put(_ entry: LogEntry) { if queue.withLock({ $0.put(entry) }) { bell.ring() } }

  /// - Returns: whether the thread was done before the time was up.
  func close(until deadline: UInt64) -> Bool {
    queue.withLock { $0.close() }
    bell.ring()
    return (try? TimedWait.wait(for: done.descriptor.number, until: deadline)) == .readable
  }

  /// The thread.
  func work(_ write: (LogEntry) -> Bool) {
    defer { done.ring() }
    while true {
      switch queue.withLock({ $0.take() }) {
      case .entry(let entry, let loss):
        if write(entry) { queue.withLock { $0.settle() } } else { queue.withLock { $0.settle(loss: loss) } }
      case .nothing:
        // It often is for long.
        ProcessMemory.releaseStack()
        bell.wait()
      case .end: return
      }
    }
  }
}
