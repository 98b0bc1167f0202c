import CLinux

/// Ways to return unused memory of this process to the kernel.
package enum ProcessMemory {
  /// Returns memory that only the start needed.
  ///
  /// Code and tables that are still in use come back page by page, and a serving daemon uses only a fraction of them.
  package static func release() { clinux_release_memory() }

  /// Returns the memory that this thread's stack has used below its current depth.
  package static func releaseStack() { clinux_release_stack() }
}
