import CLinux

/// The memory of this process.
package enum ProcessMemory {
  /// Gives back what only the start needed. What runs on comes back by itself, a little at a time: of all the code and
  /// tables of a daemon that answers, that is a fraction.
  package static func release() { clinux_release_memory() }

  /// Gives back what this thread's stack has held deeper down than it stands now.
  package static func releaseStack() { clinux_release_stack() }
}
