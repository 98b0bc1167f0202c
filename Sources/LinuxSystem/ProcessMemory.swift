import CLinux

/// Ways in which memory of this process returns to the kernel.
package enum ProcessMemory {
  #if DEBUG
  /// Releases a value as usual. A value that is kept would count as a leak: an enumeration marks its cases in spare bits
  /// of a pointer, and LeakSanitizer then does not see the reference.
  package static func keepUntilExit(_ value: some Sendable) {}
  #else
  private static let kept = Locked<[any Sendable]>([])

  /// Keeps a value until the process exits. The kernel frees the memory of a process at once, while releasing a million
  /// small objects one by one takes seconds.
  package static func keepUntilExit(_ value: some Sendable) { kept.withLock { $0.append(value) } }
  #endif

  /// Returns memory that only the start needed.
  ///
  /// Code and tables that are still in use come back page by page, and a serving daemon uses only a fraction of them.
  package static func release() { clinux_release_memory() }

  /// Returns the memory that this thread's stack has used below its current depth.
  package static func releaseStack() { clinux_release_stack() }
}
