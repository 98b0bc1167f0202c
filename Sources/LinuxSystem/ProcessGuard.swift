import CLinux
import Glibc

/// Process-wide settings that a daemon makes before it does anything else.
package enum ProcessGuard {
  /// Prepares the process of a service. Its event loop receives these signals. A closed connection, a file at its limit
  /// and a stray SIGUSR1 do not end the process, and nobody reads its memory.
  package static func prepareService(receiving signals: [Int32]) throws(SystemError) {
    try openStandardDescriptors()
    ignoreFatalWriteSignals()
    ignoreUserSignals()
    block(signals)
    try forbidDumps()
  }

  /// Opens closed descriptors 0, 1 and 2 on /dev/null, so that no file or client gets their numbers.
  package static func openStandardDescriptors() throws(SystemError) {
    for number in Int32(0)...2 where fcntl(number, F_GETFD) == -1 {
      try system("open /dev/null") { unsafe clinux_open("/dev/null", O_RDWR, 0) }
    }
  }

  /// Ignores SIGPIPE and SIGXFSZ, so that neither a client that disconnects nor a file that grows
  /// too large kills the daemon.
  package static func ignoreFatalWriteSignals() {
    _ = Glibc.signal(SIGPIPE, SIG_IGN)
    _ = Glibc.signal(SIGXFSZ, SIG_IGN)
  }

  /// Ignores SIGUSR1 and SIGUSR2, which kill a process by default. Other daemons use both
  /// signals, but this one does not.
  package static func ignoreUserSignals() {
    _ = Glibc.signal(SIGUSR1, SIG_IGN)
    _ = Glibc.signal(SIGUSR2, SIG_IGN)
  }

  /// Blocks signals in this thread and in threads that it starts, so that the event loop receives the signals.
  package static func block(_ signals: [Int32]) {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals { unsafe sigaddset(&set, signal) }
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Gives only this user access to all files that the process creates from now on.
  package static func restrictNewFiles() { _ = umask(0o077) }

  /// Prevents core dumps, which would contain secrets, and prevents tracing by the same user.
  package static func forbidDumps() throws(SystemError) {
    try system("prctl PR_SET_DUMPABLE") { clinux_forbid_dumps() }
  }

  /// The ID of this process.
  package static var processID: Int32 { getpid() }
}
