import CLinux
import Glibc

/// Puts things in order before a signal ends or stops this process.
///
/// A thread waits for the signals, so what is done then is ordinary code, and no signal comes between two instructions of
/// anything else.
package enum SignalWatch {
  /// What ends a program that does not ask for anything else.
  package static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// And what stops it at its terminal.
  package static let stopping = [SIGTSTP]

  /// Does nothing by itself and to nobody: it wakes the thread when there is nothing to watch for any more.
  private static let wake = SIGURG

  /// Runs `body`. A signal that comes meanwhile takes its usual effect once `leave` has put things in order.
  ///
  /// Signals that this process ignores it goes on to ignore. There must be no other thread, and no other watch.
  ///
  /// - Parameters:
  ///   - leave: runs on another thread, at the same time as `body`.
  ///   - comeBack: runs there where the process was stopped and goes on.
  ///   - tell: runs there for each signal among `told`, which has no other effect.
  package static func run<Outcome: ~Copyable>(
    _ signals: [Int32], leave: @escaping @Sendable () -> Void, comeBack: @escaping @Sendable () -> Void = {},
    told: [Int32] = [], tell: @escaping @Sendable () -> Void = {}, during body: () throws -> Outcome
  ) throws -> Outcome {
    let watched = (signals + told).filter { !isIgnored($0) }
    let isDone = Locked(false)
    var before = sigset_t()
    var mask = set(of: watched + [wake])
    unsafe pthread_sigmask(SIG_BLOCK, &mask, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    let thread = try Thread(named: "signals") {
      while let signal = next(of: watched, isDone) {
        guard !told.contains(signal) else {
          tell()
          continue
        }
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

  private static func end(_ thread: consuming Thread, _ isDone: Locked<Bool>) {
    isDone.withLock { $0 = true }
    kill(getpid(), wake)
    thread.join()
  }

  /// Waits for a signal; nil when there is nothing to watch for any more.
  private static func next(of watched: [Int32], _ isDone: Locked<Bool>) -> Int32? {
    var mask = set(of: watched + [wake])
    while true {
      var signal: Int32 = 0
      // Fails only for a set with numbers that are no signals.
      guard unsafe sigwait(&mask, &signal) == 0 else { return nil }
      if watched.contains(signal) { return signal }
      // Anybody may send the one that wakes.
      if isDone.withLock({ $0 }) { return nil }
    }
  }

  /// Lets this thread have the signal: it ends the process, or stops it until it is told to go on.
  private static func takeEffect(_ signal: Int32) {
    var mask = set(of: [signal])
    // Where Swift's own tools are installed, the runtime would ask on the terminal what to do about SIGQUIT.
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
