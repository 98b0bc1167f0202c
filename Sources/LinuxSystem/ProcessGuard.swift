import CLinux
import Glibc

/// What a daemon settles before it does anything else.
package enum ProcessGuard {
  /// Opens descriptors 0, 1 and 2 on /dev/null where they are closed, so that no file or client ever gets their numbers.
  package static func openStandardDescriptors() throws(SystemError) {
    for number in Int32(0)...2 where fcntl(number, F_GETFD) == -1 {
      try system("open /dev/null") { unsafe clinux_open("/dev/null", O_RDWR, 0) }
    }
  }

  /// Ignores the signals that would kill the daemon for what a client or a full disk does.
  package static func ignoreFatalWriteSignals() {
    _ = Glibc.signal(SIGPIPE, SIG_IGN)
    _ = Glibc.signal(SIGXFSZ, SIG_IGN)
  }

  /// Ignores the signals that mean something to other daemons and nothing to this one: by default they kill.
  package static func ignoreUserSignals() {
    _ = Glibc.signal(SIGUSR1, SIG_IGN)
    _ = Glibc.signal(SIGUSR2, SIG_IGN)
  }

  /// Blocks signals in this thread and those it starts, so that the event loop gets them.
  package static func block(_ signals: [Int32]) {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    for signal in signals { unsafe sigaddset(&set, signal) }
    unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Makes every file created from here on readable and writable for this user alone.
  package static func restrictNewFiles() { _ = umask(0o077) }

  /// Keeps secrets out of core dumps, and the process from being traced by the same user.
  package static func forbidDumps() throws(SystemError) {
    try system("prctl PR_SET_DUMPABLE") { clinux_forbid_dumps() }
  }

  /// The number of this process.
  package static var processID: Int32 { getpid() }
}
