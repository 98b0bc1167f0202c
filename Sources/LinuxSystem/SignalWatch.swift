import CLinux
import Glibc

/// Cleanup before a signal ends or stops this process.
///
/// A thread waits for the signals, so the cleanup is ordinary code, and no signal handler interrupts other code.
package enum SignalWatch {
  /// The signals that end a program unless it handles them.
  package static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// The signals that stop a program from its terminal.
  package static let stopping = [SIGTSTP]

  /// The signal that wakes the thread at the end of the watch. By default a process ignores the signal.
  private static let wake = SIGURG

  /// Runs `body`. A signal that comes meanwhile takes its usual effect after `leave` has cleaned up.
  ///
  /// The process goes on to ignore signals that it ignores already. There must be no other thread and no other watch.
  ///
  /// - Parameters:
  ///   - leave: cleans up. Runs in another thread, concurrently with `body`.
  ///   - comeBack: runs in that thread when the process continues after a stop.
  package static func run<Outcome: ~Copyable>(
    _ signals: [Int32], leave: @escaping @Sendable () -> Void, comeBack: @escaping @Sendable () -> Void = {},
    during body: () throws -> Outcome
  ) throws -> Outcome {
    let watched = signals.filter { !isIgnored($0) }
    let isDone = Locked(false)
    var before = sigset_t()
    var mask = set(of: watched + [wake])
    unsafe pthread_sigmask(SIG_BLOCK, &mask, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    let thread = try Thread(named: "signals") {
      while let signal = next(of: watched, isDone) {
        leave()
        takeEffect(signal)
        comeBack()
      }
    }
    do {
      let outcome = try body()
      end(thread, isDone)
      return outcome
    } catch {
      end(thread, isDone)
      throw error
    }
  }

  /// Runs `body`. A signal that comes meanwhile takes its usual effect after the end of `body`, which can look for one at
  /// its own moments. Signals that the process ignores stay ignored.
  ///
  /// - Parameter body: takes a closure that returns whether a signal has come.
  package static func hold<Outcome>(
    _ signals: [Int32], during body: (_ hasCome: () -> Bool) throws -> Outcome
  ) rethrows -> Outcome {
    let held = signals.filter { !isIgnored($0) }
    var (mask, before) = (set(of: held), sigset_t())
    unsafe pthread_sigmask(SIG_BLOCK, &mask, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    return try body {
      var pending = sigset_t()
      // Fails only for an address out of range.
      guard unsafe sigpending(&pending) == 0 else { return false }
      return held.contains { unsafe sigismember(&pending, $0) == 1 }
    }
  }

  private static func end(_ thread: consuming Thread, _ isDone: Locked<Bool>) {
    isDone.withLock { $0 = true }
    kill(getpid(), wake)
    thread.join()
  }

  /// Waits for a signal. Returns nil at the end of the watch.
  private static func next(of watched: [Int32], _ isDone: Locked<Bool>) -> Int32? {
    var mask = set(of: watched + [wake])
    while true {
      var signal: Int32 = 0
      // sigwait() fails only for a set with invalid signal numbers.
      guard unsafe sigwait(&mask, &signal) == 0 else { return nil }
      if watched.contains(signal) { return signal }
      // A spurious wake-up is possible, because any process may send the wake signal.
      if isDone.withLock({ $0 }) { return nil }
    }
  }

  /// Lets the signal act on this thread: it ends the process, or stops the process until it is continued.
  private static func takeEffect(_ signal: Int32) {
    var mask = set(of: [signal])
    // Resets the handler for SIGQUIT: if Swift's own tools are installed, the runtime would prompt on the terminal.
    _ = Glibc.signal(signal, SIG_DFL)
    unsafe pthread_sigmask(SIG_UNBLOCK, &mask, nil)
    raise(signal)
    unsafe pthread_sigmask(SIG_BLOCK, &mask, nil)
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    guard unsafe sigaction(signal, nil, &action) == 0 else { return false }
    return unsafe unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func set(of signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals { unsafe sigaddset(&set, signal) }
    return set
  }
}
