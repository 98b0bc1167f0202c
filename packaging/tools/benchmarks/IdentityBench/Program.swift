import LinuxSystem

/// The benchmarks. Each starts daemons of its own, and asserts ratios within one run, sizes and counts.
enum Program {
  /// The exit status: a failure is a measurement that was not possible, and usage is `EX_USAGE`.
  private enum ExitStatus {
    static let (success, missed, failure, usage): (Int32, Int32, Int32, Int32) = (0, 1, 2, 64)
  }

  /// A benchmark that can be named on the command line.
  private struct Benchmark: Sendable {
    let name: String
    let summary: String
    /// Whether the benchmark runs only if it is named.
    var isOptional = false
    let run: @Sendable (Options, Guardian) throws -> [Row]
  }

  /// All benchmarks, in the order in which they run.
  private static let benchmarks = [
    Benchmark(name: "limit", summary: "How close identityd is to the limit of the machine; each row has a target.") {
      try LimitBenchmark(options: $0, guardian: $1).run()
    },
    Benchmark(
      name: "scale", summary: "A read takes no longer, and a start at most linearly, with many items, apps, or clients."
    ) { try ScaleBenchmark(options: $0, guardian: $1).run() },
    Benchmark(
      name: "neighbour",
      summary: "A user waits at most twice as long beside a hostile one as alone, and none is refused."
    ) { try NeighbourBenchmark(options: $0, guardian: $1).run() },
    Benchmark(
      name: "fleet",
      summary: "Real devices of a fleet, only if it is named. Names of measurements can follow: "
        + FleetBenchmark.Measurement.allCases.map(\.rawValue).joined(separator: ", ") + ".",
      isOptional: true
    ) { try FleetBenchmark(options: $0, guardian: $1).run() },
  ]

  /// Runs the benchmarks.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      let arguments = CommandLine.arguments
      if let part = try Part(arguments) {
        try part.play()
        return ExitStatus.success
      }
      let options = try Options(arguments, benchmarks: benchmarks.map(\.name))
      if options.showsHelp { return StandardStream.output.write(help) ? ExitStatus.success : ExitStatus.failure }
      if let delay = options.syncDelay { try MeasuredServer.delaySyncs(microseconds: delay) }
      return try run(options) ? ExitStatus.success : ExitStatus.missed
    } catch let error as CommandLine.UsageError {
      say("\(error); see 'packaging/tools/bench --help'")
      return ExitStatus.usage
    } catch {
      say("\(error)")
      return ExitStatus.failure
    }
  }

  /// Runs the named benchmarks, and writes the findings of each one.
  ///
  /// - Returns: whether every target is met.
  private static func run(_ options: Options) throws -> Bool {
    try write("\(Machine.text)\n")
    var isMet = true
    for benchmark in benchmarks {
      guard options.benchmarks.isEmpty ? !benchmark.isOptional : options.benchmarks.contains(benchmark.name) else {
        continue
      }
      let guardian = try Guardian()
      defer { guardian.end() }
      let rows = try benchmark.run(options, guardian)
      try write("\n\(benchmark.name): medians of all rounds, with their quartiles\n\n\(rows.text)")
      isMet = isMet && rows.allSatisfy(\.isMet)
    }
    return isMet
  }

  private static func write(_ text: String) throws {
    guard StandardStream.output.write(text) else { throw BenchError("standard output takes nothing") }
  }

  private static var help: String {
    """
    packaging/tools/bench [BENCHMARK…] [OPTION…]

    Measures identityd as it is shipped, in folders of its own below $TMPDIR. The benchmarks are:
    \(benchmarks.map { "  \($0.name)  \($0.summary)\n" }.joined())
    Options:
    \(CommandLine.help(Options.known))
    It ends with status 1 where a target is missed, and with 2 where something could not be measured.

    """
  }

  /// Writes to standard error: the present step, or the reason for a failure.
  static func say(_ text: String) { StandardStream.error.write("bench: \(text)\n") }
}
