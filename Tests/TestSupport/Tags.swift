package import Testing

/// The tags by which `packaging/tools/lanes.sh` selects suites. The script looks for them in the sources, because a run of
/// tests selects by names only. Each file with a tagged suite has the name of the suite.
extension Tag {
  /// Trials, which the long run repeats more often. They need many rounds but no sanitizer, so they run plain.
  @Tag package static var trial: Self

  /// Suites that take too long for the quick run. With real brokers a device or a reader mostly waits. The others run a
  /// client or a shell hundreds of times.
  @Tag package static var slow: Self

  /// End-to-end suites that run with the shipped programs only: shell completions, counts of a request's costs, suites
  /// that run a client up to hundreds of times for its output, and suites that start a daemon again and again for a
  /// decision of pure code. All other suites run the same unsafe code with AddressSanitizer.
  @Tag package static var plain: Self

  /// Suites that keep the loop of a daemon busy together with its writer, its reader, its log, the thread of its signals or
  /// the service of the fleet. They run with ThreadSanitizer.
  @Tag package static var threads: Self

  /// Suites in which the loop mostly waits for another thread. The long run has them with ThreadSanitizer, too.
  @Tag package static var seldomThreads: Self
}
