import LinuxSystem

/// The command line of `packaging/tools/bench`.
struct Options {
  /// All options, as getopt reads them and `--help` shows them.
  static let known: [CommandLine.Option] = [
    .init("rounds", value: "N", "Measure N times in turn, at least 10; as a benchmark needs where it is not given."),
    .init(
      "sync-delay", value: "MICROSECONDS",
      "Let each sync of a file take that long, on any disk. The benchmark limit then measures durable changes only."),
    .init("quick", "Measure less often and with less in the stores."),
    .init("help", "Show this help, and end."),
  ]

  /// The named benchmarks. Empty for all that need no name.
  let benchmarks: [String]
  /// The named measurements of a fleet. Empty for all.
  let measurements: [FleetBenchmark.Measurement]
  let isQuick: Bool
  private let rounds: Int?
  /// The time that each sync of a file takes, in microseconds. Nil for that of the disk.
  let syncDelay: Int?
  let showsHelp: Bool

  init(_ arguments: [String], benchmarks known: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, Self.known)
    let isFleet = line.words.first == "fleet"
    benchmarks = isFleet ? ["fleet"] : line.words
    var measurements: [FleetBenchmark.Measurement] = []
    for word in isFleet ? line.words.dropFirst() : [] {
      guard let measurement = FleetBenchmark.Measurement(rawValue: word) else {
        throw CommandLine.UsageError("there is no measurement '\(word)' of a fleet")
      }
      measurements.append(measurement)
    }
    self.measurements = measurements
    if let name = benchmarks.first(where: { !known.contains($0) }) {
      throw CommandLine.UsageError("there is no benchmark '\(name)'")
    }
    isQuick = line.options["quick"] != nil
    syncDelay = try Self.number("sync-delay", of: line, in: 0...1_000_000)
    // Fewer rounds prove nothing on a machine with other work.
    rounds = try Self.number("rounds", of: line, in: 10...1_000)
    showsHelp = line.options["help"] != nil
  }

  /// Returns the number of rounds for a benchmark with these default numbers.
  func rounds(usual: Int, quick: Int) -> Int { rounds ?? (isQuick ? quick : usual) }

  private static func number(
    _ name: String, of line: CommandLine, in range: ClosedRange<Int>
  ) throws(CommandLine.UsageError) -> Int? {
    guard let text = line.options[name] else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw CommandLine.UsageError("--\(name) cannot be '\(text)'; allowed: \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
