import Foundation

/// A disk on which each sync takes the same time, for this program and all servers that it starts.
enum SyncDelay {
  /// The variable in which `SyncDelay.c` finds the time.
  private static let variable = "IDENTITYBENCH_SYNC_DELAY"

  /// Starts this program anew with the library that waits instead of syncing, unless that was done.
  static func apply(microseconds: Int) throws {
    guard ProcessInfo.processInfo.environment[variable] == nil else { return }
    let library = try MeasuredServer.besideThis("SyncDelay.so")
    guard unsafe setenv(variable, "\(microseconds)", 1) == 0, unsafe setenv("LD_PRELOAD", library, 1) == 0 else {
      throw Failure("setenv: \(errno)")
    }
    unsafe execv("/proc/self/exe", Swift.CommandLine.unsafeArgv)
    throw Failure("exec: \(errno)")
  }
}
