import LinuxSystem

/// The command line of `IdentityBench`.
struct Options {
  /// The allowed numbers of items in the larger daemon. `ItemsPerApp=` allows no more.
  private static let itemsAllowed = 1_000...1_000_000
  /// The allowed numbers of rounds. Fewer prove nothing on a machine with other work.
  private static let roundsAllowed = 10...1_000

  /// All options, as getopt reads them and `--help` shows them.
  static let known: [CommandLine.Option] = [
    .init("items", value: "N", "Have the benchmark items compare 100 items with N; 100000 where it is not given."),
    .init("rounds", value: "N", "Measure N times in turn, at least 10; as a benchmark needs where it is not given."),
    .init("runs", value: "N", "Do all of it N times, at most 9, and give the medians of the runs."),
    .init(
      "sync-delay", value: "MICROSECONDS",
      "Let each sync of a file take that long, on any disk. The benchmark limit then measures durable changes only."),
    .init("quick", "Measure less often and with less in the stores: 2 minutes in place of 10."),
    .init("json", "Write the figures as one JSON document."),
    .init("drawings", value: "DIRECTORY", "Also write drawings there, as SVG."),
    .init("help", "Show this help, and end."),
  ]

  /// The named benchmarks. Empty for all.
  let benchmarks: [String]
  /// The number of items in the larger daemon.
  let items: Int
  /// Whether to measure less.
  let isQuick: Bool
  /// The folder for drawings. Nil for no drawings.
  let drawings: String?
  private let rounds: Int?
  /// The time that each sync of a file takes, in microseconds. Nil for that of the disk.
  let syncDelay: Int?
  /// The number of runs of everything.
  let runs: Int
  /// Whether to write JSON.
  let isJSON: Bool
  /// Whether to show the help and measure nothing.
  let showsHelp: Bool

  /// Parses the arguments without the name of the program.
  init(_ arguments: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, Self.known)
    benchmarks = line.words
    isQuick = line.options["quick"] != nil
    items = try Self.number("items", of: line, in: Self.itemsAllowed) ?? (isQuick ? 10_000 : 100_000)
    syncDelay = try Self.number("sync-delay", of: line, in: 0...1_000_000)
    rounds = try Self.number("rounds", of: line, in: Self.roundsAllowed)
    runs = try Self.number("runs", of: line, in: 1...9) ?? 1
    drawings = line.options["drawings"]
    isJSON = line.options["json"] != nil
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
