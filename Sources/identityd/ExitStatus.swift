/// The exit statuses of the daemon, for the service manager and for scripts. `identityd(8)` lists them.
enum ExitStatus: Int32 {
  case success = 0
  /// Any failure not listed below. The log has the reason.
  case failure = 1
  /// The daemon has to be started again, because the state directory became writable.
  case restart = 3
  /// The command line is wrong (EX_USAGE of sysexits.h).
  case usage = 64
  /// Another process listens on the socket's path, or the file there is not a socket (EX_UNAVAILABLE).
  case socketTaken = 69
  /// The state directory or the store in it cannot be used (EX_CANTCREAT).
  case stateUnusable = 73
  /// Another daemon holds the lock of the state directory (EX_TEMPFAIL).
  case stateHeld = 75
  /// A later version wrote the store, or one from before the first release (EX_PROTOCOL).
  case storeOfOtherVersion = 76
  /// The configuration was refused (EX_CONFIG).
  case configuration = 78
}
