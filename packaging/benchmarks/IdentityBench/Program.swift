import Foundation
import LinuxSystem

/// The benchmarks. Each starts its own daemons, and asserts nothing but ratios within one run.
enum Program {
  /// The exit status. A signal ends this program too, and its daemons with it.
  enum ExitStatus {
    /// Every ratio is within its limit.
    static let success: Int32 = 0
    /// A ratio exceeds its limit.
    static let tooSlow: Int32 = 1
    /// A measurement failed.
    static let failure: Int32 = 2
    /// The command line is wrong (`EX_USAGE`).
    static let usage: Int32 = 64
  }

  /// A benchmark that can be named on the command line.
  private struct Benchmark: Sendable {
    /// The name on the command line.
    let name: String
    /// The assertion in one line.
    let summary: String
    /// Starts the servers and measures, as often as the options say.
    let run: @Sendable (Options) throws -> any Findings

    init<Found: Findings>(
      name: String, summary: String, run: @escaping @Sendable (Options, Guardian) throws -> Found
    ) {
      self.name = name
      self.summary = summary
      self.run = { options in
        let runs = try (1...options.runs).map { number in
          if options.runs > 1 { say("\(name), run \(number) of \(options.runs)") }
          let guardian = try Guardian()
          defer { guardian.end() }
          return try run(options, guardian)
        }
        return runs.count == 1 ? runs[0] : Found.median(of: runs)
      }
    }
  }

  /// All benchmarks, in the order in which they run by default.
  private static let benchmarks = [
    Benchmark(
      name: "limit", summary: "How close to the machine's limit, and beside other servers; each row has a target."
    ) {
      try LimitBenchmark(options: $0, guardian: $1).run()
    },
    Benchmark(name: "scale", summary: "A read takes no longer, and a start at most linearly, with much in the store.") {
      try ScaleBenchmark(options: $0, guardian: $1).run()
    },
    Benchmark(name: "items", summary: "'item read' with many items takes at most twice as long as with 100.") {
      try ItemsBenchmark(options: $0, guardian: $1).run()
    },
    Benchmark(
      name: "neighbour",
      summary: "A user waits at most twice as long beside a hostile one as alone, and none is refused."
    ) { try NeighbourBenchmark(options: $0, guardian: $1).run() },
  ]

  /// Runs the benchmarks.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      if let part = try Part(Array(Swift.CommandLine.arguments.dropFirst())) {
        try part.play()
        return ExitStatus.success
      }
      let options = try Options(Array(Swift.CommandLine.arguments.dropFirst()))
      if options.showsHelp {
        return StandardStream.output.write(help) ? ExitStatus.success : ExitStatus.failure
      }
      if let name = options.benchmarks.first(where: { name in !benchmarks.contains { $0.name == name } }) {
        throw LinuxSystem.CommandLine.UsageError("there is no benchmark '\(name)'")
      }
      if let delay = options.syncDelay { try SyncDelay.apply(microseconds: delay) }
      return try run(options)
    } catch let error as LinuxSystem.CommandLine.UsageError {
      say("\(error); see 'IdentityBench --help'")
      return ExitStatus.usage
    } catch {
      say("\(error)")
      return ExitStatus.failure
    }
  }

  private static func run(_ options: Options) throws -> Int32 {
    var reports: [any Findings] = []
    for benchmark in benchmarks where options.benchmarks.isEmpty || options.benchmarks.contains(benchmark.name) {
      reports.append(try benchmark.run(options))
    }
    let machine = Machine(state: FileManager.default.temporaryDirectory)
    if let folder = options.drawings { try draw(reports, machine, in: URL(filePath: folder)) }
    let document = Document(machine: machine, reports: reports)
    let text = options.isJSON ? try document.json() : document.text
    guard StandardStream.output.write(text) else { throw Failure("standard output takes nothing") }
    return reports.allSatisfy(\.isWithinLimits) ? ExitStatus.success : ExitStatus.tooSlow
  }

  private static func draw(_ reports: [any Findings], _ machine: Machine, in folder: URL) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for report in reports {
      guard let drawing = report.drawing(on: machine) else { continue }
      try Data(drawing.svg.utf8).write(to: folder.appending(path: "\(report.benchmark).svg"))
    }
  }

  private static var help: String {
    let list = benchmarks.map { "  \($0.name)  \($0.summary)\n" }.joined()
    return """
      IdentityBench [BENCHMARK…] [OPTION…]

      Measures the identityd that stands beside it, in folders of its own below $TMPDIR. Without a BENCHMARK it runs all:
      \(list)
      "packaging/bench fleet" measures real devices of a fleet. The head of packaging/benchmarks/fleet.py lists the
      measurements. It takes no options.

      Options:
      \(LinuxSystem.CommandLine.help(Options.known))
      It ends with status 1 where a target is missed, and with 2 where something could not be measured.

      """
  }

  /// Writes to standard error: the present step, or the reason for a failure.
  static func say(_ text: String) { StandardStream.error.write("IdentityBench: \(text)\n") }
}

/// The reason why a measurement failed.
struct Failure: Error, CustomStringConvertible {
  /// A description of the fault.
  let description: String

  /// Creates a failure with a description of the fault.
  init(_ description: String) { self.description = description }
}
